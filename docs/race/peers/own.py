"""tff_ssl: its federated averaging, executed in process (`contexts.in_process`)."""

import importlib.metadata

import numpy as np

from docs.race import work
from docs.race.peers import protocol
from tff_ssl.algorithms import fedavg
from tff_ssl.encoders import precision
from tff_ssl.execution import allocator
from tff_ssl.execution import contexts
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.partition import partitions
from tff_ssl.settings import learning
from tff_ssl.simulation import client_data
from tff_ssl.simulation import simulated_clients


class Federation:
  """A federated run."""

  def __init__(self, problem: protocol.Problem):
    """Builds clients, objective and process; a context must be open."""
    positions = np.arange(len(problem.images), dtype=np.int64)
    partition = partitions.from_sizes(
      positions, np.full(problem.num_clients, problem.client_size)
    )
    self._data = client_data.ArrayClientData(
      problem.images, positions, partition, problem.labels
    )
    self._clients = simulated_clients.Clients(self._data)
    is_whole = problem.batch_size >= problem.client_size
    batch_size = None if is_whole else problem.batch_size
    algorithm = fedavg.fedavg(
      work.objective(problem.loss, problem.precision),
      optimizers.build_optimizer(learning.SgdServer()),
      fedavg.Training(
        learning.SgdClients(learning_rate=problem.learning_rate, batch_size=batch_size),
        seed=protocol.SEED,
      ),
    )
    self._process = processes.build(algorithm, self._clients.element_spec)
    self._state = self._process.initialize()

  def rounds(self, count: int) -> None:
    """Trains `count` rounds with all clients."""
    for _ in range(count):
      cohort = self._clients.cohort(self._data.client_ids)
      output = self._process.next(self._state, cohort)
      self._state = output.state
      float(output.metrics['client_work']['loss'])

  def weights(self) -> protocol.Weights:
    """Returns the global weights."""
    weights = self._process.get_model_weights(self._state).trainable
    return {name: np.asarray(value) for name, value in weights.items()}


def run(problem: protocol.Problem, channel: protocol.Channel) -> None:
  """Serves a federated run until there are no more requests."""
  # As in every program of ours.
  precision.check(problem.precision)
  allocator.keep_freed_memory()
  names = ('tensorflow', 'tensorflow-federated', 'numpy')
  versions = {name: importlib.metadata.version(name) for name in names}
  with contexts.in_process():
    channel.serve(Federation(problem), versions, '`contexts.in_process`, a pack a core')
