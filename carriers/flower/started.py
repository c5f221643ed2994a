"""Processes that end with the program that has started them."""

from collections.abc import Callable, Mapping, Sequence
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, Self

import psutil

# Seconds that processes have to end by themselves.
_GRACE = 8.0
# Seconds that anything may take, and between two looks whether it is so.
_LONGEST, _PAUSE = 600.0, 0.05


class Started:
  """Processes that are ended, with all that they have started, at the block's end."""

  def __init__(self, logs: pathlib.Path, environment: Mapping[str, str]):
    """Sets where logs go, and what is added to the environment of each."""
    self._logs, self._environment = logs, {**os.environ, **environment}
    self._processes: dict[str, subprocess.Popen[bytes]] = {}

  def __enter__(self) -> Self:
    """Makes signals that end a program leave the block as an error does."""
    self._logs.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
      signal.signal(number, lambda number, _: sys.exit(128 + number))
    return self

  def __exit__(self, *_: Any) -> None:
    """Ends the processes: asks first, and kills those that stay."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
      signal.signal(number, signal.SIG_IGN)
    # Before any of them has ended: what a child leaves behind has no parent here.
    running = psutil.Process().children(recursive=True)
    for end in (psutil.Process.terminate, psutil.Process.kill):
      for process in running:
        try:
          end(process)
        except psutil.NoSuchProcess:
          continue
      _, running = psutil.wait_procs(running, _GRACE)

  def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
    """Starts a process, whose output goes to NAME.log."""
    with self.log(name).open('wb') as log:
      process = subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=self._environment,
        # Ctrl-C comes to this program alone, which ends the others in order.
        start_new_session=True,
      )
    self._processes[name] = process
    return process

  def wait_until(self, what: str, is_so: Callable[[], object]) -> None:
    """Waits until something is so.

    Raises:
      RuntimeError: If a process fails before, or it takes too long.
    """
    until = time.monotonic() + _LONGEST
    while not is_so():
      for name, process in self._processes.items():
        if process.poll():
          raise RuntimeError(f'{what}: {name} has failed; see {self.log(name)}.')
      if time.monotonic() > until:
        raise RuntimeError(f'{what}: this took more than {_LONGEST:.0f} s.')
      time.sleep(_PAUSE)

  def run(self, command: Sequence[str], seconds: float = 120) -> str:
    """Runs a command; returns what it prints.

    Raises:
      RuntimeError: If it fails.
      subprocess.TimeoutExpired: If it takes too long.
    """
    done = subprocess.run(
      command,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      stdin=subprocess.DEVNULL,
      env=self._environment,
      timeout=seconds,
      text=True,
      check=False,
    )
    if done.returncode:
      raise RuntimeError(f'{" ".join(command)}\n{done.stdout}')
    return done.stdout

  def log(self, name: str) -> pathlib.Path:
    """Returns the file of a process's output."""
    return self._logs / f'{name}.log'
