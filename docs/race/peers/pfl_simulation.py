"""pfl-research: its simulated backend and federated averaging.

When it is imported, it joins the processes that its environment variables name.

Granqvist et al. pfl-research: simulation framework for accelerating research in Private
Federated Learning. NeurIPS Datasets and Benchmarks 2024.
"""

import dataclasses
import itertools

import numpy as np
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam.base import NNEvalHyperParams
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel
import torch

from docs.race.peers import protocol
from docs.race.peers import torch_network

# pfl evaluates at least before the first round.
_NEVER = 2**31


class Simulation:
  """A federated run; this process trains its share of the clients."""

  def __init__(self, problem: protocol.Problem):
    """Builds model, clients and algorithm."""
    # All processes must draw the same clients.
    np.random.seed(protocol.SEED)
    torch.manual_seed(protocol.SEED)
    self._network = torch_network.build(problem)
    self._model = PyTorchModel(
      model=self._network,
      local_optimizer_create=torch.optim.SGD,
      central_optimizer=torch.optim.SGD(self._network.parameters(), lr=1.0),
      # With bfloat16, PyTorch's autocast of forward pass and loss.
      amp_dtype=getattr(torch, problem.precision),
    )
    images = torch_network.tensors(problem.images)
    labels = torch.from_numpy(problem.labels).long()

    def client(index: int) -> Dataset:
      own = problem.client(index)
      return Dataset(raw_data=[images[own], labels[own]], user_id=str(index))

    clients = itertools.cycle(range(problem.num_clients))
    data = FederatedDataset(client, lambda: next(clients))
    self._backend = SimulatedBackend(data, data, postprocessors=[WeightByDatapoints()])
    self._algorithm = FederatedAveraging()
    self._params = NNAlgorithmParams(
      central_num_iterations=0,
      evaluation_frequency=_NEVER,
      train_cohort_size=problem.num_clients,
      val_cohort_size=0,
    )
    self._batch_size = problem.batch_size
    self._training = NNTrainHyperParams(
      local_batch_size=problem.batch_size,
      local_num_epochs=1,
      local_learning_rate=problem.learning_rate,
    )

  def rounds(self, count: int) -> None:
    """Trains `count` rounds with all clients, together with the other processes."""
    self._train(_tell(count))

  def follow(self) -> None:
    """Takes part in rounds until there are no more."""
    while count := _tell(0):
      self._train(count)

  def _train(self, count: int) -> None:
    done = self._params.central_num_iterations
    self._params = dataclasses.replace(
      self._params, central_num_iterations=done + count
    )
    self._algorithm.run(
      algorithm_params=self._params,
      backend=self._backend,
      model=self._model,
      model_train_params=self._training,
      model_eval_params=NNEvalHyperParams(local_batch_size=self._batch_size),
      send_metrics_to_platform=False,
    )

  def weights(self) -> protocol.Weights:
    """Returns the global weights."""
    return torch_network.weights(self._network)


def end() -> None:
  """Tells the other processes that there are no more rounds."""
  _tell(0)


def _tell(count: int) -> int:
  """Sends a number of rounds to the other processes, or receives it from the first."""
  told = [count]
  if torch.distributed.is_initialized():
    torch.distributed.broadcast_object_list(told, src=0)
  return int(told[0])
