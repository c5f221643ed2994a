"""SimSiam: each view predicts the other's projection, held constant.

Xinlei Chen, Kaiming He. Exploring Simple Siamese Representation Learning. CVPR 2021.

Shared: encoder, projector, predictor. Nothing stays on the client.

Deviations: the heads are normalized like the encoder. With batch norm, the programs'
default, this is as in the paper; with group norm and weight standardization encodings
collapse. There is no norm on the projector's output.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import online
from tff_ssl.objectives import separable
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

# Section 3.
_BOTTLENECK = 4


@dataclasses.dataclass(frozen=True)
class SimSiamObjective(separable.Separable):
  """(D(p1, sg z2) + D(p2, sg z1)) / 2, a loss from -1 (views agree) to 1.

  Attributes:
    model: Encoder, projector and views.
    predictor: h, from projections to predictions of the same size; None: the
      projections themselves (the paper's Table 2 (a), and ablations of FedEMA).
    settings: Whether the predicted projection is a constant; if not, it is the paper's
      Figure 2, which collapses.
  """

  model: dual_encoder.Siamese
  predictor: network.Network | None
  settings: objectives.Simsiam = objectives.Simsiam()

  def __post_init__(self) -> None:
    super().__post_init__()
    online.check(self.model, self.predictor)

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder, projector and predictor."""
    return online.networks(self.model, self.predictor)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns `p1`, `p2`, `z1` and `z2`, each [n, d] (see `separable.Separable`)."""
    return self.encode_views(params, self.views(examples, seed))

  def views(self, examples: base.Examples, seed: tf.Tensor) -> tf.Tensor:
    """Returns the first views of n examples and then the second, [2 n, H, W, C]."""
    return tf.concat(self.model.views(examples, seed), axis=0)

  def encode_views(self, params: base.Params, views: tf.Tensor) -> base.Encodings:
    """Returns what `encode` returns, for views that are already made.

    Args:
      params: As in `loss`.
      views: From `views`.
    """
    return self._of_projections(params, self.model.project(params, views, batches=2))

  def _of_projections(self, params: base.Params, z: tf.Tensor) -> base.Encodings:
    """Returns what `encode` returns, for the projections of both views."""
    p = online.predict(params, self.predictor, z, batches=2)
    # The gradient is stopped here, not in the loss: packs differentiate the loss with
    # respect to each encoding.
    targets = tf.stop_gradient(z) if self.settings.stop_gradient else z
    (p1, p2), (z1, z2) = tf.split(p, 2), tf.split(targets, 2)
    return collections.OrderedDict(p1=p1, p2=p2, z1=z1, z2=z2)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss and the spread of the first view's projections."""
    del examples  # No label is needed.
    loss = similarity.simsiam_loss(
      encodings['p1'], encodings['p2'], encodings['z1'], encodings['z2']
    )
    return loss, collapse.spread_metrics(encodings['z1'])

  def loss_with_outputs(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics, Sequence[tf.Tensor], Sequence[tf.Tensor]]:
    """Returns loss, metrics, and both views' predictions and projections."""
    z = self.model.project(params, self.views(examples, seed), batches=2)
    encodings = self._of_projections(params, z)
    loss, metrics = self.loss_of_encodings(encodings, examples)
    return loss, metrics, [encodings['p1'], encodings['p2']], tf.split(z, 2)


@parts.objective(objectives.Simsiam, of='encoder')
def build_simsiam(
  encoder: network.Network,
  augmentation: multiview.Config | None = None,
  settings: objectives.Simsiam = objectives.Simsiam(),
) -> SimSiamObjective:
  """Builds SimSiam with its heads.

  Args:
    encoder: Images to features.
    augmentation: How the views are made; the paper's when None.
    settings: Widths of the heads, for ResNet-50 three times 2048 in the paper, and the
      target. A predictor without a width is a quarter as wide as the projection.
  """
  views = augmentation or multiview.by_name('moco_v2')
  hidden = max(1, settings.projector[-1] // _BOTTLENECK)
  return SimSiamObjective(*online.build(encoder, views, settings, hidden), settings)
