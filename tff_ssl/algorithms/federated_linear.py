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

import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.federated import phases
from tff_ssl.objectives import linear_classifier
from tff_ssl.settings import learning

# Of the clients' SGD, which starts afresh each round.
_MOMENTUM = 0.9


def federated_linear(
  num_features: int,
  num_classes: int,
  settings: learning.FederatedLinear | None = None,
  seed: int = 0,
) -> phases.Algorithm:
  """Returns the training, to be run for `settings.rounds` rounds.

  Args:
    num_features: d.
    num_classes: Number of classes.
    settings: Rounds, epochs, batch size and rate; the defaults when None. Clients with
      few examples take one step a round, and need a higher rate, such as 0.5 for four
      images of one class.
    seed: Seed of the order of examples.

  Returns:
    An algorithm whose trainable weights are `kernel` [d, classes] and `bias` [classes].
    Its elements have `features` [d], `example_id` and `label`.
  """
  own = settings or learning.FederatedLinear()
  clients = learning.SgdClients(
    learning_rate=own.learning_rate,
    schedule='cosine',
    epochs=own.epochs,
    batch_size=own.batch_size,
    momentum=_MOMENTUM,
  )
  return fedavg.fedavg(
    linear_classifier.LinearObjective(num_features, num_classes),
    tff.learning.optimizers.build_sgdm(1.0),
    fedavg.Training(clients, seed, own.rounds),
  )
