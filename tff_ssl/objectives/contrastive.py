"""SimCLR's NT-Xent over the examples of one batch (Chen et al., 2020)."""

from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.losses import contrastive
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder


@dataclasses.dataclass(frozen=True)
class ContrastiveObjective(
  base.LossOfEncodings, base.SharesAll, collapse.SpreadReported
):
  """NT-Xent: each view is contrasted with the batch's other 2n - 2 views.

  Attributes:
    model: The dual encoding model.
    temperature: Softmax temperature; 0.1 in the DCCO paper (B).
  """

  model: dual_encoder.DualEncoder
  temperature: float = 0.1

  def __post_init__(self) -> None:
    if self.temperature <= 0:
      raise ValueError(f'temperature is {self.temperature}; it must be positive.')

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Those of the model (see `base.Networked`)."""
    return self.model.networks

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]."""
    return self.model.init(seed, dtype)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns the encodings `f` and `g` of both views (see `base.Separable`)."""
    return dual_encoder.named_encodings(self.model, params, examples, seed)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the within-batch loss of encodings (see `base.Separable`)."""
    del examples  # No label is needed.
    f, g = encodings['f'], encodings['g']
    loss = contrastive.nt_xent(f, g, self.temperature)
    return loss, collapse.spread_metrics(f)
