"""Clients' training between two averages, and the server's optimizer."""

from typing import Any

from binaries.config import run_config
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import optimizers
from tff_ssl.settings import learning


def server_optimizer(config: run_config.RunConfig) -> Any:
  """Builds the server's optimizer.

  Raises:
    ValueError: If its schedule does not fit the rounds.
  """
  _check_steps(config.server, 'server', config.rounds)
  return optimizers.build_optimizer(config.server, config.rounds)


def of_clients(config: run_config.RunConfig) -> fedavg.Training:
  """Returns how clients train.

  Raises:
    ValueError: If the schedule of their rate does not fit the rounds.
  """
  _check_steps(config.clients, 'clients', config.rounds)
  return fedavg.Training(config.clients, config.random_seed, config.rounds)


def refuse_noise(config: run_config.RunConfig, why: str) -> None:
  """Raises ValueError if a run is private; `why` says why its method cannot be."""
  if config.is_private:
    raise ValueError(
      f'aggregation is {config.aggregation.kind}; with --method={config.method.kind} '
      f'it must be plain or secure, because {why}.'
    )


def check(config: run_config.RunConfig) -> None:
  """Raises ValueError if clients or server cannot train as the run says."""
  of_clients(config)
  server_optimizer(config)


def _check_steps(scheduled: learning.Scheduled, name: str, rounds: int) -> None:
  """Refuses steps of a schedule that are not within the rounds."""
  if scheduled.steps and scheduled.steps[-1] >= rounds:
    steps = '/'.join(map(str, scheduled.steps))
    raise ValueError(
      f'steps of --{name} is {steps}; of {rounds} rounds, which count from 0, each '
      f'must be in [1, {rounds - 1}].'
    )
