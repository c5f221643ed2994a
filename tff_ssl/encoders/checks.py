"""Checks of a network's parameters and inputs; each error names the network."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.encoders import parameters

# Descriptions of networks may come from an untrusted file.
Layers = Annotated[int, kinds.Range(1, 1000)]
Width = Annotated[float, kinds.Range(1 / 16, 1000)]
Norm = Literal['group', 'batch', 'none']


def params(
  network: str,
  specs: Mapping[str, parameters.ParameterSpec],
  values: Mapping[str, Any],
) -> None:
  """Checks parameters.

  Args:
    network: Its name.
    specs: All parameters that it needs.
    values: Values by name.

  Raises:
    ValueError: One is missing, unknown or misshapen.
  """
  missing = [name for name in specs if name not in values]
  if missing:
    raise ValueError(
      f'params of {network} has no {_listed(missing)}; it must hold all {len(specs)} '
      'parameters.'
    )
  unknown = [name for name in values if name not in specs]
  if unknown:
    raise ValueError(
      f'params of {network} has {_listed(unknown)}; it must hold only its {len(specs)} '
      'parameters.'
    )
  for name, spec in specs.items():
    shape = tf.TensorShape(values[name].shape)
    if not shape.is_compatible_with(spec.shape):
      raise ValueError(
        f'The shape of {name} of {network} is {shape}; it must be {spec.shape}.'
      )


def one_of(name: str, value: Any, allowed: Sequence[Any]) -> None:
  """Checks a choice.

  Args:
    name: What is chosen.
    value: The choice.
    allowed: What may be chosen.

  Raises:
    ValueError: It is none of these.
  """
  if value not in allowed:
    raise ValueError(f'{name} is {value!r}; it must be one of {tuple(allowed)}.')


def image_shape(sizes: Sequence[int]) -> tuple[int, ...]:
  """Returns the shape of an image as integers.

  Args:
    sizes: (height, width, channels).

  Raises:
    ValueError: It is not the shape of an image.
  """
  shape = tuple(int(size) for size in sizes)
  if len(shape) != 3 or min(shape) < 1:
    raise ValueError(
      f'image_shape is {tuple(sizes)}; it must be (height, width, channels), each at '
      'least 1.'
    )
  return shape


def vector_shape(sizes: Sequence[int]) -> tuple[int]:
  """Returns the shape of a vector, (features,), as an integer.

  Raises:
    ValueError: It is not the shape of a vector.
  """
  if len(sizes) != 1 or sizes[0] < 1:
    raise ValueError(f'shape is {tuple(sizes)}; it must be (features,), at least 1.')
  return (int(sizes[0]),)


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
      f'The input of {network} is {x.dtype.name}; it must be floating (augmentation '
      'scales images).'
    )
  if not x.shape.is_compatible_with(expected):
    raise ValueError(
      f'The shape of the input of {network} is {x.shape}; it must be {expected}.'
    )
  return tf.ensure_shape(x, expected) if not x.shape[1:].is_fully_defined() else x


def _listed(names: list[str]) -> str:
  """Returns the first three names and how many more there are."""
  more = len(names) - 3
  return ', '.join(names[:3]) + (f' and {more} more' if more > 0 else '')
