"""How many bytes it takes to send a value of a type."""

import math

import tensorflow_federated as tff


def num_bytes(value_type: tff.Type) -> int:
  """Returns the bytes of a value of an unplaced type of fixed shapes.

  Args:
    value_type: A `tff.TensorType` or a structure of them.

  Returns:
    The sum over tensors of their elements times bytes per element, without framing.

  Raises:
    ValueError: If a shape is not fully defined, or the type is not made of tensors.
  """
  if isinstance(value_type, tff.TensorType):
    if value_type.shape is None or any(d is None for d in value_type.shape):
      raise ValueError(
        f'The type {value_type} has no fixed size; all of its shapes must be known.'
      )
    return math.prod(value_type.shape) * value_type.dtype.itemsize
  if isinstance(value_type, tff.StructType):
    return sum(num_bytes(child) for child in value_type.children())
  raise ValueError(f'The type {value_type} cannot be sent; only tensors can.')


def has_tensors(value_type: tff.Type) -> bool:
  """Returns whether a type holds at least one tensor."""
  if isinstance(value_type, tff.StructType):
    return any(has_tensors(child) for child in value_type.children())
  return True
