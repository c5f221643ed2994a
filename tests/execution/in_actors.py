"""DCCO of clients whose examples are rows of arrays, and the actors that compute it."""

from collections.abc import Callable, Mapping
import contextlib
import pathlib
import re

import numpy as np
import psutil

from tests import tiny
from tests.algorithms import harness
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.execution import partial_rounds
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.simulation import client_data
from tff_ssl.simulation import simulated_clients

PARTS = 3
# Titles of workers, and the path of all else that Ray starts; a process that has it in
# its `sys.path` only is another's.
_OF_RAY = re.compile(r'ray::|\S*/site-packages/ray/')
_SIZES = (1, 2, 5, 4)
DATA = client_data.ArrayClientData(
  np.random.default_rng(0).integers(0, 255, (12, *tiny.IMAGE_SHAPE)).astype(np.uint8),
  np.arange(12, dtype=np.int64),
  {str(k): np.asarray(own) for k, own in enumerate(harness.split(_SIZES))},
)


class Run:
  """Rounds of DCCO in three parts, before whose rounds something may happen."""

  def __init__(self, as_rows: bool = True):
    """Builds the process, once for several runs.

    Args:
      as_rows: Whether values of clients are rows.
    """
    self._clients = simulated_clients.Clients(DATA, num_packs=PARTS, as_rows=as_rows)
    process = processes.build(
      dcco.dcco(
        harness.cco(),
        optimizers.build_optimizer(harness.ADAM),
        seed=harness.SEED,
      ),
      self._clients.element_spec,
    )
    self.process = partial_rounds.in_parts(process, PARTS, DATA.held)
    self.cohort = self._clients.cohort(DATA.client_ids)
    self._happens: Mapping[int, Callable[[], None]] = {}
    self._round = 0
    self.initialize = self.process.initialize

  def next(self, state, cohort):
    """Lets happen what should, then runs a round."""
    self._round += 1
    self._happens.get(self._round, lambda: None)()
    return self.process.next(state, cohort)

  def metrics(
    self,
    folder: pathlib.Path,
    rounds: int,
    happens: Mapping[int, Callable[[], None]] = {},
  ) -> bytes:
    """Returns what metrics.csv of a new run holds.

    Args:
      folder: Its folder.
      rounds: How many it has.
      happens: Called before rounds, by their numbers.
    """
    self._happens, self._round = happens, 0
    with run_folder.RunFolder(folder, {}) as opened:
      loop.run(self, lambda _: self.cohort, opened, rounds, progress=False)
    return (folder / 'metrics.csv').read_bytes()


def actors() -> list[psutil.Process]:
  """Returns the actors that this process has started."""
  return [each for each in of_ray() if _command(each)[0].startswith('ray::_Actor')]


def of_ray() -> list[psutil.Process]:
  """Returns what this process has started for Ray."""
  return [
    each
    for each in psutil.Process().children(recursive=True)
    if any(map(_OF_RAY.match, _command(each))) and each.status() != psutil.STATUS_ZOMBIE
  ]


def _command(process: psutil.Process) -> list[str]:
  """Returns the words of a process's command; an empty one if it has ended."""
  with contextlib.suppress(psutil.Error):
    return process.cmdline() or ['']
  return ['']
