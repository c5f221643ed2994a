"""The two sides of a comparison, each of which runs rounds from its last state."""

from collections.abc import Mapping
import dataclasses
import tempfile
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from docs.bench import experiments
from docs.bench import replay
from docs.bench import workloads
from tff_ssl.algorithms import centralized
from tff_ssl.encoders import network
from tff_ssl.federated import client_states
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.runs import flat_metrics
from tff_ssl.runs import stateful_rounds

# Rounds between checkpoints; a checkpoint drops states that are no longer needed.
_ROUNDS_KEPT = 10

Metrics = Mapping[str, float]


class Side(Protocol):
  """One side of a comparison."""

  def round(self, number: int) -> Metrics:
    """Runs a round, from drawing its clients or examples to reading its metrics.

    Args:
      number: Number of the round, which decides the cohort.
    """

  def weights(self) -> Any:
    """Returns the global model's `tff.learning.models.ModelWeights`."""


def build(problem: experiments.Problem, name: str) -> tuple[Side, Side]:
  """Builds both sides of an experiment, inside an execution context.

  Args:
    problem: What is trained.
    name: One of `experiments.NAMES`.

  Returns:
    What is measured, and what it is measured against: the same rounds in memory if
    clients keep states, otherwise centralized steps.
  """
  if name == experiments.PRECISION:
    half, full = (_precision(problem, p) for p in (network.BFLOAT16, network.FLOAT32))
    return half, full
  algorithm, objective = experiments.build(problem, name)
  federated = Federated(problem.clients, algorithm)
  if algorithm.is_stateful:
    return federated, InMemory(problem.clients, algorithm)
  return federated, Centralized(problem, objective)


def _precision(problem: experiments.Problem, precision: str) -> Side:
  """Returns centralized steps with the encoder in a precision."""
  encoder = problem.model.encoder.with_precision(precision)
  model = dataclasses.replace(problem.model, encoder=encoder)
  return Centralized(problem, experiments.OBJECTIVES[problem.objective](model))


class Federated:
  """Rounds of a federated process; clients' states are in a store on disk."""

  def __init__(self, clients: workloads.Clients, algorithm: phases.Algorithm):
    """Builds the process, and opens a store that is deleted with this object.

    Args:
      clients: The clients.
      algorithm: What they and the server do.
    """
    simulation = clients.simulation
    self._cohorts = clients.cohorts
    self._process: Any = processes.build(algorithm, simulation.element_spec)
    self._cohort: Any = simulation.cohort
    self._is_stateful = algorithm.is_stateful
    if self._is_stateful:
      self._process = stateful_rounds.StatefulRounds(self._process, simulation)
      self._folder = tempfile.TemporaryDirectory()
      self._process.resume(self._folder.name, 0)
      self._cohort = self._process.cohort
    self._state = self._process.initialize()

  def round(self, number: int) -> Metrics:
    """See `Side`."""
    output = self._process.next(self._state, self._cohort(self._cohorts(number)))
    self._state = output.state
    if self._is_stateful and (number + 1) % _ROUNDS_KEPT == 0:
      self._process.saved(number + 1)
    return flat_metrics.flatten(output.metrics[phases.CLIENT_WORK])

  def weights(self) -> Any:
    """See `Side`."""
    return self._process.get_model_weights(self._state)


class InMemory:
  """The same rounds in plain TensorFlow, without TFF, packs or a disk.

  Each client has its own weights, so the examples of several clients cannot go through
  one network together. What remains is the bare arithmetic of a round on one machine.

  The states of one round are kept for the next one only. With a large population the
  states of all rounds would fill most of the process's memory, which is to be measured
  for the federated side. A client that comes back later starts again, at the same cost.
  """

  def __init__(self, clients: workloads.Clients, algorithm: phases.Algorithm):
    """Starts from the initial state; see `Federated`."""
    self._clients = clients
    self._replay = replay.Replay(algorithm)
    self._state = self._replay.initialize()
    self._new = self._replay.new_client(self._state, 0)
    self._states: dict[str, client_states.ClientState] = {}

  def round(self, number: int) -> Metrics:
    """See `Side`."""
    data, names = self._clients.data, sorted(self._clients.cohorts(number))
    result = self._replay.next(
      self._state,
      [data.examples(data.positions(name)) for name in names],
      [self._states.get(name, self._of_new(name)) for name in names],
    )
    self._state = result.state
    self._states = dict(zip(names, result.clients, strict=True))
    return flat_metrics.flatten(result.metrics[phases.CLIENT_WORK])

  def weights(self) -> Any:
    """See `Side`."""
    return self._state.global_model_weights

  def _of_new(self, name: str) -> client_states.ClientState:
    return self._new._replace(client=np.int32(self._clients.data.ids.index(name)))


class Centralized:
  """Steps on the examples of the round's clients, as often as the clients visit them.

  A step takes all of them, or a batch of the clients' size.
  """

  def __init__(self, problem: experiments.Problem, objective: Any):
    """Starts from the initial weights.

    Args:
      problem: The clients, and the seed.
      objective: What a step minimises.
    """
    self._problem = problem
    self._process = centralized.Centralized(
      objective, experiments.server_optimizer(), problem.seed
    )
    self._state: Any = self._process.initialize()

  def round(self, number: int) -> Metrics:
    """See `Side`."""
    for batch in batches(self._problem, number):
      output: Any = self._process.next(self._state, [batch])
      self._state = output.state
    return flat_metrics.flatten(output.metrics[phases.CLIENT_WORK])

  def weights(self) -> Any:
    """See `Side`."""
    return self._process.get_model_weights(self._state)


def batches(problem: experiments.Problem, round: int) -> list[tf.data.Dataset]:
  """Returns the batches of the centralized steps that a round is compared with.

  If a client leaves out its last batch, they leave out as many of its examples: always
  the same ones, while the client leaves out different ones in each epoch.

  Args:
    problem: The clients.
    round: Number of the round, which decides the cohort.
  """
  clients = problem.clients
  visited = _visited(problem, round)
  positions = np.concatenate([clients.partition[k][:n] for k, n in visited.items()])
  size = problem.local.batch_size or len(positions)
  starts = [*range(0, len(positions), size)] * problem.local.epochs
  return [
    clients.data.create_tf_dataset_for_positions(positions[start : start + size])
    for start in starts
  ]


def visited_examples(problem: experiments.Problem, round: int) -> int:
  """Returns how many examples the clients of a round train on, in all epochs."""
  return sum(_visited(problem, round).values()) * problem.local.epochs


def _visited(problem: experiments.Problem, round: int) -> dict[str, int]:
  """Returns how many examples each client of a round trains on in an epoch."""
  clients = problem.clients
  batch_norm = any(net.mixes_examples for net in problem.model.networks.values())
  return {
    k: sum(problem.local.batch_sizes(len(clients.partition[k]), batch_norm))
    for k in clients.cohorts(round)
  }
