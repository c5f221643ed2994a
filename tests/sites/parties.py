"""Parties of a run for tests: their keys, their ends of a mailbox, and a clock."""

from collections.abc import Callable, Iterable, Sequence
import copy
import pathlib
import shutil

from tff_ssl.sites import chains
from tff_ssl.sites import coordinator
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import mailbox as mailbox_lib
from tff_ssl.sites import site

COORDINATOR = keys_lib.COORDINATOR
NAMES = ('east', 'north', 'south')


def exchange_keys(folder: pathlib.Path, names: Sequence[str]) -> None:
  """Makes a folder of keys for each party, with the public ones of all."""
  made = [keys_lib.make(folder / name, name) for name in names]
  for name in names:
    for public in made:
      if not (folder / name / public.name).exists():
        shutil.copy(public, folder / name)


class World:
  """A mailbox, and a folder of its own for each party.

  Attributes:
    path: The folder of all.
    said: Whoever said what, in order.
  """

  def __init__(self, path: pathlib.Path, names: Sequence[str] = NAMES):
    """Makes the keys of the coordinator and of some sites."""
    self.path, self.names = path, tuple(names)
    self.said: list[tuple[str, str]] = []
    exchange_keys(path / 'keys', (COORDINATOR, *names))
    self._keys = {
      name: keys_lib.Keys(path / 'keys' / name) for name in (COORDINATOR, *names)
    }
    self.box = mailbox_lib.Mailbox(path / 'box')

  def anew(self, path: pathlib.Path) -> 'World':
    """Returns a world of the same parties in which nothing has happened."""
    other = copy.copy(self)
    other.path, other.said = path, []
    other.box = mailbox_lib.Mailbox(path / 'box')
    return other

  def keys(self, name: str) -> keys_lib.Keys:
    return self._keys[name]

  def folder(self, name: str) -> pathlib.Path:
    folder = self.path / 'own' / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder

  def outbox(self, name: str, folder: pathlib.Path | None = None) -> chains.Outbox:
    """Returns a party's outbox, which goes on after a kill; `folder` has its log."""
    return chains.Outbox(self.box, self.keys(name), name, folder or self.folder(name))

  def inbox(self, name: str) -> chains.Inbox:
    return chains.Inbox(self.box, self.keys(name), self.folder(name))

  def says(self, name: str) -> Callable[[str], None]:
    return lambda text: self.said.append((name, text))

  def sentences(self, name: str = COORDINATOR) -> list[str]:
    return [text for speaker, text in self.said if speaker == name]

  def asker(
    self,
    fewest: int | None = None,
    deadline: float = 10.0,
    masked: bool = False,
    names: Iterable[str] | None = None,
  ) -> coordinator.Ends:
    """Returns the coordinator's ends, which go on after a kill."""
    names = self.names if names is None else tuple(names)
    settings = coordinator.Settings(fewest or len(names), deadline, masked)
    return coordinator.Ends(
      self.box,
      self.keys(COORDINATOR),
      self.folder(COORDINATOR),
      names,
      settings,
      self.says(COORDINATOR),
    )

  def answerer(self, name: str, masked: bool = False) -> site.Ends:
    """Returns a site's ends, which go on after a kill."""
    ends = site.Ends(
      self.box, self.keys(name), self.folder(name), name, self.says(name)
    )
    ends.masked = masked
    return ends


class Clock:
  """Stands for `time` where somebody waits: what happens meanwhile is a list of steps.

  Attributes:
    steps: Each is called in turn when somebody waits; then time passes.
  """

  def __init__(self, *steps: Callable[[], object]):
    """Begins at 0 seconds."""
    self.steps = list(steps)
    self._seconds = 0.0
    self._waited = 0

  def monotonic(self) -> float:
    return self._seconds

  def sleep(self, _: float) -> None:
    if self.steps:
      self.steps.pop(0)()
      return
    self._seconds += 5.0
    self._waited += 1
    if self._waited > 100:
      raise TimeoutError('Nobody does what is waited for.')

  def late(self) -> None:
    """A step: the deadline passes."""
    self._seconds += 1000.0
