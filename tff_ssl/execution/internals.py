"""All uses of TFF's non-public modules, as its last release, 0.87, has them.

Nothing else in this project uses them (tests/floors_test.py).

- The messages in which values are sent. TFF makes the message of a structure from its
  elements' messages, and copies each of these twice at every level: 380 MB of client
  states cost 2.3 s of user time. Here a message is filled in place, in 0.1 s.
- The messages of types. TFF's compiler reads the type of each part of a computation,
  and at every level again the types of everything in it: that took three quarters of
  the time to compile a computation for this process. Here equal messages are read once.
- The TensorFlow graph in a local computation.
"""

import contextlib
import dataclasses
import functools
from typing import Any, NamedTuple

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import computation_pb2
from tensorflow_federated.proto.v0 import executor_pb2
from tensorflow_federated.python.core.impl.executors import remote_executor
from tensorflow_federated.python.core.impl.types import dtype_utils
from tensorflow_federated.python.core.impl.types import type_serialization

# How many types are remembered: some megabytes.
_MOST_TYPES = 8192
# What a call raises where the worker, or the channel to it, is closed.
_GONE = (tff.framework.RetryableError, grpc.RpcError, ValueError)
# The kind of computations that hold a graph.
_TENSORFLOW = 'tensorflow'
_read_type = type_serialization.deserialize_type


class RemoteExecutor(tff.framework.RemoteExecutor):
  """TFF's remote executor, which fills messages in place."""

  async def create_value(self, value: Any, type_spec: Any = None) -> Any:
    """Sends a value; see TFF's executor.

    Args:
      value: What is sent.
      type_spec: Its `tff.Type`; None: it is a computation, which has its own.
    """
    if not isinstance(type_spec, (tff.StructType, tff.FederatedType)):
      return await super().create_value(value, type_spec)
    self._check_has_executor_id()
    request = executor_pb2.CreateValueRequest(executor=self._executor_id)
    fill(request.value, value, type_spec)
    response = self._stub.create_value(request)
    return remote_executor.RemoteValue(response.value_ref, type_spec, self)

  def _dispose(self, *arguments: Any) -> None:
    # Nobody waits for this call, and a worker that is gone holds no values.
    with contextlib.suppress(*_GONE):
      super()._dispose(*arguments)

  def _clear_executor(self) -> None:
    with contextlib.suppress(*_GONE):
      super()._clear_executor()


def remember_types() -> None:
  """Makes TFF read equal messages of types only once in this process.

  Types do not change, so that one object may be part of many computations.
  """
  type_serialization.deserialize_type = _remembered


def _remembered(type_proto: Any) -> tff.Type:
  return _type_of(type_proto.SerializeToString(deterministic=True))


@functools.lru_cache(_MOST_TYPES)
def _type_of(content: bytes) -> tff.Type:
  return _read_type(computation_pb2.Type.FromString(content))


def fill(message: Any, value: Any, type_spec: tff.Type) -> None:
  """Fills an empty message with a value, as `tff.framework.serialize_value` would.

  Args:
    message: The message, a `Value` of TFF's.
    value: The value, of that type.
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
  """Returns whether a value is an array of numbers of exactly the type."""
  return (
    isinstance(value, np.ndarray)
    and value.ndim > 0
    and value.dtype.kind in 'fiub'
    and type_spec.is_assignable_from(tff.TensorType(value.dtype, value.shape))
  )


def _fill_array(message: Any, value: np.ndarray) -> None:
  message.array.dtype = dtype_utils.to_proto(value.dtype.type)
  message.array.shape.dim[:] = value.shape
  message.array.content = value.tobytes()


def _fill_struct(message: Any, value: Any, type_spec: tff.StructType) -> None:
  elements = tff.structure.to_elements(tff.structure.from_container(value))
  if len(elements) != len(type_spec):
    raise TypeError(f'value has {len(elements)} elements; it must be a {type_spec}')
  # A structure without elements is a value too.
  message.SetInParent()
  for (_, element), (name, of_element) in zip(
    elements, tff.structure.to_elements(type_spec), strict=True
  ):
    added = message.element.add()
    if name:
      added.name = name
    fill(added.value, element, of_element)


def _fill_federated(message: Any, value: Any, type_spec: tff.FederatedType) -> None:
  values = [value] if type_spec.all_equal else value
  if not isinstance(values, list):
    raise TypeError(f'value is a {type(value).__name__}; it must be a list')
  message.type.CopyFrom(type_serialization.serialize_type(type_spec).federated)
  for each in values:
    fill(message.value.add(), each, type_spec.member)


@dataclasses.dataclass(frozen=True)
class Bound:
  """A tensor of a graph: a leaf of nested tuples.

  Attributes:
    name: Its name.
    is_dataset: Whether it is the variant of a data set.
  """

  name: str
  is_dataset: bool


class ComputationGraph(NamedTuple):
  """The TensorFlow graph of one local computation.

  Attributes:
    graph_def: The graph.
    arguments: Nested tuples of `Bound`, structured like the parameter; None: there is
      none.
    results: The same for the result.
    initialize_op: Name of the operation that must run before each call; '': none.
    token: Name of the text tensor that TFF feeds; '': none.
  """

  graph_def: tf.compat.v1.GraphDef
  arguments: Any
  results: Any
  initialize_op: str
  token: str


def graph_of(block: tff.framework.CompiledComputation) -> ComputationGraph:
  """Returns the TensorFlow graph of a local computation.

  Args:
    block: The local part of a compiled computation.

  Raises:
    ValueError: If it is not a TensorFlow computation.
  """
  kind = block.proto.WhichOneof('computation')
  if kind != _TENSORFLOW:
    raise ValueError(
      f'the computation has a part of kind {kind}; in_process takes only {_TENSORFLOW}'
    )
  content = block.proto.tensorflow
  graph_def = tf.compat.v1.GraphDef()
  content.graph_def.Unpack(graph_def)
  return ComputationGraph(
    graph_def,
    _bound(content.parameter) if content.HasField('parameter') else None,
    _bound(content.result),
    content.initialize_op,
    content.session_token_tensor_name,
  )


def _bound(binding: Any) -> Any:
  """Returns the tensors that a value of a graph is bound to."""
  kind = binding.WhichOneof('binding')
  if kind == 'struct':
    return tuple(_bound(element) for element in binding.struct.element)
  if kind == 'tensor':
    return Bound(binding.tensor.tensor_name, False)
  return Bound(binding.sequence.variant_tensor_name, True)
