"""A run whose workers are killed and frozen at work equals an undisturbed run.

`make kill-campaign`: a worker is killed in each round, and in every tenth another one
is frozen. docs/hosts.md has the counts that it prints.
"""

from collections.abc import Callable
import pathlib
import random
import threading
import time
from typing import Any

import numpy as np
import pytest

from tasks import registry
from tests.torture import machines
from tests.torture import trials
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.augment import byol
from tff_ssl.encoders import projector
from tff_ssl.encoders import resnet
from tff_ssl.execution import contexts
from tff_ssl.execution import partial_rounds
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import statistics
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.settings import learning
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

pytestmark = pytest.mark.torture
_WORKERS = _PARTS = 8
_CLIENTS, _COHORT, _EXAMPLES = 64, 16, 4
# Seconds after which a silent host is given up.
_TIMEOUT = 10.0
# Seconds after which frozen hosts thaw, by turns: before and after they are given up.
_THAW = (2.0, 20.0)
_SEED = 0


def test_kills_of_workers_change_nothing(pytestconfig, tmp_path, tally):
  rounds = trials.counts(pytestconfig)['workers']
  process, cohort_fn = _problem()
  for name in ('undisturbed', 'disturbed'):
    with machines.started(_WORKERS) as started:
      disturbed = _Disturbed(process, started, rounds)
      algorithm = process if name == 'undisturbed' else disturbed
      try:
        _run(algorithm, cohort_fn, started, rounds, tmp_path / name, tally)
      finally:
        disturbed.thaw()
  tally['workers: killed'] = disturbed.kills
  tally['workers: frozen'] = disturbed.frozen

  metrics = [
    (tmp_path / name / 'metrics.csv').read_bytes()
    for name in ('undisturbed', 'disturbed')
  ]
  assert len(metrics[0].splitlines()) == rounds + 1
  assert metrics[0] == metrics[1]


def _run(
  process: Any,
  cohort_fn: Callable[[int], Any],
  started: machines.Machines,
  rounds: int,
  folder: pathlib.Path,
  tally: Any,
) -> None:
  """Runs on the workers, and counts."""
  began = time.monotonic()
  with (
    contexts.hosts(started.addresses, _TIMEOUT) as execution,
    run_folder.RunFolder(folder, {}) as opened,
  ):
    loop.run(
      process,
      cohort_fn,
      opened,
      rounds,
      checkpoint_every=10,
      progress=False,
      execution=execution,
    )
    seconds = [float(row['seconds']) for row in opened.system.rows()]
  name = f'workers: {folder.name}'
  tally[f'{name}: parts repeated'] = execution.repeated
  tally[f'{name}: seconds'] = round(time.monotonic() - began, 1)
  tally[f'{name}: median round, seconds'] = round(float(np.median(seconds)), 1)
  tally[f'{name}: first round, seconds'] = round(seconds[0], 1)
  tally[f'{name}: slowest of the others, seconds'] = round(max(seconds[1:]), 1)


class _Disturbed:
  """A process that has a worker killed during each of its rounds."""

  def __init__(self, process: Any, started: machines.Machines, rounds: int):
    """Disturbs nothing yet."""
    self._process = process
    self._machines = started
    self._random = random.Random(_SEED)
    self._freezes = {*self._random.sample(range(1, rounds + 1), rounds // 10)}
    self._round = 0
    self._seconds = 1.0
    self._thaws: list[tuple[float, Callable[[], None]]] = []
    self.kills = self.frozen = 0
    self.initialize = process.initialize

  def next(self, state: Any, cohort: Any) -> Any:
    """Runs a round, and kills a worker at some moment during it."""
    self._round += 1
    began = time.monotonic()
    killer = threading.Thread(target=self._disturb, daemon=True)
    killer.start()
    output = self._process.next(state, cohort)
    # A running estimate of a round's seconds, from which the kill's moment is drawn.
    self._seconds = 0.5 * (self._seconds + time.monotonic() - began)
    killer.join()
    return output

  def thaw(self) -> None:
    """Lets all frozen workers continue."""
    for _, thaw in self._thaws:
      thaw()
    self._thaws.clear()

  def _disturb(self) -> None:
    victim, other = self._random.sample(range(_WORKERS), 2)
    moment = self._random.random() * min(self._seconds, 3.0)
    if self._round in self._freezes:
      after = _THAW[self.frozen % len(_THAW)]
      self._thaws.append((time.monotonic() + after, self._machines.freeze(other)))
      self.frozen += 1
    time.sleep(moment)
    self._machines.kill(victim)
    self.kills += 1
    now = time.monotonic()
    for due in [entry for entry in self._thaws if entry[0] <= now]:
      due[1]()
      self._thaws.remove(due)


def _problem() -> tuple[Any, Callable[[int], Any]]:
  """Returns DCCO for a small network on digits, in parts, and its cohorts."""
  train = registry.load('digits', None, None, False, seed=0).train
  images = train.fields['image']
  clients = {
    f'client_{k:03d}': np.arange(_EXAMPLES * k, _EXAMPLES * (k + 1))
    for k in range(_CLIENTS)
  }
  data = client_data.ArrayClientData(images, train.example_id, clients)
  simulated = simulated_clients.Clients(data, num_packs=_PARTS)
  encoder = resnet.build_encoder('resnet8', images.shape[1:], 0.25)
  head = projector.build_projector(encoder.output_dim, (16, 16))
  model = dual_encoder.Siamese(encoder, head, byol.by_name('mild'))
  process = processes.build(
    dcco.dcco(
      statistics.StatisticsObjective(model),
      optimizers.build_optimizer(learning.Server(1e-3, kind='adam')),
    ),
    simulated.element_spec,
  )
  cohorts = cohort_sampling.Cohorts(data.client_ids, _COHORT, seed=_SEED)
  return (
    partial_rounds.in_parts(process, _PARTS),
    lambda round: simulated.cohort(cohorts(round)),
  )
