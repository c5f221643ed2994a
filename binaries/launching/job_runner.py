"""Runs commands side by side, in separate processes, and reports their progress.

One thread starts and polls them all, without an executor of `concurrent.futures`: the
kernel ends a process with the thread that started it (`forks.end_with_parent`), and an
executor's threads end before its interrupted jobs have saved their state.
"""

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
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

from binaries.launching import forks

# Niceness of the runs, and how long they have to save their state and end.
_NICE = 10
_GRACE_SECONDS = 120.0
_POLL_SECONDS = 0.1


class Process(Protocol):
  """The part of `subprocess.Popen` that is needed for a command that was started."""

  def poll(self) -> int | None:
    """Returns the exit status; None while it runs."""

  def send_signal(self, number: int) -> None:
    """Sends a signal, if it has not ended."""

  def kill(self) -> None:
    """Kills it, if it has not ended."""

  def wait(self, timeout: float | None = None) -> int:
    """Waits for it, or raises `subprocess.TimeoutExpired`; returns the status."""


# Starts a command: (arguments after `python`, file for its output) -> process.
Start = Callable[[Sequence[str], TextIO], Process]


class Job(Protocol):
  """Something to run; its `str` names it in messages."""

  @property
  def log(self) -> pathlib.Path:
    """The file for its output."""

  def __hash__(self) -> int:
    """Makes it usable as a key."""


_JobT = TypeVar('_JobT', bound=Job)


def start(arguments: Sequence[str], log: TextIO) -> Process:
  """Starts one of our programs; it ends with this process, however that ends.

  Args:
    arguments: The arguments after `python`.
    log: The file for its output.
  """
  return subprocess.Popen(
    [sys.executable, *arguments],
    stdin=subprocess.DEVNULL,
    stdout=log,
    stderr=log,
    # Ctrl-C is for this process, which passes it on once; a second one would stop the
    # run without saving.
    start_new_session=True,
    preexec_fn=functools.partial(_in_child, os.getpid()),
  )


def _in_child(parent: int) -> None:
  """Lowers the priority, and has the kernel end the run with its parent."""
  os.nice(_NICE)
  forks.end_with_parent(parent)


@contextlib.contextmanager
def starting() -> Iterator[Start]:
  """Returns a function that starts our programs; they end with the block at the latest.

  If possible they are forked by a process that has imported TensorFlow: each run is a
  separate process, and begins five seconds sooner.
  """
  if not forks.can_fork():
    yield start
    return
  by = forks.Forks(nice=_NICE)

  def fork(arguments: Sequence[str], log: TextIO) -> Process:
    option, *command = arguments
    if option != '-m':
      return start(arguments, log)
    return forks.Process(by, command, str(pathlib.Path(log.name).absolute()))

  try:
    yield fork
  finally:
    by.close()


class Runner(abc.ABC, Generic[_JobT]):
  """Runs jobs, a limited number at a time; a subclass says what a job is."""

  def __init__(
    self, jobs: int, start: Start | None = None, stream: TextIO | None = None
  ):
    """Starts nothing yet.

    Args:
      jobs: Most jobs that run at a time.
      start: Starts a command; None: see `starting`.
      stream: Where progress is shown; None: stderr.
    """
    self._at_a_time = jobs
    self._start = start
    self._stream = stream or sys.stderr
    self._begun: dict[_JobT, list[str]] = {}

  @abc.abstractmethod
  def is_done(self, job: _JobT) -> bool:
    """Returns whether a job has nothing left to do."""

  @abc.abstractmethod
  def command(self, job: _JobT) -> list[str]:
    """Returns the arguments after `python` for the next command of a job."""

  @abc.abstractmethod
  def missing(self, job: _JobT) -> str:
    """Returns why a job is not done although its commands succeeded."""

  def run(self, jobs: Sequence[_JobT]) -> list[str]:
    """Runs the jobs that are not done yet.

    A run whose folder is complete is not repeated; one that was stopped resumes.
    However this ends, no run is left behind: Ctrl-C or SIGTERM asks the runs to save
    their state.

    Args:
      jobs: The jobs to be done in the end.

    Returns:
      A sentence for each job that failed.
    """
    waiting = [each for each in jobs if not self.is_done(each)]
    running: dict[_JobT, Process] = {}
    failures: list[str] = []
    self._stream.write(
      f'{len(waiting):,} of {len(jobs):,} runs to do, {self._at_a_time} at a time\n'
    )
    self._stream.flush()
    progress = _progress(len(waiting), self._at_a_time, self._stream)
    with sigterm_as_ctrl_c(), contextlib.ExitStack() as opened:
      begin = self._start or opened.enter_context(starting())
      try:
        while waiting or running:
          while waiting and len(running) < self._at_a_time:
            each = waiting.pop(0)
            running[each] = self._begin(each, begin)
          statuses = {each: process.poll() for each, process in running.items()}
          ended = {k: status for k, status in statuses.items() if status is not None}
          for each, status in ended.items():
            del running[each]
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
          self._stream.write('stopping the runs; interrupt again to kill them\n')
          _stop(running)
    return failures

  def _goes_on(self, each: _JobT, status: int) -> bool:
    """Returns whether a job has another command after one that ended."""
    if status or self.is_done(each):
      return False
    return self.command(each) != self._begun[each]

  def _begin(self, each: _JobT, begin: Start) -> Process:
    each.log.parent.mkdir(parents=True, exist_ok=True)
    command = self.command(each)
    self._begun[each] = command
    with each.log.open('a', encoding='utf-8') as log:
      return begin(command, log)

  def _end(self, each: _JobT, status: int) -> str:
    """Returns what failed in a job that has ended; '' if nothing did."""
    if status:
      return f'{each}: status {status}, {_last_line(each.log)} ({each.log})'
    return '' if self.is_done(each) else f'{each}: {self.missing(each)}.'


@contextlib.contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
  """Has SIGTERM raise KeyboardInterrupt, if Python can handle signals here."""
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


def _stop(running: Mapping[_JobT, Process]) -> None:
  """Ends runs: asks them to save their state, then kills them."""
  for process in running.values():
    process.send_signal(signal.SIGINT)
  deadline = time.monotonic() + _GRACE_SECONDS
  try:
    for process in running.values():
      with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
  finally:
    for process in running.values():
      # A run's TFF worker ends with it.
      process.kill()
      process.wait()


def _last_line(log: pathlib.Path) -> str:
  lines = log.read_text(encoding='utf-8', errors='replace').split('\n')
  return next((line for line in reversed(lines) if line.strip()), 'no output')


class _Progress:
  """Prints a line for each run that has ended, with the time left."""

  def __init__(self, total: int, at_a_time: int, stream: TextIO):
    self._total, self._at_a_time, self._stream = total, at_a_time, stream
    self._done = 0
    self._started = time.monotonic()

  def update(self, what: str) -> None:
    """Reports that a run has ended, and how."""
    self._done += 1
    seconds = (time.monotonic() - self._started) / self._done
    left = tqdm.tqdm.format_interval(seconds * (self._total - self._done))
    self._stream.write(f'run {self._done}/{self._total}: {what}; {left} left\n')
    self._stream.flush()

  def close(self) -> None:
    """Ends the display."""


class _Bar(_Progress):
  """A bar on a terminal, with failures above it."""

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
