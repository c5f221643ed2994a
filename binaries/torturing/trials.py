"""The base of the campaign's groups: trials that count what was done and found."""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import hashlib
import json
import math
import pathlib
import random
import shutil
import time

from binaries.launching import forks
from binaries.torturing import hooks
from binaries.torturing import programs
from tff_ssl.storage import files

_POLL_SECONDS = 0.01
_SOURCES = ('binaries', 'tasks', 'tff_ssl')


@dataclasses.dataclass(frozen=True)
class Setting:
  """The settings that all trials share.

  Attributes:
    folder: Folder for run folders and inputs, which are replaced.
    references: File with the results of undisturbed runs, which all groups share.
    rng: Generator for all choices of a trial.
    say: Called with each failure.
    forks: Forks lives, in place of `python -m`.
  """

  folder: pathlib.Path
  references: pathlib.Path
  rng: random.Random
  say: Callable[[str], None]
  forks: forks.Forks


class Trials:
  """The trials of one group; a subclass runs one of them in `trial`.

  Attributes:
    kinds: Kinds of trials, which take turns.
    counted: Name of the count that measures how much has been done.
    counts: What was done and found, by name.
  """

  kinds: Sequence[str] = ()
  counted = ''

  def __init__(self, setting: Setting):
    """Runs nothing yet."""
    self.counts: collections.Counter[str] = collections.Counter()
    self._folder = setting.folder
    self._references = setting.references
    self._random = setting.rng
    self._say = setting.say
    self._forks = setting.forks

  def trial(self, kind: str, turn: int) -> bool:
    """Runs one trial of a kind; returns whether everything held."""
    raise NotImplementedError

  def close(self) -> None:
    """Ends the processes that trials have left running."""

  def _wrong(self, what: str, text: str) -> None:
    self.counts[what] += 1
    self._say(text)


@dataclasses.dataclass(frozen=True)
class Reference:
  """An undisturbed run.

  Attributes:
    numbers: See `programs.numbers`.
    cpu_seconds: CPU seconds that it took, without imports.
    bytes: Size of its folder.
    noised: Number of its sums to which noise was added.
  """

  numbers: dict[str, str]
  cpu_seconds: float
  bytes: int
  noised: int = 0


class OfRuns(Trials):
  """Trials that compare the results of a run with the same run undisturbed.

  References are stored for the current sources; if these change, they are made again.
  """

  def _start(
    self,
    name: str,
    folder: pathlib.Path,
    flags: Sequence[str] = (),
    afresh: bool = False,
    noise: pathlib.Path | None = None,
  ) -> programs.Process:
    """Starts a run of a kind in a folder.

    Args:
      name: A name in `programs.KINDS`.
      folder: The run folder.
      flags: Flags in addition to those of the kind.
      afresh: Whether it starts as `python -m` instead of being forked.
      noise: File to which a line is appended for every sum to which noise was added.
    """
    kind = programs.KINDS[name]
    arguments = [*kind.flags, *flags, f'--run_dir={folder}']
    forked_by = None if afresh else self._forks
    temporary = self._folder / 'tmp'
    hook = None if noise is None else f'{hooks.NOTE_NOISE}{noise}'
    return programs.Process(kind.program, arguments, temporary, forked_by, hook)

  def _reference(self, name: str) -> Reference:
    """Returns a kind's undisturbed run: stored, or made if the sources are new."""
    path = self._references
    stored = json.loads(path.read_text()) if path.exists() else {}
    key = f'{name} {_sources()}'
    if key not in stored:
      stored[key] = dataclasses.asdict(self._made(name))
      files.write_json(path, stored)
    return Reference(**stored[key])

  def _made(self, name: str) -> Reference:
    """Makes a kind's undisturbed run."""
    folder, note = self._folder / name, self._folder / f'{name}_noise'
    note.unlink(missing_ok=True)
    seconds = self._in_peace(name, folder, noise=note)
    size = sum(p.stat().st_size for p in folder.rglob('*') if p.is_file())
    numbers = dict(programs.numbers(folder))
    return Reference(numbers, seconds, size, hooks.count(note))

  def _in_peace(
    self,
    name: str,
    folder: pathlib.Path,
    flags: Sequence[str] = (),
    noise: pathlib.Path | None = None,
  ) -> float:
    """Runs a kind in a new folder to its end; returns its CPU seconds.

    Raises:
      RuntimeError: If it fails, because then there is nothing to compare with.
    """
    shutil.rmtree(folder, ignore_errors=True)
    process = self._start(name, folder, flags, noise=noise)
    seconds = 0.0
    while process.is_alive:
      if math.isfinite(found := process.cpu_seconds):
        seconds = found
      time.sleep(_POLL_SECONDS)
    ended = process.end()
    if ended.status:
      raise RuntimeError(f'{name} failed undisturbed: {ended.stderr[-2000:]}')
    return seconds

  def _at_some_moment(
    self, process: programs.Process, folder: pathlib.Path, seconds: float
  ) -> str:
    """Waits for a random instant of a run; returns a description of it.

    Half of the instants are anywhere, half after a round of this life. They are
    measured in the run's CPU seconds, because a busy machine takes longer for the same.

    Args:
      process: The run.
      folder: Its folder.
      seconds: CPU seconds that it would take undisturbed.
    """
    before = programs.rows(folder)
    if self._random.random() < 0.5:
      until = self._random.random() * seconds
      text = f'{until:.2f} s'
    else:
      while process.is_alive and programs.rows(folder) <= before:
        time.sleep(_POLL_SECONDS)
      after = self._random.random() * 0.15 * seconds
      until = process.cpu_seconds + after
      text = f'{after:.2f} s after row {before + 1}'
    while process.is_alive and process.cpu_seconds < until:
      time.sleep(_POLL_SECONDS)
    return text


def _sources() -> str:
  """Returns a digest of all sources that compute runs."""
  digest = hashlib.sha256()
  for name in _SOURCES:
    for path in sorted((programs.ROOT / name).rglob('*.py')):
      if 'torturing' not in path.parts or path.name == 'programs.py':
        digest.update(path.read_bytes())
  return digest.hexdigest()[:16]
