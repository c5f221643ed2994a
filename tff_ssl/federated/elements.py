"""What the elements of client data must be, for the networks that read them."""

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tff_ssl.computing import assertions
from tff_ssl.encoders import network
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder

# How far floating images may leave [0, 1], as after resizing.
_TOLERANCE = 0.01
_IMAGE_RANK = 3


def check_fields(element_spec: Any, objective: Any) -> None:
  """Checks that examples have what the encoders of an objective read.

  Args:
    element_spec: `tf.TensorSpec`s of one example, or the `packs.PackSpec` of them.
    objective: What clients minimise.

  Raises:
    ValueError: If a field is missing, or is not of an encoder's rank and, for images,
      of its channels and of numbers.
  """
  fields = getattr(element_spec, 'element_spec', element_spec)
  if not isinstance(fields, Mapping):
    # Checked with the id of examples.
    return
  for field, encoder in _encoders(objective).items():
    if field not in fields:
      raise ValueError(
        f'The elements of the client data have the fields {", ".join(fields)}; they '
        f'must have `{field}`, which the encoder reads.'
      )
    spec, needed = fields[field], list(encoder.input_shape)
    shape = spec.shape.as_list()
    is_image = len(needed) == _IMAGE_RANK
    if len(shape) != len(needed) or (is_image and shape[-1] != needed[-1]):
      raise ValueError(
        f'`{field}` of an example has shape {shape}; the encoder takes {needed}.'
      )
    if is_image and spec.dtype != tf.uint8 and not spec.dtype.is_floating:
      raise ValueError(
        f'`{field}` of an example is {spec.dtype.name}; images must be uint8, or '
        'floating from 0 to 1.'
      )


def in_range(examples: base.Examples, objective: Any) -> base.Examples:
  """Returns examples whose floating images are from 0 to 1, or not finite.

  Clients with images that are not finite are discarded and counted. Images of uint8, as
  all programs have them, need no check.

  Args:
    examples: n >= 0 examples.
    objective: What clients minimise.

  Raises:
    ValueError: When it runs in one of our contexts and an image is out of range.
  """
  for field, encoder in _encoders(objective).items():
    images = examples[field]
    if len(encoder.input_shape) != _IMAGE_RANK or not images.dtype.is_floating:
      continue
    finite = tf.where(tf.math.is_finite(images), images, tf.zeros([], images.dtype))
    low, high = tf.reduce_min(finite), tf.reduce_max(finite)
    examples = assertions.checked(
      examples,
      (low >= -_TOLERANCE) & (high <= 1 + _TOLERANCE),
      f'`{field}` of an example is from {{}} to {{}}; floating images must be from 0 '
      'to 1, and those from 0 to 255 must be uint8.',
      low,
      high,
    )
  return examples


def _encoders(objective: Any) -> dict[str, network.Network]:
  """Returns the encoders of an objective by the field that they read."""
  networks = {} if objective is None else objective.networks
  return {
    dual_encoder.field_of(prefix, net): net
    for prefix, net in networks.items()
    if prefix in dual_encoder.ENCODERS
  }
