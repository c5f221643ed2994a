"""A true dual encoder: two modalities of an example, each with a network of its own.

Source: "Federated Training of Dual Encoding Models on Small Non-IID Client Datasets"
(DCCO), sections 1 and 4.
"""

from collections.abc import Mapping, Sequence
import dataclasses

import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder

LEFT_PROJECTOR = 'left_projector'
RIGHT_PROJECTOR = 'right_projector'


@dataclasses.dataclass(frozen=True)
class TwoTower(dual_encoder.DualEncoder):
  """Two networks over two modalities; examples hold `left` and `right`.

  Attributes:
    left: Network from the element's `left` to encodings [n, d_f], or to the features
      that its projector takes. This tower is evaluated and exported.
    right: Network from the element's `right` to encodings [n, d_g], or to features.
    left_projector: From features to encodings; None: the features are the encodings.
    right_projector: Likewise.
  """

  left: network.Network
  right: network.Network
  left_projector: network.Network | None = None
  right_projector: network.Network | None = None

  @property
  def output_dims(self) -> tuple[int, int]:
    """The sizes (d_f, d_g) of the two encodings."""
    left, right = self._towers
    return left[-1][1].output_dim, right[-1][1].output_dim

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks by the prefixes of their parameters' names."""
    return {prefix: net for tower in self._towers for prefix, net in tower}

  @property
  def _towers(self) -> list[list[tuple[str, network.Network]]]:
    """The networks of each tower, one after another, with their prefixes."""
    towers = (
      ((dual_encoder.LEFT, self.left), (LEFT_PROJECTOR, self.left_projector)),
      ((dual_encoder.RIGHT, self.right), (RIGHT_PROJECTOR, self.right_projector)),
    )
    return [
      [(prefix, net) for prefix, net in tower if net is not None] for tower in towers
    ]

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the encodings of both modalities (see `dual_encoder.DualEncoder`)."""
    del seed  # The two modalities are the two views: nothing is drawn.
    f, g = (
      self._encode(params, examples[field], tower)
      for field, tower in zip(
        (dual_encoder.LEFT, dual_encoder.RIGHT), self._towers, strict=True
      )
    )
    return f, g

  def project(self, params: base.Params, x: tf.Tensor, field: str) -> tf.Tensor:
    """Returns the encodings [n, d] of one modality, each by itself, as in inference.

    Args:
      params: All parameters, with population statistics if there are any.
      x: The values of `field` for n examples: images in [0, 1], or vectors.
      field: `left` or `right`.
    """
    for prefix, net in self._towers[
      (dual_encoder.LEFT, dual_encoder.RIGHT).index(field)
    ]:
      x = net.infer(parameter_names.select(params, prefix), x)
    return x

  def _encode(
    self,
    params: base.Params,
    x: tf.Tensor,
    tower: Sequence[tuple[str, network.Network]],
  ) -> tf.Tensor:
    x = tf.convert_to_tensor(x)
    x = x if x.dtype.is_floating else byol.to_float(x)
    for prefix, net in tower:
      x = net.apply(parameter_names.select(params, prefix), x)
    return x


def build_two_towers(
  left: network.Network,
  right: network.Network,
  projector_widths: Sequence[int],
  output_bias: bool = True,
) -> TwoTower:
  """Builds a model of two modalities with a projector behind each encoder.

  Args:
    left: Encoder that reads the field `left`.
    right: Encoder that reads the field `right`.
    projector_widths: Units of the layers of both projectors.
    output_bias: As in `dual_encoder.build_siamese`.

  Raises:
    ValueError: If an encoder reads another field.
  """
  for encoder, field in ((left, dual_encoder.LEFT), (right, dual_encoder.RIGHT)):
    if encoder.field != field:
      raise ValueError(
        f'The {field} encoder reads the field {encoder.field!r}; it must be {field!r}.'
      )
  heads = (
    projector.build_projector(
      encoder.output_dim,
      projector_widths,
      projector.like(encoder),
      name=name,
      output_bias=output_bias,
    )
    for encoder, name in ((left, LEFT_PROJECTOR), (right, RIGHT_PROJECTOR))
  )
  return TwoTower(left, right, *heads)
