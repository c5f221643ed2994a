"""Runs commands side by side, in separate processes, and reports their progress.

Threads start them and wait for them. The kernel ends a process with the thread that
started it (`forks.end_with_parent`): none ends before its process has.
"""

import abc
from collections.abc import Callable, Sequence
from concurrent import futures
import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from typing import Generic, Protocol, TextIO, TypeVar

import tqdm

from binaries.launching import forks

# Niceness of the runs, and how long they have to save their state and end.
_NICE = 10
_GRACE_SECONDS = 120.0


class Process(Protocol):
  """The part of `subprocess.Popen` that is needed for a command that was started."""

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

  If it can be forked it begins five seconds sooner.

  Args:
    arguments: The arguments after `python`.
    log: The file for its output.
  """
  option, *command = arguments
  if option == '-m' and forks.can_fork():
    return forks.Process(command, log.name, nice=_NICE)
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


class Runner(abc.ABC, Generic[_JobT]):
  """Runs jobs, a limited number at a time; a subclass says what a job is."""

  def __init__(self, jobs: int, start: Start | None = None):
    """Starts nothing yet.

    Args:
      jobs: Most jobs that run at a time.
      start: Starts a command; None: `start` of this module.
    """
    self._at_a_time = jobs
    self._start = start
    self._running: set[Process] = set()
    self._stopping = threading.Event()
    self._lock = threading.Lock()

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
    However this ends, no run is left behind: KeyboardInterrupt, as of Ctrl-C or SIGTERM
    (`stopping`), asks the runs to save their state.

    Args:
      jobs: The jobs to be done in the end.

    Returns:
      A sentence for each job that failed, in their order.
    """
    waiting = [each for each in jobs if not self.is_done(each)]
    self._say(
      f'{len(waiting):,} of {len(jobs):,} runs to do, {self._at_a_time} at a time'
    )
    started = time.monotonic()
    with futures.ThreadPoolExecutor(self._at_a_time) as threads:
      doing = {threads.submit(self._do, each): each for each in waiting}
      try:
        for done, ended in enumerate(futures.as_completed(doing), start=1):
          failure = ended.result()
          seconds = (time.monotonic() - started) / done * (len(waiting) - done)
          left = tqdm.tqdm.format_interval(seconds)
          what = failure or doing[ended]
          self._say(f'run {done}/{len(waiting)}: {what}; {left} left')
      finally:
        self._stop()
    # In the order of the jobs, whichever ended first.
    return [failure for each in doing if (failure := each.result())]

  def _say(self, text: str) -> None:
    print(text, file=sys.stderr, flush=True)

  def _do(self, each: _JobT) -> str:
    """Runs the commands of a job; returns what failed, '' if nothing did."""
    each.log.parent.mkdir(parents=True, exist_ok=True)
    begun: list[str] = []
    while not self._stopping.is_set():
      # Subclasses need not know of threads.
      with self._lock:
        if self.is_done(each):
          break
        command = self.command(each)
      if command == begun:
        return f'{each}: {self.missing(each)}.'
      with each.log.open('a', encoding='utf-8') as log:
        process = (self._start or start)(command, log)
      self._running.add(process)
      if self._stopping.is_set():
        process.kill()
      status = process.wait()
      self._running.remove(process)
      if status:
        return f'{each}: status {status}, {_last_line(each.log)} ({each.log})'
      begun = command
    return ''

  def _stop(self) -> None:
    """Ends runs, if there are any: asks them to save their state, then kills them."""
    # Those that are just being started end themselves.
    self._stopping.set()
    running = [*self._running]
    if not running:
      return
    self._say('stopping the runs; interrupt again to kill them')
    for process in running:
      process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _GRACE_SECONDS
    try:
      for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
          process.wait(max(0.0, deadline - time.monotonic()))
    finally:
      for process in running:
        # A run's TFF worker ends with it.
        process.kill()
        process.wait()


def _last_line(log: pathlib.Path) -> str:
  lines = log.read_text(encoding='utf-8', errors='replace').split('\n')
  return next((line for line in reversed(lines) if line.strip()), 'no output')
