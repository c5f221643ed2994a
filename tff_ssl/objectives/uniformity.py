"""Alignment and uniformity: both views of an image agree, and images are spread out.

Tongzhou Wang, Phillip Isola. Understanding Contrastive Representation Learning through
Alignment and Uniformity on the Hypersphere. ICML 2020.

Shared: encoder, projector. Nothing stays on the client.

Deviations: the projector is normalized like the encoder, for which the programs'
default is group norm, not batch norm. The augmentation is SimCLR's.
"""

import dataclasses

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.losses import hypersphere
from tff_ssl.objectives import dual_encoder


@dataclasses.dataclass(frozen=True)
class UniformityObjective(dual_encoder.PairObjective):
  """L_align + weight * (L_uniform of one view + L_uniform of the other) / 2.

  Attributes:
    model: Encoder, projector and views; in the paper (Appendix B) the projector has a
      hidden layer as wide as the features, and 128 dimensions.
    weight: Weight of uniformity; 0: nothing keeps the encodings from collapsing.
    t: Scale of the Gaussian potential exp(-t distance^2).
  """

  model: dual_encoder.DualEncoder
  weight: kinds.NotNegative = 1.0
  t: kinds.Positive = 2.0

  def loss_of_pairs(self, f: tf.Tensor, g: tf.Tensor) -> tf.Tensor:
    """Returns the loss of encodings [n, d]."""
    spread = hypersphere.uniformity(f, self.t) + hypersphere.uniformity(g, self.t)
    return hypersphere.alignment(f, g) + self.weight * spread / 2
