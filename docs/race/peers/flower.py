"""Flower: a ServerApp with FedAvg and a ClientApp, in its simulation runtime over Ray.

Beutel et al. Flower: A Friendly Federated Learning Framework. arXiv:2007.14390.
"""

import functools
import pathlib
import sys
import tempfile
from typing import Any

from flwr.app import ArrayRecord
from flwr.app import Context
from flwr.app import Message
from flwr.app import MetricRecord
from flwr.app import RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
import torch

from docs.race.peers import protocol
from docs.race.peers import torch_network

_MIB = 2**20
_OBJECT_STORE_MIB = 256


@functools.cache
def _loaded(folder: str) -> tuple[protocol.Problem, torch.Tensor, torch.Tensor]:
  """Reads the examples, once per process."""
  problem = protocol.read(pathlib.Path(folder))
  images = torch_network.tensors(problem.images)
  return problem, images, torch.from_numpy(problem.labels).long()


def client_app(folder: str) -> ClientApp:
  """Builds the client: it trains the model that it receives, and sends it back.

  Args:
    folder: Folder of the problem.
  """
  app = ClientApp()

  @app.train()
  def train(message: Message, context: Context) -> Message:
    problem, images, labels = _loaded(folder)
    own = problem.client(int(context.node_config['partition-id']))
    images, labels = images[own], labels[own]
    network = torch_network.Network(problem.loss)
    network.load_state_dict(message.content['arrays'].to_torch_state_dict())
    is_half = problem.precision == protocol.BFLOAT16
    optimizer = torch.optim.SGD(network.parameters(), lr=problem.learning_rate)
    total = 0.0
    for batch in torch.randperm(len(labels)).split(problem.batch_size):
      optimizer.zero_grad()
      # As PyTorch documents it: the loss too, but not the derivatives.
      with torch.autocast('cpu', torch.bfloat16, enabled=is_half):
        loss = network.loss(images[batch], labels[batch])
      loss.backward()
      optimizer.step()
      total += loss.item() * len(batch)
    metrics = {'loss': total / len(labels), 'num-examples': len(labels)}
    content = RecordDict(
      {
        'arrays': ArrayRecord(network.state_dict()),
        'metrics': MetricRecord(metrics),
      }
    )
    return Message(content=content, reply_to=message)

  return app


class Federation:
  """The server's side, which `ServerApp` runs."""

  def __init__(self, problem: protocol.Problem, grid: Grid):
    """Starts from the initial weights."""
    self._grid = grid
    self._network = torch_network.build(problem)
    self._arrays = ArrayRecord(self._network.state_dict())
    # All clients, and no evaluation.
    self._strategy = FedAvg(
      fraction_train=1.0,
      fraction_evaluate=0.0,
      min_available_nodes=problem.num_clients,
    )

  def rounds(self, count: int) -> None:
    """Trains `count` rounds with all clients."""
    result = self._strategy.start(self._grid, self._arrays, num_rounds=count)
    trained = result.train_metrics_clientapp
    if len(trained) < count:
      raise RuntimeError(f'{count - len(trained)} of {count} rounds had no reply')
    self._arrays = result.arrays

  def weights(self) -> protocol.Weights:
    """Returns the global weights."""
    return torch_network.weights(self._current())

  def _current(self) -> torch_network.Network:
    self._network.load_state_dict(self._arrays.to_torch_state_dict())
    return self._network


def run(problem: protocol.Problem, channel: protocol.Channel) -> None:
  """Serves a simulation until there are no more requests."""
  folder = sys.argv[-1]
  cores = protocol.cores()
  names = ('flwr', 'ray', 'torch', 'numpy')
  notes = f'`run_simulation` with {cores} Ray actors of 1 CPU'
  server = ServerApp()
  failures: list[BaseException] = []

  @server.main()
  def main(grid: Grid, context: Context) -> None:
    del context
    try:
      channel.serve(Federation(problem, grid), names, notes)
    except BaseException as error:
      # The simulation would only report it on stderr.
      failures.append(error)

  # It holds Ray's sockets, whose paths must be short.
  with tempfile.TemporaryDirectory(prefix='ray') as ray_folder:
    backend: dict[str, Any] = {
      'client_resources': {'num_cpus': 1, 'num_gpus': 0.0},
      'init_args': {
        'num_cpus': cores,
        'object_store_memory': _OBJECT_STORE_MIB * _MIB,
        '_temp_dir': ray_folder,
      },
    }
    run_simulation(server, client_app(folder), problem.num_clients, 'ray', backend)
  if failures:
    raise failures[0]
