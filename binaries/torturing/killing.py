"""Runs whose hosts are killed and frozen at work, compared to an undisturbed run."""

import collections
from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import os
import pathlib
import random
import shutil
import signal
import threading
import time
from typing import Any

import numpy as np
import psutil

from tasks import registry
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.augment import byol
from tff_ssl.encoders import projector
from tff_ssl.encoders import resnet
from tff_ssl.execution import contexts
from tff_ssl.execution import partial_rounds
from tff_ssl.execution import worker_process
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import statistics
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

_WIDTH = 0.25
_PROJECTOR = (16, 16)
_CLIENTS, _COHORT, _EXAMPLES = 64, 16, 4
_CHECKPOINT_EVERY = 10
# Seconds after which frozen hosts thaw, by turns: before and after they are given up.
_THAW = (2.0, 20.0)


@dataclasses.dataclass(frozen=True)
class Settings:
  """Settings: how many workers are killed and frozen, and in how many rounds.

  Attributes:
    workers: Number of hosts, all on this machine.
    rounds: Number of rounds; one worker is killed in each.
    frozen: Number of these rounds in which another worker is frozen.
    parts: Number of parts of a round.
    timeout: Seconds after which a silent host is given up.
    seed: Seed of the choice of workers and moments.
  """

  workers: int = 8
  rounds: int = 100
  frozen: int = 10
  parts: int = 8
  timeout: float = 10.0
  seed: int = 0

  def __post_init__(self) -> None:
    if self.workers < 3:
      raise ValueError(f'workers is {self.workers}; it must be at least 3.')
    if not 0 <= self.frozen <= self.rounds:
      raise ValueError(
        f'frozen_rounds is {self.frozen}; it must be at most {self.rounds}.'
      )


class Machine:
  """The workers, which are restarted at the same addresses."""

  def __init__(self, count: int):
    """Starts the workers."""
    self.pids: list[int] = []
    self._workers = [self._start(0) for _ in range(count)]

  @property
  def addresses(self) -> list[str]:
    """'host:port' of each worker."""
    return [worker.address for worker in self._workers]

  def kill(self, k: int) -> None:
    """Kills a worker with SIGKILL, and starts another at its address."""
    worker = self._workers[k]
    worker.stop()
    self._workers[k] = self._start(int(worker.address.rpartition(':')[2]))

  def freeze(self, k: int) -> Callable[[], None]:
    """Stops a worker with SIGSTOP; returns a function that resumes it, if alive."""
    pid = self._workers[k].pid
    os.kill(pid, signal.SIGSTOP)

    def thaw() -> None:
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)

    return thaw

  def stop(self) -> int:
    """Ends all workers; returns how many of all that were started are left."""
    for worker in self._workers:
      worker.stop()
    return sum(map(_runs, self.pids))

  def _start(self, port: int) -> worker_process.Worker:
    worker = worker_process.Worker(1, 1, port=port)
    self.pids.append(worker.pid)
    return worker


class Disturbed:
  """A process that has a worker killed during each of its rounds."""

  def __init__(self, process: Any, machine: Machine, settings: Settings):
    """Disturbs nothing yet."""
    self._process = process
    self._machine = machine
    self._settings = settings
    self._random = random.Random(settings.seed)
    self._freezes = set(
      self._random.sample(range(1, settings.rounds + 1), settings.frozen)
    )
    self._round = 0
    self._seconds = 1.0
    self._thaws: list[tuple[float, Callable[[], None]]] = []
    self.kills = self.frozen = 0
    self.initialize = process.initialize

  def next(self, state: Any, cohort: Any) -> Any:
    """Runs a round, and kills a worker at some moment during it."""
    self._round += 1
    started = time.monotonic()
    killer = threading.Thread(target=self._disturb, daemon=True)
    killer.start()
    output = self._process.next(state, cohort)
    # A running estimate of a round's seconds, from which the kill's moment is drawn.
    self._seconds = 0.5 * (self._seconds + time.monotonic() - started)
    killer.join()
    return output

  def thaw(self) -> None:
    """Lets all frozen workers continue."""
    for _, thaw in self._thaws:
      thaw()
    self._thaws.clear()

  def _disturb(self) -> None:
    settings = self._settings
    victim, other = self._random.sample(range(settings.workers), 2)
    moment = self._random.random() * min(self._seconds, 3.0)
    if self._round in self._freezes:
      after = _THAW[self.frozen % len(_THAW)]
      self._thaws.append((time.monotonic() + after, self._machine.freeze(other)))
      self.frozen += 1
    time.sleep(moment)
    self._machine.kill(victim)
    self.kills += 1
    now = time.monotonic()
    for due in [entry for entry in self._thaws if entry[0] <= now]:
      due[1]()
      self._thaws.remove(due)


