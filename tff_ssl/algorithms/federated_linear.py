"""A linear classifier of frozen features, trained by FedAvg.

The linear evaluation of "SSFL: Tackling Label Deficiency in Federated Learning via
Personalized Self-Supervision", Chaoyang He, Zhengyu Yang, Erum Mushtaq, Sunwoo Lee,
Mahdi Soltanolkotabi, Salman Avestimehr, 2021: labels stay on the clients too, whereas
the usual linear probe gathers them.

A round is one of FedAvg: each client trains the server's classifier for E epochs of SGD
with momentum, and the results are averaged, weighted by examples. Clients hold
`features` in place of images, because the encoder is the same in every round.

With one client that has all examples a round is E epochs of centralized training.

Deviations:
  The rate falls to 0 by half a cosine over the rounds, so that the result does not
    depend on which clients came last; the classifier starts at zero.
"""

import dataclasses

import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.computing import kinds
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.objectives import linear_classifier
from tff_ssl.optimization import local
from tff_ssl.optimization import schedules


@dataclasses.dataclass(frozen=True)
class FederatedLinearConfig(kinds.Kind):
  """Hyperparameters of the training.

  Attributes:
    rounds: R.
    epochs: E, of a client in a round.
    batch_size: B; None: all of a client's examples.
    learning_rate: Learning rate of the clients in the first round; decayed to 0 by half
      a cosine. Clients with few examples take one step a round, and need a higher rate,
      such as 0.5 for four images of one class.
    momentum: Momentum of the clients' SGD, which starts afresh each round.
    seed: Seed of the order of examples, and of the cohorts.
  """

  rounds: kinds.Count = 100
  epochs: kinds.Count = 1
  batch_size: kinds.Count | None = 32
  learning_rate: kinds.Positive = 0.1
  momentum: kinds.BelowOne = 0.9
  seed: kinds.Natural = 0

  def fedavg(self) -> fedavg.FedAvgConfig:
    """Returns these values as a configuration of FedAvg."""
    optimizer = local.LocalOptimizer('sgd', self.momentum)
    return fedavg.FedAvgConfig(
      local_training.LocalPlan(self.epochs, self.batch_size, optimizer=optimizer),
      schedules.Cosine(self.learning_rate, self.rounds),
      seed=self.seed,
    )


def federated_linear(
  num_features: int, num_classes: int, config: FederatedLinearConfig | None = None
) -> phases.Algorithm:
  """Returns the training, to be run for `config.rounds` rounds.

  Args:
    num_features: d.
    num_classes: Number of classes.
    config: Hyperparameters; the defaults when None.

  Returns:
    An algorithm whose trainable weights are `kernel` [d, classes] and `bias` [classes].
    Its elements have `features` [d], `example_id` and `label`.
  """
  return fedavg.fedavg(
    linear_classifier.LinearObjective(num_features, num_classes),
    tff.learning.optimizers.build_sgdm(1.0),
    (config or FederatedLinearConfig()).fedavg(),
  )
