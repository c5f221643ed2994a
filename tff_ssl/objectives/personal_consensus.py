"""The loss of Per-SSFL: SimSiam of two models, one personal, drawn to the global.

"SSFL: Tackling Label Deficiency in Federated Learning via Personalized
Self-Supervision", Algorithm 2. On the same batch and its two views, with Z, P the
projections and predictions of the global model and z, p those of the personal one:

  Theta:   (D(P1, sg Z2) + D(P2, sg Z1)) / 2
  theta_k: (D(p1, sg z2) + D(p2, sg z1)) / 2
           + lambda (D(p1, P1) + D(p1, P2) + D(p2, P1) + D(p2, P2)) / 4, P constant

The two losses share no parameter, and no gradient of the second reaches Theta: one step
on their sum is a step on each.
"""

from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import two_models


@dataclasses.dataclass(frozen=True)
class PerSSFLObjective(base.Objective):
  """The sum of both losses, of the parameters of both models (see `two_models`).

  Attributes:
    simsiam: Networks and views, the same for both models.
    consensus_weight: lambda, at least 0; with 0 the two models are independent.
  """

  simsiam: simsiam.SimSiamObjective
  consensus_weight: kinds.NotNegative = 0.1

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks of both models."""
    return {
      f'{model}/{name}': net
      for model in (two_models.GLOBAL, two_models.PERSONAL)
      for name, net in self.simsiam.networks.items()
    }

  @property
  def collapsed_below(self) -> float | None:
    """The `encoding_std` below which the global model collapsed."""
    return self.simsiam.collapsed_below

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]; the same for both models."""
    params = self.simsiam.init(seed, dtype)
    return two_models.join(params, params)

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the sum of both losses, and their parts (see `base.Objective`).

    The metrics are SimSiam's for both models, the two losses `global_loss` and
    `personal_loss`, and `consensus`, the mean of the four D(p, P), from -1 (the models
    agree) to 1.
    """
    shared, personal = two_models.split(params)
    views = self.simsiam.views(examples, seed)
    shared_encodings = self.simsiam.encode_views(shared, views)
    personal_encodings = self.simsiam.encode_views(personal, views)
    shared_loss, metrics = self.simsiam.loss_of_encodings(shared_encodings, examples)
    personal_loss, personal_metrics = self.simsiam.loss_of_encodings(
      personal_encodings, examples
    )
    consensus = similarity.consensus_loss(
      personal_encodings['p1'],
      personal_encodings['p2'],
      tf.stop_gradient(shared_encodings['p1']),
      tf.stop_gradient(shared_encodings['p2']),
    )
    both = two_models.metrics_of_both(metrics, personal_metrics)
    both.update(
      global_loss=shared_loss, personal_loss=personal_loss, consensus=consensus
    )
    loss = shared_loss + personal_loss
    # At 0 not even the term's rounding enters the gradient, which is then SimSiam's.
    if self.consensus_weight:
      loss += self.consensus_weight * consensus
    return loss, both

  def summarize(self, metrics: base.Metrics) -> base.Metrics:
    """Returns the losses, the consensus and the spread of both models' encodings."""
    return two_models.summarize(self.simsiam, metrics)
