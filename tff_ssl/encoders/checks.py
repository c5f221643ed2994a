"""Checks of a network's parameters and inputs; each error names the network."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import parameters

_NORMALIZATIONS = ('group', 'batch', 'none')
_MOST_LAYERS = 1000


def params(
  network: str,
  specs: Mapping[str, parameters.ParameterSpec],
  given: Mapping[str, Any],
) -> None:
  """Checks parameters.

  Args:
    network: Its name.
    specs: Of all parameters that it needs.
    given: Values by name.

  Raises:
    ValueError: One is missing, unknown or misshapen.
  """
  missing = [name for name in specs if name not in given]
  if missing:
    raise ValueError(
      f'params of {network} must hold all {len(specs)} parameters, '
      f'got none for {_listed(missing)}'
    )
  unknown = [name for name in given if name not in specs]
  if unknown:
    raise ValueError(
      f'params of {network} must hold only its {len(specs)} parameters, got also '
      f'{_listed(unknown)}'
    )
  for name, spec in specs.items():
    shape = tf.TensorShape(given[name].shape)
    if not shape.is_compatible_with(spec.shape):
      raise ValueError(
        f'parameter {name} of {network} must have shape {spec.shape}, got {shape}'
      )


def layers(name: str, count: int) -> None:
  """Checks a number of layers or blocks, which may come from an untrusted file.

  Args:
    name: What is counted.
    count: How many.

  Raises:
    ValueError: It is less than 1, or more than 1000.
  """
  if count < 1:
    raise ValueError(f'{name} must be at least 1, got {count!r}')
  if count > _MOST_LAYERS:
    raise ValueError(f'{name} must be at most {_MOST_LAYERS}, got {count!r}')


def normalization(kind: str) -> None:
  """Checks the normalization of a network's layers.

  Args:
    kind: 'group', 'batch' or 'none'.

  Raises:
    ValueError: It is none of these.
  """
  if kind not in _NORMALIZATIONS:
    raise ValueError(f'normalization must be one of {_NORMALIZATIONS}, got {kind!r}')


def image_shape(given: Sequence[int]) -> tuple[int, ...]:
  """Returns the shape of an image as integers.

  Args:
    given: (height, width, channels).

  Raises:
    ValueError: It is not the shape of an image.
  """
  shape = tuple(int(size) for size in given)
  if len(shape) != 3 or min(shape) < 1:
    raise ValueError(
      f'image_shape must be (height, width, channels) of at least 1, got {given}'
    )
  return shape


def batch(network: str, input_shape: tuple[int, ...], x: Any) -> tf.Tensor:
  """Returns a batch as a tensor whose shape after the first axis is known.

  Args:
    network: Its name.
    input_shape: Shape of one example.
    x: [n, *input_shape].

  Raises:
    ValueError: It is not floating, or has another shape.
  """
  x = tf.convert_to_tensor(x)
  expected = tf.TensorShape([None, *input_shape])
  if not x.dtype.is_floating:
    raise ValueError(
      f'input of {network} must be floating, got {x.dtype.name} (images are scaled '
      'by augmentation)'
    )
  if not x.shape.is_compatible_with(expected):
    raise ValueError(f'input of {network} must be {expected}, got {x.shape}')
  return tf.ensure_shape(x, expected) if not x.shape[1:].is_fully_defined() else x


def _listed(names: list[str], limit: int = 3) -> str:
  """Returns the first names and how many more there are."""
  more = len(names) - limit
  return ', '.join(names[:limit]) + (f' and {more} more' if more > 0 else '')
