"""Clients' training between two averages, and the server's optimizer."""

from typing import Any

from binaries.config import run_config
from binaries.config import training
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import local_training
from tff_ssl.federated import optimizers
from tff_ssl.optimization import local
from tff_ssl.optimization import schedules


def server_config(config: run_config.RunConfig) -> optimizers.OptimizerConfig:
  """Returns the server's optimizer.

  Raises:
    ValueError: If a field is out of range, or does nothing.
  """
  server = config.server
  _check_schedule(server, 'server', config.rounds)
  return optimizers.OptimizerConfig(
    name=server.kind,
    learning_rate=server.learning_rate,
    schedule=server.schedule,
    rounds=config.rounds,
    warmup_rounds=server.warmup_rounds,
    momentum=getattr(server, 'momentum', None),
    weight_decay=getattr(server, 'weight_decay', 0.0),
    boundaries=server.steps,
    factor=server.factor,
  )


def server_optimizer(config: run_config.RunConfig) -> Any:
  """Builds the server's optimizer."""
  return optimizers.build_optimizer(server_config(config))


def plan(config: run_config.RunConfig) -> local_training.LocalPlan:
  """Returns how a client trains.

  Raises:
    ValueError: If a field is out of range, or does nothing.
  """
  clients = _clients(config)
  own = {
    name: getattr(clients, name)
    for name in ('momentum', 'nesterov', 'beta_2')
    if hasattr(clients, name)
  }
  return local_training.LocalPlan(
    epochs=clients.epochs,
    batch_size=clients.batch_size,
    accumulate=clients.accumulate,
    proximal_weight=clients.proximal_weight,
    optimizer=local.LocalOptimizer(
      name=clients.kind, weight_decay=clients.weight_decay, **own
    ),
    drop_last=clients.drop_last_batch,
  )


def rate(config: run_config.RunConfig) -> schedules.Schedule:
  """Returns the clients' learning rate over rounds.

  Raises:
    ValueError: If a field is out of range, or does nothing.
  """
  clients = _clients(config)
  _check_schedule(clients, 'clients', config.rounds)
  if clients.schedule == 'cosine':
    return schedules.Cosine(clients.learning_rate, config.rounds, clients.warmup_rounds)
  if clients.schedule == 'constant':
    return schedules.Constant(clients.learning_rate)
  return schedules.Steps(clients.learning_rate, clients.steps, clients.factor)


def client_config(config: run_config.RunConfig) -> fedavg.FedAvgConfig:
  """Returns how clients train and how they are weighted."""
  return fedavg.FedAvgConfig(
    local=plan(config),
    client_learning_rate=rate(config),
    weighting=_clients(config).weighting,
    seed=config.random_seed,
    rounds=config.rounds,
  )


def refuse_noise(config: run_config.RunConfig, why: str) -> None:
  """Raises ValueError if a run is private; `why` says why its method cannot be."""
  if config.is_private:
    raise ValueError(
      f'aggregation is {config.aggregation.kind}; with --method={config.method.kind} '
      f'it must be plain or secure, because {why}.'
    )


def check(config: run_config.RunConfig) -> None:
  """Raises ValueError if clients or server cannot train as the run says."""
  client_config(config)
  server_config(config)


def _clients(config: run_config.RunConfig) -> training.Clients:
  clients: training.Clients = config.clients
  return clients


def _check_schedule(
  scheduled: training.Clients | training.Server, name: str, rounds: int
) -> None:
  """Refuses fields of a schedule that do not fit it.

  Args:
    scheduled: What has the schedule.
    name: The flag that says it.
    rounds: Number of rounds.
  """
  schedule, steps = scheduled.schedule, scheduled.steps
  if scheduled.warmup_rounds and schedule != 'cosine':
    raise ValueError(
      f'--{name} has warmup_rounds={scheduled.warmup_rounds} with schedule={schedule}; '
      'it is for schedule=cosine only.'
    )
  if bool(steps) != (schedule == 'steps'):
    raise ValueError(
      f'--{name} has schedule={schedule} and steps={"/".join(map(str, steps))}; '
      'schedule=steps needs rounds, as in steps=60/90, and no other takes them.'
    )
  if schedule != 'steps' and scheduled.factor != type(scheduled)().factor:
    raise ValueError(
      f'--{name} has factor={scheduled.factor:g} with schedule={schedule}; it is for '
      'schedule=steps only.'
    )
  if steps and not (steps[0] >= 1 and steps[-1] < rounds):
    raise ValueError(
      f'--{name} has steps={"/".join(map(str, steps))}; of {rounds} rounds, which '
      f'count from 0, each must be in [1, {rounds - 1}].'
    )