def measure(
  settings: Settings, folder: pathlib.Path
) -> collections.OrderedDict[str, Any]:
  """Runs undisturbed, then disturbed; returns the findings by name.

  Args:
    settings: What to do.
    folder: Folder for the two run folders, which are replaced.
  """
  process, cohort_fn = _problem(settings)
  texts: dict[str, bytes] = {}
  found: collections.OrderedDict[str, Any] = collections.OrderedDict()
  for name in ('undisturbed', 'disturbed'):
    path = folder / name
    shutil.rmtree(path, ignore_errors=True)
    machine = Machine(settings.workers)
    disturbed = Disturbed(process, machine, settings)
    algorithm = process if name == 'undisturbed' else disturbed
    started = time.monotonic()
    try:
      with (
        contexts.hosts(machine.addresses, settings.timeout) as execution,
        run_folder.RunFolder(path, {}) as opened,
      ):
        loop.run(
          algorithm,
          cohort_fn,
          opened,
          settings.rounds,
          checkpoint_every=_CHECKPOINT_EVERY,
          progress=False,
          execution=execution,
        )
        found[f'{name}: parts repeated'] = execution.repeated
        seconds = [float(row['seconds']) for row in opened.system.rows()]
    finally:
      disturbed.thaw()
      left = machine.stop()
    found[f'{name}: seconds'] = round(time.monotonic() - started, 1)
    found[f'{name}: slowest round, seconds'] = round(max(seconds), 1)
    texts[name] = (path / 'metrics.csv').read_bytes()
    rows = len(texts[name].splitlines()) - 1
    found[f'{name}: rounds lost'] = settings.rounds - rows
    found[f'{name}: workers left behind'] = left
    if name == 'disturbed':
      found['workers killed'] = disturbed.kills
      found['workers frozen'] = disturbed.frozen
  found['metrics.csv the same to the byte'] = texts['undisturbed'] == texts['disturbed']
  return found


def is_good(found: Mapping[str, Any]) -> bool:
  """Returns whether nothing was lost, changed, or left behind.

  Args:
    found: The findings of `measure`.
  """
  return found['metrics.csv the same to the byte'] and not any(
    value
    for name, value in found.items()
    if name.endswith(('rounds lost', 'left behind'))
  )


def _problem(settings: Settings) -> tuple[Any, Callable[[int], Any]]:
  """Returns DCCO for a small network on digits, in parts, and its cohorts."""
  train = registry.load('digits', None, None, False, seed=0).train
  images = train.fields['image']
  clients = {
    f'client_{k:03d}': np.arange(_EXAMPLES * k, _EXAMPLES * (k + 1))
    for k in range(_CLIENTS)
  }
  data = client_data.ArrayClientData(images, train.example_id, clients)
  simulated = simulated_clients.Clients(data, num_packs=settings.parts)
  encoder = resnet.build_encoder('resnet8', images.shape[1:], _WIDTH)
  head = projector.build_projector(encoder.output_dim, _PROJECTOR)
  model = dual_encoder.Siamese(encoder, head, byol.by_name('mild'))
  process = processes.build(
    dcco.dcco(
      statistics.StatisticsObjective(model),
      optimizers.build_optimizer(optimizers.OptimizerConfig('adam', 1e-3)),
    ),
    simulated.element_spec,
  )
  cohorts = cohort_sampling.Cohorts(data.client_ids, _COHORT, seed=settings.seed)
  return (
    partial_rounds.in_parts(process, settings.parts),
    lambda round: simulated.cohort(cohorts(round)),
  )


def _runs(pid: int) -> bool:
  try:
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False
