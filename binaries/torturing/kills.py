"""Runs that are killed at random instants, started again, and compared.

Whatever kills them, they must end with the bytes of a run that was left in peace, leave
no worker behind, and no file in TMPDIR.
"""

import collections
from collections.abc import Callable, Sequence
import contextlib
import pathlib
import random
import shutil
import signal
import time

import psutil

from binaries.torturing import killing
from binaries.torturing import programs
from binaries.torturing import trials

# How a run is disturbed, and how often of ten times.
_WAYS = collections.OrderedDict(kill=6, worker=1, freeze=1, interrupt=1, terminate=1)
# In which a run that was interrupted must have ended; on a loaded machine.
_PROMPT = 10.0
_GONE_SECONDS = 5.0
_MOST_KILLS = 3


class Kills(trials.OfRuns):
  """Kills of all kinds of process.

  Attributes:
    slowest: Seconds of the slowest end after a signal that asks for it.
  """

  def __init__(
    self, folder: pathlib.Path, rng: random.Random, say: Callable[[str], None]
  ):
    """Runs nothing yet; see `trials.Trials`."""
    super().__init__(folder, rng, say)
    self.slowest = 0.0
    self._references: dict[str, tuple[dict[str, str], float]] = {}
    self._machine: killing.Machine | None = None

  def trial(self, name: str) -> bool:
    """Disturbs one run up to three times, and lets it end; returns whether all held.

    Args:
      name: Of `programs.KINDS`.
    """
    expected, seconds = self._reference(name)
    folder = self._folder / f'{name}_disturbed'
    shutil.rmtree(folder, ignore_errors=True)
    done = []
    for _ in range(self._random.randint(1, _MOST_KILLS)):
      way = self._random.choices(list(_WAYS), list(_WAYS.values()))[0]
      if way in ('worker', 'freeze') and not programs.KINDS[name].starts_worker:
        way = 'kill'
      done.append(f'{way} {self._disturb(name, folder, way, seconds)}')
    ended = self._start(name, folder).end()
    self.counts['runs'] += 1
    found = programs.numbers(folder) if ended.status == 0 else {}
    if found == expected:
      return self._leaves_nothing(name)
    self.counts['runs lost or changed'] += 1
    differing = [k for k in expected if found.get(k) != expected[k]]
    self._say(
      f'{name}: {"; ".join(done)}: status {ended.status}, '
      f'other {", ".join(differing)}; {ended.stderr[-2000:]}'
    )
    return False

  def close(self) -> None:
    """Ends the workers of hosts."""
    if self._machine is not None:
      self._machine.stop()

  def _reference(self, name: str) -> tuple[dict[str, str], float]:
    """Returns the numbers of a run left in peace, and the seconds that it took."""
    if name not in self._references:
      folder = self._folder / name
      ended = self._in_peace(name, folder)
      self._references[name] = programs.numbers(folder), ended.seconds
    return self._references[name]

  def _disturb(self, name: str, folder: pathlib.Path, way: str, seconds: float) -> str:
    """Starts or resumes a run and disturbs it at some moment; returns when."""
    process = self._start(name, folder)
    children: list[psutil.Process] = []
    before = programs.rows(folder)
    # Half of them anywhere, half once it is in its rounds.
    if self._random.random() < 0.5:
      moment = self._random.random() * seconds
      deadline = time.monotonic() + moment
      while process.is_alive and time.monotonic() < deadline:
        time.sleep(0.01)
    else:
      moment = self._random.random() * 2.0
      while process.is_alive and programs.rows(folder) <= before:
        time.sleep(0.01)
      time.sleep(moment)
    with contextlib.suppress(psutil.NoSuchProcess):
      children = psutil.Process(process.pid).children(recursive=True)
    self._act(process, way, children)
    self.counts[f'{name}: {way}'] += 1
    self.counts['disturbances'] += 1
    left = psutil.wait_procs(children, _GONE_SECONDS)[1]
    if left:
      self.counts['workers left behind'] += len(left)
      self._say(f'{name}: {way} left {left}')
    return f'{moment:.2f} s at row {programs.rows(folder)}'

  def _act(
    self, process: programs.Process, way: str, children: list[psutil.Process]
  ) -> None:
    """Disturbs a run, waits for its end, and checks what it says."""
    if way == 'kill':
      process.kill(signal.SIGKILL)
      process.end()
      return
    if way in ('worker', 'freeze'):
      number = signal.SIGKILL if way == 'worker' else signal.SIGSTOP
      for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
          child.send_signal(number)
      ended = process.end()
      # One that needed no worker any more has ended well.
      if ended.status and not ended.is_sentence:
        self._wrong('failures without a sentence', f'{way}: {ended}')
      return
    asked = signal.SIGINT if way == 'interrupt' else signal.SIGTERM
    was_alive, started = process.is_alive, time.monotonic()
    process.kill(asked)
    ended = process.end(_PROMPT)
    if was_alive:
      self.slowest = max(self.slowest, time.monotonic() - started)
    # Before Python has its handlers a signal ends it as it ends any process.
    if ended.status not in (0, 128 + asked, -asked):
      self._wrong('signals that did not end a run', f'{way}: {ended}')

  def _leaves_nothing(self, name: str) -> bool:
    left = [path.name for path in (self._folder / 'tmp').iterdir()]
    if left:
      self._wrong('files left in TMPDIR', f'{name}: {left}')
      shutil.rmtree(self._folder / 'tmp')
    return not left

  def _wrong(self, what: str, text: str) -> None:
    self.counts[what] += 1
    self._say(text)

  def _start(
    self, name: str, folder: pathlib.Path, flags: Sequence[str] = ()
  ) -> programs.Process:
    if hosts := programs.KINDS[name].hosts:
      if self._machine is None:
        self._machine = killing.Machine(hosts)
      flags = (*flags, f'--worker_addresses={",".join(self._machine.addresses)}')
    return super()._start(name, folder, flags)
