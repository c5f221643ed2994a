"""Runs commands side by side, in processes of their own, and tells how far they are."""

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types
from typing import Generic, Protocol, TextIO, TypeVar

import tqdm

# Priority of the runs, and how long they have to save their state and end.
_NICE = 10
_GRACE_SECONDS = 120.0
_POLL_SECONDS = 0.1
_SET_PARENT_DEATH_SIGNAL = 1

# What starts a command: (arguments after `python`, file of its output) -> process.
Start = Callable[[Sequence[str], TextIO], 'subprocess.Popen[bytes]']


class Job(Protocol):
  """What is to be run; its text is how it is called."""

  @property
  def log(self) -> pathlib.Path:
    """The file of what it says."""

  def __hash__(self) -> int:
    """It is a key."""


_JobT = TypeVar('_JobT', bound=Job)


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


class Runner(abc.ABC, Generic[_JobT]):
  """Runs jobs, so many at a time; what a job is, a subclass says."""

  def __init__(self, jobs: int, start: Start = start, stream: TextIO | None = None):
    """Starts nothing yet.

    Args:
      jobs: How many run at a time.
      start: Starts a command.
      stream: For the progress; None: stderr.
    """
    self._at_a_time = jobs
    self._start = start
    self._stream = stream or sys.stderr
    self._begun: dict[_JobT, list[str]] = {}

  @abc.abstractmethod
  def is_done(self, job: _JobT) -> bool:
    """Returns whether nothing of a job is left to do."""

  @abc.abstractmethod
  def command(self, job: _JobT) -> list[str]:
    """Returns what follows `python`, for what is next of a job."""

  @abc.abstractmethod
  def missing(self, job: _JobT) -> str:
    """Returns why a job is not done whose commands have ended well."""

  def run(self, jobs: Sequence[_JobT]) -> list[str]:
    """Runs what is not done yet.

    A run whose folder is complete is not run again, one that was stopped goes on.
    However this ends, no run is left behind: by Ctrl-C or SIGTERM runs are asked to
    save their state.

    Args:
      jobs: What is to be there in the end.

    Returns:
      A sentence for each that failed.
    """
    waiting = [each for each in jobs if not self.is_done(each)]
    running: dict[_JobT, subprocess.Popen[bytes]] = {}
    failures: list[str] = []
    self._stream.write(
      f'{len(waiting):,} of {len(jobs):,} runs to do, {self._at_a_time} at a time\n'
    )
    self._stream.flush()
    progress = _progress(len(waiting), self._at_a_time, self._stream)
    with sigterm_as_ctrl_c():
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

  def _goes_on(self, each: _JobT, status: int) -> bool:
    """Returns whether a command that has ended well is to be followed by another."""
    if status or self.is_done(each):
      return False
    return self.command(each) != self._begun[each]

  def _begin(self, each: _JobT) -> 'subprocess.Popen[bytes]':
    each.log.parent.mkdir(parents=True, exist_ok=True)
    command = self.command(each)
    self._begun[each] = command
    with each.log.open('a', encoding='utf-8') as log:
      return self._start(command, log)

  def _end(self, each: _JobT, status: int) -> str:
    """Returns what failed of a job that has ended, '' if nothing."""
    if status:
      return f'{each}: status {status}, {_last_line(each.log)} ({each.log})'
    return '' if self.is_done(each) else f'{each}: {self.missing(each)}.'


@contextlib.contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
  """Has SIGTERM raise KeyboardInterrupt, where Python can handle signals."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return

  def interrupt(number: int, frame: types.FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt

  previous = signal.signal(signal.SIGTERM, interrupt)
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, previous)


def _stop(running: Mapping[_JobT, 'subprocess.Popen[bytes]']) -> None:
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
