"""The parts of every benchmark experiment: a problem, and its two sides."""

from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple

from binaries.benchmarking import in_memory
from binaries.benchmarking import states
from binaries.benchmarking import workloads
from tff_ssl.algorithms import centralized as centralized_lib
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder

# Small, so that the weights stay finite on noise; any rate costs the same.
SERVER_LEARNING_RATE = 1e-3


@dataclasses.dataclass(frozen=True)
class Problem:
  """What an experiment trains, and on what.

  Attributes:
    model: The dual encoder.
    clients: The clients, with the cohort of each round.
    local: Epochs and batch size, for the algorithms that have them.
    seed: Seed of the initial weights and the views, the same for both sides.
    objective: A name in `objectives.OBJECTIVES`, for experiments that take any.
  """

  model: dual_encoder.Siamese
  clients: workloads.Clients
  local: local_training.LocalPlan
  seed: int
  objective: str = 'simclr'


class Experiment(NamedTuple):
  """The two sides of a comparison.

  Attributes:
    federated: Its `next` takes the clients' data sets.
    centralized: Its `next` takes one batch as one data set; with stateful clients, it
      takes the ids of the clients.
  """

  federated: Any
  centralized: centralized_lib.Centralized | in_memory.InMemory


def with_states(
  problem: Problem,
  process: processes.Process,
  function: client_functions.StatefulFunction,
  init: Callable[[], base.Params],
  in_plain: type[in_memory.InMemory] = in_memory.InMemory,
) -> Experiment:
  """Returns both sides of an experiment with stateful clients.

  Args:
    problem: The clients.
    process: The federated side.
    function: The function of one client, the same as in the process.
    init: () -> initial parameters of the process's global model.
    in_plain: Class of the counterpart.
  """
  optimizer, data = server_optimizer(), problem.clients.data
  counterpart = in_plain(
    function, init, process, optimizer, SERVER_LEARNING_RATE, data, problem.seed
  )
  rounds = states.StatefulClients(process, problem.clients.simulation)
  return Experiment(rounds, counterpart)


def training(problem: Problem) -> fedavg.FedAvgConfig:
  """Returns how clients train: at the server's learning rate."""
  return fedavg.FedAvgConfig(problem.local, SERVER_LEARNING_RATE, seed=problem.seed)


def server_optimizer() -> Any:
  """Returns the optimizer that applies an update, on both sides."""
  return optimizers.build_optimizer(
    optimizers.OptimizerConfig('sgd', SERVER_LEARNING_RATE)
  )


def centralized(
  objective: base.Objective, problem: Problem
) -> centralized_lib.Centralized:
  """Returns the counterpart that takes all examples at once.

  Args:
    objective: What it minimises.
    problem: Provides the seed.
  """
  return centralized_lib.Centralized(objective, server_optimizer(), problem.seed)
