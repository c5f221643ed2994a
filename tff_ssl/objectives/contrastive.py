"""SimCLR's NT-Xent over the examples of one batch (Chen et al., 2020)."""

import dataclasses

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.losses import contrastive
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder


@dataclasses.dataclass(frozen=True)
class ContrastiveObjective(dual_encoder.LossOfPairs, collapse.SpreadReported):
  """NT-Xent: each view is contrasted with the batch's other 2n - 2 views.

  Attributes:
    model: The dual encoding model.
    temperature: Softmax temperature; 0.1 in the DCCO paper (B).
  """

  model: dual_encoder.DualEncoder
  temperature: float = 0.1

  def __post_init__(self) -> None:
    checks.positive(temperature=self.temperature)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the within-batch loss of encodings (see `base.Separable`)."""
    del examples  # No label is needed.
    f, g = encodings['f'], encodings['g']
    loss = contrastive.nt_xent(f, g, self.temperature)
    return loss, collapse.spread_metrics(f)
