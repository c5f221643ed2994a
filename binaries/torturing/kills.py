"""Kills runs at random instants, starts them again, and compares the results.

Whatever kills them, they must end with the bytes of an undisturbed run, and leave
neither a worker nor a file in TMPDIR behind. A run has many lives: a signal ends each,
and the last ends by itself. Most lives are forked (`forks`), some are `python -m`.
"""

import collections
from collections.abc import Sequence
import contextlib
import pathlib
import shutil
import signal
import time

import psutil

from binaries.torturing import killing
from binaries.torturing import programs
from binaries.torturing import trials

# How a life is disturbed, and how often out of twelve times.
_WAYS = collections.OrderedDict(kill=8, worker=1, freeze=1, interrupt=1, terminate=1)
# Seconds in which an interrupted run must end, on a loaded machine.
_PROMPT = 10.0
_GONE_SECONDS = 5.0
# Number of disturbed lives of a run, and the share of `python -m` among them.
_LIVES = 8
_AFRESH = 0.1


class Kills(trials.OfRuns):
  """Kills runs of all kinds of process.

  Attributes:
    slowest: Seconds of the slowest end after a signal that asks the run to end.
  """

  kinds = tuple(name for name, kind in programs.KINDS.items() if not kind.private)
  counted = 'disturbances'

  def __init__(self, setting: trials.Setting):
    """Runs nothing yet."""
    super().__init__(setting)
    self.slowest = 0.0
    self._machine: killing.Machine | None = None

  def trial(self, kind: str, turn: int) -> bool:
    """Disturbs the lives of one run, lets it end, and compares the result.

    Args:
      kind: One of `kinds`.
      turn: Number of the trial.
    """
    del turn
    expected = self._reference(kind)
    folder = self._folder / f'{kind}_disturbed'
    shutil.rmtree(folder, ignore_errors=True)
    wrong = self.counts['wrong']
    done: list[str] = []
    while len(done) < _LIVES and (
      said := self._disturb(kind, folder, expected.cpu_seconds)
    ):
      done.append(said)
    process = self._start(kind, folder)
    if self._machine is not None and programs.KINDS[kind].hosts:
      # Kills only a host: the run must continue.
      moment = self._at_some_moment(process, folder, expected.cpu_seconds)
      if process.is_alive:
        self._machine.kill(self._random.randrange(programs.KINDS[kind].hosts))
        self._count(kind, 'host')
        done.append(f'host {moment}')
    ended = process.end()
    self.counts['runs'] += 1
    found = programs.numbers(folder) if ended.status == 0 else {}
    if found != expected.numbers:
      self.counts['runs lost or changed'] += 1
      differing = [k for k, v in expected.numbers.items() if found.get(k) != v]
      self._fails(
        f'{kind}: {"; ".join(done)}: status {ended.status}, '
        f'other {", ".join(differing)}; {ended.stderr[-2000:]}'
      )
    left = [path.name for path in (self._folder / 'tmp').iterdir()]
    if left:
      self._fails(f'{kind}: {left} left in TMPDIR')
      shutil.rmtree(self._folder / 'tmp')
    return self.counts['wrong'] == wrong

  def close(self) -> None:
    """Ends the workers of hosts."""
    if self._machine is not None:
      self._machine.stop()

  def _disturb(self, kind: str, folder: pathlib.Path, seconds: float) -> str:
    """Disturbs a life at some moment; returns how and when, '' if it ended before."""
    way = self._random.choices(list(_WAYS), list(_WAYS.values()))[0]
    if way in ('worker', 'freeze') and not programs.KINDS[kind].starts_worker:
      way = 'kill'
    afresh = self._random.random() < _AFRESH
    process = self._start(kind, folder, afresh=afresh)
    moment = self._at_some_moment(process, folder, seconds)
    children: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
      children = psutil.Process(process.pid).children(recursive=True)
    if not process.is_alive:
      process.end()
      return ''
    self._act(process, way, children)
    self._count(kind, way)
    left = psutil.wait_procs(children, _GONE_SECONDS)[1]
    if left:
      self._fails(f'{kind}: {way} left {left} running')
    return f'{way} {moment}, at row {programs.rows(folder)}'

  def _act(
    self, process: programs.Process, way: str, children: list[psutil.Process]
  ) -> None:
    """Disturbs a life, waits for its end, and checks its output."""
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
      # A run that no longer needed its worker may end well.
      if ended.status and not ended.is_sentence:
        self._fails(f'{way}: ended without an error sentence: {ended}')
      return
    asked = signal.SIGINT if way == 'interrupt' else signal.SIGTERM
    started = time.monotonic()
    process.kill(asked)
    ended = process.end(_PROMPT)
    self.slowest = max(self.slowest, time.monotonic() - started)
    # Until Python has installed its handlers, a signal ends it like any process.
    if ended.status not in (0, 128 + asked, -asked) or 'Traceback' in ended.stderr:
      self._fails(f'{way}: did not end cleanly: {ended}')

  def _count(self, kind: str, way: str) -> None:
    self.counts[f'{kind}: {way}'] += 1
    self.counts['disturbances'] += 1

  def _fails(self, text: str) -> None:
    self._wrong('wrong', text)

  def _start(
    self,
    name: str,
    folder: pathlib.Path,
    flags: Sequence[str] = (),
    afresh: bool = False,
    noise: pathlib.Path | None = None,
  ) -> programs.Process:
    if hosts := programs.KINDS[name].hosts:
      if self._machine is None:
        self._machine = killing.Machine(hosts)
      flags = (*flags, f'--worker_addresses={",".join(self._machine.addresses)}')
    return super()._start(name, folder, flags, afresh, noise)
