"""tff_ssl: its federated averaging, executed in process (`contexts.in_process`)."""

import numpy as np

from docs.bench import sides
from docs.bench import workloads
from docs.race import work
from docs.race.peers import protocol
from tff_ssl.algorithms import fedavg
from tff_ssl.encoders import precision
from tff_ssl.execution import allocator
from tff_ssl.execution import contexts
from tff_ssl.federated import optimizers
from tff_ssl.settings import learning


class Federation:
  """A federated run."""

  def __init__(self, problem: protocol.Problem):
    """Builds clients, objective and process; a context must be open."""
    sizes = np.full(problem.num_clients, problem.client_size)
    clients = workloads.register(
      problem.images, sizes, len(sizes), protocol.SEED, label=problem.labels
    )
    is_whole = problem.batch_size >= problem.client_size
    local = learning.SgdClients(
      learning_rate=problem.learning_rate,
      batch_size=None if is_whole else problem.batch_size,
    )
    algorithm = fedavg.fedavg(
      work.objective(problem.loss, problem.precision),
      optimizers.build_optimizer(learning.SgdServer()),
      fedavg.Training(local, seed=protocol.SEED),
    )
    self._side = sides.Federated(clients, algorithm)
    self._done = 0

  def rounds(self, count: int) -> None:
    """Trains `count` rounds with all clients."""
    for _ in range(count):
      self._side.round(self._done)
      self._done += 1

  def weights(self) -> protocol.Weights:
    """Returns the global weights."""
    weights = self._side.weights().trainable
    return {name: np.asarray(value) for name, value in weights.items()}


def run(problem: protocol.Problem, channel: protocol.Channel) -> None:
  """Serves a federated run until there are no more requests."""
  # As in every program of ours.
  precision.check(problem.precision)
  allocator.keep_freed_memory()
  names = ('tensorflow', 'tensorflow-federated', 'numpy')
  with contexts.in_process():
    channel.serve(Federation(problem), names, '`contexts.in_process`, a pack a core')
