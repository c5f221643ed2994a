"""SimCLR's NT-Xent over the examples of one batch (Chen et al., 2020)."""

import dataclasses

import tensorflow as tf

from tff_ssl.losses import contrastive
from tff_ssl.objectives import dual_encoder
from tff_ssl.settings import objectives
from tff_ssl.settings import parts


@parts.objective(objectives.Simclr)
@dataclasses.dataclass(frozen=True)
class SimclrObjective(dual_encoder.PairObjective):
  """NT-Xent: each view is contrasted with the batch's other 2n - 2 views.

  Attributes:
    model: The dual encoding model.
    settings: The temperature; 0.1 in the DCCO paper (B).
  """

  model: dual_encoder.DualEncoder
  settings: objectives.Simclr = objectives.Simclr()

  def loss_of_pairs(self, f: tf.Tensor, g: tf.Tensor) -> tf.Tensor:
    """Returns the within-batch loss of encodings [n, d]."""
    return contrastive.nt_xent(f, g, self.settings.temperature)
