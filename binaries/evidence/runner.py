"""Runs what is not done yet: commands side by side, in processes of their own."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import TextIO

import tqdm

from binaries.evidence import claim as claim_lib
from binaries.evidence import store as store_lib

# Priority of the runs, and how long they have to save their state and end.
_NICE = 10
_GRACE_SECONDS = 120.0
_POLL_SECONDS = 0.1
_SET_PARENT_DEATH_SIGNAL = 1
_TASK = '--task='

# What starts a command: (arguments after `python`, file of its output) -> process.
Start = Callable[[Sequence[str], TextIO], 'subprocess.Popen[bytes]']


@dataclasses.dataclass(frozen=True)
class Job:
  """A run with its seed.

  Attributes:
    run: The run.
    seed: The seed.
    folder: Of the run; its output goes to a file of this name with `.log`.
    data: Where the data of tasks are, by task, in pairs.
  """

  run: claim_lib.Run
  seed: int
  folder: pathlib.Path
  data: tuple[tuple[str, str], ...] = ()

  @property
  def log(self) -> pathlib.Path:
    """The file of what the run says."""
    return self.folder.with_name(f'{self.folder.name}.log')

  def __str__(self) -> str:
    return f'{self.run.name}, seed {self.seed}'

  def command(self, columns: Sequence[str]) -> list[str]:
    """Returns what follows `python`: the run, or an evaluation once that is complete.

    Args:
      columns: That claims need of it.
    """
    own = [name for name in columns if claim_lib.transfer_task(name) is None]
    where = dict(self.data)
    tasks = [flag.removeprefix(_TASK) for flag in self.run.flags if _TASK in flag]
    data = [f'--data_dir={where[task]}' for task in tasks if task in where]
    if len(own) == len(columns) or store_lib.read_folder(self.folder, own) is None:
      return [*self.run.arguments(self.seed, str(self.folder)), *data]
    missing = [
      name for name in columns if store_lib.read_folder(self.folder, [name]) is None
    ]
    task = claim_lib.transfer_task(missing[0]) if missing else None
    data += [f'--transfer_data_dir={where[task]}'] if task in where else []
    evaluate = ['-m', 'binaries.evaluate', f'--run={self.folder}']
    return [*evaluate, f'--transfer_task={task}', *data]


def job(
  runs: pathlib.Path, run: claim_lib.Run, seed: int, data: Mapping[str, str]
) -> Job:
  """Returns a run with its seed and folder, which other flags do not share.

  Args:
    runs: Folder of the budget.
    run: The run.
    seed: The seed.
    data: Where the data of tasks are, by task.
  """
  folder = runs / f'{run.name}-{run.key}' / f'seed_{seed}'
  return Job(run, seed, folder, tuple(data.items()))


def start(arguments: Sequence[str], log: TextIO) -> 'subprocess.Popen[bytes]':
  """Starts a program of ours, which ends with this process however that ends.

  Args:
    arguments: After `python`.
    log: The file of its output.
  """
  return subprocess.Popen(
    [sys.executable, *arguments],
    stdin=subprocess.DEVNULL,
    stdout=log,
    stderr=log,
    # Ctrl-C is for this process, which passes it on once; twice would not save.
    start_new_session=True,
    preexec_fn=_in_child,
  )


def _in_child() -> None:
  """Lowers the priority, and has the kernel end the run with its parent."""
  os.nice(_NICE)
  ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


class Runner:
  """Runs jobs, so many at a time, and takes their figures."""

  def __init__(
    self,
    store: store_lib.Store,
    jobs: int,
    start: Start = start,
    stream: TextIO | None = None,
  ):
    """Starts nothing yet.

    Args:
      store: Takes the figures of each run when it ends.
      jobs: How many run at a time.
      start: Starts a command.
      stream: For the progress; None: stderr.
    """
    self._store = store
    self._at_a_time = jobs
    self._start = start
    self._stream = stream or sys.stderr
    self._begun: dict[Job, list[str]] = {}

  def run(self, jobs: Sequence[Job]) -> list[str]:
    """Runs what has no figures yet.

    A run whose folder is complete is not run again, one that was stopped goes on.
    However this ends, no run is left behind.

    Args:
      jobs: What is to be there in the end.

    Returns:
      A sentence for each that failed.
    """
    waiting = [each for each in jobs if not self._is_done(each)]
    running: dict[Job, subprocess.Popen[bytes]] = {}
    failures: list[str] = []
    progress = _progress(len(waiting), self._at_a_time, self._stream)
    try:
      while waiting or running:
        while waiting and len(running) < self._at_a_time:
          each = waiting.pop(0)
          running[each] = self._begin(each)
        ended = [
          each for each, process in running.items() if process.poll() is not None
        ]
        for each in ended:
          status = running.pop(each).returncode
          if self._goes_on(each, status):
            waiting.insert(0, each)
            continue
          failure = self._end(each, status)
          failures += [failure] if failure else []
          progress.update(failure or str(each))
        if not ended:
          time.sleep(_POLL_SECONDS)
    finally:
      progress.close()
      if running:
        self._stream.write('stopping the runs; once more to kill them\n')
        _stop(running)
    return failures

  def _is_done(self, each: Job) -> bool:
    """Returns whether a run's figures are there, after a look into its folder."""
    if self._store.has(each.run, each.seed):
      return True
    numbers = store_lib.read_folder(each.folder, self._store.columns(each.run))
    if numbers is None:
      return False
    self._store.add(each.run, each.seed, numbers)
    return True

  def _goes_on(self, each: Job, status: int) -> bool:
    """Returns whether a command that has ended well is to be followed by another."""
    begun = self._begun[each]
    columns = self._store.columns(each.run)
    if status or self._is_done(each):
      return False
    return each.command(columns) != begun

  def _begin(self, each: Job) -> 'subprocess.Popen[bytes]':
    each.folder.parent.mkdir(parents=True, exist_ok=True)
    command = each.command(self._store.columns(each.run))
    self._begun[each] = command
    with each.log.open('a', encoding='utf-8') as log:
      return self._start(command, log)

  def _end(self, each: Job, status: int) -> str:
    """Takes the figures of a run that has ended; returns what failed, '' if nothing."""
    if status:
      return f'{each}: status {status}, {_last_line(each.log)} ({each.log})'
    if self._is_done(each):
      return ''
    columns = self._store.columns(each.run)
    return f'{each}: {store_lib.describe_missing(each.folder, columns)}.'


