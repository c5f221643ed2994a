"""The last feature maps of an encoder, before they are averaged over positions."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders import vit

# How many of a convolutional encoder's stages are read, from the last.
_MOST = 2

# (encoder.apply or encoder.infer, its params, images) -> maps, the finest first.
Maps = Callable[
  [Callable[..., Any], Mapping[str, Any], tf.Tensor], tuple[tf.Tensor, ...]
]


def shapes(encoder: network_lib.Network) -> tuple[tuple[int, int, int], ...]:
  """Returns (height, width, channels) of the maps that heads read, the finest first.

  Args:
    encoder: A ResNet or another convolutional network, whose maps are the outputs of
      its last two stages; or a ViT, whose tokens in their grid are its only map.

  Raises:
    ValueError: The encoder has no maps, like an MLP.
  """
  if isinstance(encoder, vit.VisionTransformer):
    return ((*encoder.grid, encoder.output_dim),)
  maps = tuple(_stages(encoder).values())
  if not maps:
    raise ValueError(
      f'The encoder {encoder.name} has no feature maps; segmentation and detection '
      'need those of a convolutional network or of a ViT.'
    )
  return maps


def build(encoder: network_lib.Network) -> Maps:
  """Returns a function that computes the maps of `shapes`.

  Args:
    encoder: As in `shapes`.

  Returns:
    A function of `encoder.apply` (training) or `encoder.infer`, of the parameters that
    it takes, and of images [n, *input_shape], to a map [n, height, width, channels] for
    each shape.
  """
  if isinstance(encoder, vit.VisionTransformer):
    transformer = encoder
    shape = shapes(encoder)[0]

    # Without batch norm, training and inference are the same.
    def of_tokens(
      _: Callable[..., Any], params: Mapping[str, Any], images: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
      tokens = transformer.embed(params, images)
      return (tf.reshape(transformer.encode_tokens(params, tokens), [-1, *shape]),)

    return of_tokens

  names = tuple(_stages(encoder))

  def of_stages(
    apply: Callable[..., Any], params: Mapping[str, Any], images: tf.Tensor
  ) -> tuple[tf.Tensor, ...]:
    taps: dict[str, tf.Tensor] = {}
    apply(params, images, taps)
    return tuple(taps[name] for name in names)

  return of_stages


def _stages(encoder: network_lib.Network) -> dict[str, tuple[int, int, int]]:
  """Returns the shapes of the last tapped maps by name."""
  maps = {}
  for name, shape in encoder.tap_shapes.items():
    if len(shape) == 3:
      height, width, channels = shape
      maps[name] = (height, width, channels)
  return dict(list(maps.items())[-_MOST:])
