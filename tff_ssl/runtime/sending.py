"""How values go to the worker: TFF's remote executor, with fewer copies of them."""

from typing import Any

import numpy as np
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import executor_pb2
from tensorflow_federated.python.core.impl.executors import remote_executor


class RemoteExecutor(tff.framework.RemoteExecutor):
  """TFF's, whose messages are filled where they are.

  TFF makes the message of a structure from those of its elements, and of each makes two
  copies at every level: 380 MB of client states cost 2.3 s of user time, here 0.1 s.
  """

  async def create_value(self, value: Any, type_spec: Any = None) -> Any:
    """Sends a value; see TFF's executor.

    Args:
      value: What is sent.
      type_spec: Its `tff.Type`; None: it is a computation, which tells its own.
    """
    if not isinstance(type_spec, (tff.StructType, tff.FederatedType)):
      return await super().create_value(value, type_spec)
    self._check_has_executor_id()
    request = executor_pb2.CreateValueRequest(executor=self._executor_id)
    fill(request.value, value, type_spec)
    response = self._stub.create_value(request)
    return remote_executor.RemoteValue(response.value_ref, type_spec, self)


def fill(message: executor_pb2.Value, value: Any, type_spec: tff.Type) -> None:
  """Makes an empty message that of a value: what `tff.framework.serialize_value` does.

  Args:
    message: The message.
    value: Of the type.
    type_spec: The type.

  Raises:
    TypeError: If the value is not of the type.
  """
  if isinstance(type_spec, tff.StructType):
    _fill_struct(message.struct, value, type_spec)
  elif isinstance(type_spec, tff.FederatedType):
    _fill_federated(message.federated, value, type_spec)
  elif _is_array(value, type_spec):
    _fill_array(message, value)
  else:
    serialized, of_value = tff.framework.serialize_value(value, type_spec)
    type_spec.check_assignable_from(of_value)
    message.CopyFrom(serialized)


def _is_array(value: Any, type_spec: tff.Type) -> bool:
  """Returns whether a value is an array of numbers, exactly of the type."""
  return (
    isinstance(value, np.ndarray)
    and value.ndim > 0
    and value.dtype.kind in 'fiub'
    and type_spec.is_assignable_from(tff.TensorType(value.dtype, value.shape))
  )


def _fill_array(message: executor_pb2.Value, value: np.ndarray) -> None:
  # TFF has no public function for the message of an array's type alone.
  nothing = np.zeros([0], value.dtype)
  nothing_type = tff.TensorType(value.dtype, [0])
  message.CopyFrom(tff.framework.serialize_value(nothing, nothing_type)[0])
  message.array.shape.dim[:] = value.shape
  message.array.content = value.tobytes()


def _fill_struct(
  message: executor_pb2.Value.Struct, value: Any, type_spec: tff.StructType
) -> None:
  elements = tff.structure.to_elements(tff.structure.from_container(value))
  if len(elements) != len(type_spec):
    raise TypeError(f'value has {len(elements)} elements; it must be a {type_spec}')
  # One without elements is a value too.
  message.SetInParent()
  for (_, element), (name, of_element) in zip(
    elements, tff.structure.to_elements(type_spec), strict=True
  ):
    added = message.element.add()
    if name:
      added.name = name
    fill(added.value, element, of_element)


def _fill_federated(
  message: executor_pb2.Value.Federated, value: Any, type_spec: tff.FederatedType
) -> None:
  values = [value] if type_spec.all_equal else value
  if not isinstance(values, list):
    raise TypeError(f'value is a {type(value).__name__}; it must be a list')
  # TFF says of no public function what the message of a type is; that of no value has
  # it too.
  nothing = tff.FederatedType(type_spec.member, type_spec.placement, all_equal=False)
  message.CopyFrom(tff.framework.serialize_value([], nothing)[0].federated)
  message.type.all_equal = type_spec.all_equal
  for each in values:
    fill(message.value.add(), each, type_spec.member)