def _stop(running: Mapping[Job, 'subprocess.Popen[bytes]']) -> None:
  """Ends runs: they are asked to save their state, then killed."""
  for process in running.values():
    process.send_signal(signal.SIGINT)
  deadline = time.monotonic() + _GRACE_SECONDS
  try:
    for process in running.values():
      with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
  finally:
    for process in running.values():
      # The TFF worker of a run ends with it.
      process.kill()
      process.wait()


def _last_line(log: pathlib.Path) -> str:
  lines = log.read_text(encoding='utf-8', errors='replace').split('\n')
  return next((line for line in reversed(lines) if line.strip()), 'without a word')


class _Progress:
  """A line for each run that has ended, with the time left."""

  def __init__(self, total: int, at_a_time: int, stream: TextIO):
    self._total, self._at_a_time, self._stream = total, at_a_time, stream
    self._done = 0
    self._started = time.monotonic()

  def update(self, what: str) -> None:
    """Tells that a run has ended, and how."""
    self._done += 1
    seconds = (time.monotonic() - self._started) / self._done
    left = tqdm.tqdm.format_interval(seconds * (self._total - self._done))
    self._stream.write(f'run {self._done}/{self._total}: {what}; {left} left\n')
    self._stream.flush()

  def close(self) -> None:
    """Ends the display."""


class _Bar(_Progress):
  """A bar on a terminal; failures are told above it."""

  def __init__(self, total: int, at_a_time: int, stream: TextIO):
    super().__init__(total, at_a_time, stream)
    self._bar = tqdm.tqdm(
      total=total,
      file=stream,
      unit='run',
      dynamic_ncols=True,
      bar_format='{desc}{n_fmt}/{total_fmt} |{bar}| {elapsed}, {remaining} left',
      desc='runs ',
    )

  def update(self, what: str) -> None:
    self._bar.write(what, file=self._stream)
    self._bar.update()

  def close(self) -> None:
    self._bar.close()


def _progress(total: int, at_a_time: int, stream: TextIO) -> _Progress:
  return (_Bar if stream.isatty() else _Progress)(total, at_a_time, stream)
