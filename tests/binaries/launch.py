"""Starts the binaries as a person does, with runs that are as small as they can be."""

from collections.abc import Callable
import csv
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, NamedTuple

import numpy as np

from tests import forked

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 300
# A fifth fewer operations to trace than of the views that are drawn by default, which
# the runs of fedavg_ssl_test and the README's example have.
FLIP = '--augmentation=flip'
# All of digits is loaded and evaluated: what is small is the model and the rounds.
SMALL = (
  '--task=digits',
  FLIP,
  '--clients_per_round=4',
  '--encoder=conv2:width=0.125',
)
# Each client a value: a quarter fewer operations to trace than packs, which other runs
# have as users do (dcco, fedema), and the same rounds (conformance_test).
APART = '--runtime=packs=0'
# Clients of eight images: a round takes hundredths of a second.
TINY = (
  APART,
  FLIP,
  '--task=digits',
  '--partition=iid:clients=3',
  '--clients_per_round=2',
  '--data=at_most=8',
  '--evaluation=methods=knn',
)

Process = subprocess.Popen[str] | forked.Process


class Ended(NamedTuple):
  """A process that has ended, with its run folder."""

  folder: pathlib.Path
  status: int
  stdout: str
  stderr: str


class Made(dict[str, Ended]):
  """Runs by name, each made when it is first asked for."""

  def __init__(self, make: Callable[[str], Ended]):
    super().__init__()
    self._make = make

  def __missing__(self, name: str) -> Ended:
    self[name] = self._make(name)
    return self[name]


def start(
  binary: str, *flags: str, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
  """Starts `python -m binaries.BINARY`."""
  inherited = dict(os.environ)
  # Which lines of TensorFlow are shown is for the binary to say.
  inherited.pop('TF_CPP_MIN_LOG_LEVEL', None)
  return subprocess.Popen(
    [sys.executable, '-m', f'binaries.{binary}', *flags],
    cwd=ROOT,
    env={**inherited, **(environment or {})},
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    preexec_fn=heed_ctrl_c,
  )


def python(code: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess:
  """Runs code at the root of the checkout; returns the process, with what it printed.

  Args:
    code: A program.
    *arguments: Its command line.
    **options: Of `subprocess.run`, besides those or in their place.
  """
  usual = {'cwd': ROOT, 'capture_output': True, 'text': True, 'timeout': SECONDS}
  return subprocess.run([sys.executable, '-c', code, *arguments], **usual | options)


def fork_quickly(binary: str, *flags: str) -> forked.Process:
  """Starts it where TensorFlow is imported, without optimized graphs: see `quick`."""
  return forked.Process('tests.quick', binary, *flags)


def heed_ctrl_c() -> None:
  """Has a process that is started heed SIGINT, which tests in the background ignore."""
  signal.signal(signal.SIGINT, signal.SIG_DFL)


def end(process: Process, folder: pathlib.Path, seconds: float = SECONDS) -> Ended:
  """Waits for a process, which is killed when it takes too long."""
  try:
    # Returns at the end of the pipes: a worker that held them open would block here.
    stdout, stderr = process.communicate(timeout=seconds)
  except subprocess.TimeoutExpired:
    process.kill()
    raise
  return Ended(folder, process.returncode, stdout, stderr)


def rows(folder: pathlib.Path) -> int:
  """Returns the number of rounds in metrics.csv."""
  path = folder / 'metrics.csv'
  return max(path.read_text().count('\n') - 1, 0) if path.exists() else 0


def table(folder: pathlib.Path, name: str = 'metrics.csv') -> list[dict[str, str]]:
  """Returns the rows of a table of a run."""
  with (folder / name).open(encoding='utf-8', newline='') as file:
    return list(csv.DictReader(file))


def weights(folder: pathlib.Path, round: int) -> dict[str, np.ndarray]:
  """Returns the trained parameters of a checkpoint of a run by their names."""
  start = 'state/global_model_weights/trainable/'
  with np.load(folder / 'checkpoints' / f'round_{round:08}.npz') as archive:
    return {
      name.removeprefix(start): archive[name]
      for name in archive.files
      if name.startswith(start)
    }


def wait_for_rows(process: Process, folder: pathlib.Path, count: int) -> None:
  """Waits until a run has recorded so many rounds."""
  deadline = time.monotonic() + SECONDS
  while rows(folder) < count:
    assert process.poll() is None, process.communicate()[1]
    assert time.monotonic() < deadline
    time.sleep(0.002)
