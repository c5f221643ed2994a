"""All uses of TFF's non-public modules, and what replaces them where they are missing.

TFF's last release is behind its head: non-public parts may be gone in the next one. So
nothing else in this project uses them (tests/floors_test.py). If one is missing, a
plain way is taken, which gives the same numbers.

- The messages in which values are sent. TFF makes the message of a structure from its
  elements' messages, and copies each of these twice at every level: 380 MB of client
  states cost 2.3 s of user time. Here a message is filled in place, in 0.1 s. Without
  the internals, TFF's executor makes its own messages.
- The messages of types. TFF's compiler reads the type of each part of a computation,
  and at every level again the types of everything in it: that took three quarters of
  the time to compile a computation for this process. Here equal messages are read once.
- The TensorFlow graph in a local computation. Without it nothing can be executed in
  this process, and an error refers to the worker, which can.
"""

from collections.abc import Callable
import dataclasses
import functools
import importlib
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

# Modules that are not public: the messages, and the executor that sends them.
MESSAGES = 'tensorflow_federated.proto.v0.executor_pb2'
EXECUTOR = 'tensorflow_federated.python.core.impl.executors.remote_executor'
# Where the compiler finds the function that reads types.
TYPES = 'tensorflow_federated.python.core.impl.types.type_serialization'
# How many types are remembered: some megabytes.
_MOST_TYPES = 8192
# The non-public attributes of TFF's remote executor that are used.
_ATTRIBUTES = ('_check_has_executor_id', '_executor_id', '_stub')
# The kind of computations that hold a graph.
TENSORFLOW = 'tensorflow'


class RemoteExecutor(tff.framework.RemoteExecutor):
  """TFF's remote executor, which fills messages in place where that works."""

  async def create_value(self, value: Any, type_spec: Any = None) -> Any:
    """Sends a value; see TFF's executor.

    Args:
      value: What is sent.
      type_spec: Its `tff.Type`; None: it is a computation, which has its own.
    """
    nested = isinstance(type_spec, (tff.StructType, tff.FederatedType))
    if not nested or not fills_messages() or not self._is_as_known():
      return await super().create_value(value, type_spec)
    self._check_has_executor_id()
    messages = importlib.import_module(MESSAGES)
    request = messages.CreateValueRequest(executor=self._executor_id)
    fill(request.value, value, type_spec)
    response = self._stub.create_value(request)
    remote_value = importlib.import_module(EXECUTOR).RemoteValue
    return remote_value(response.value_ref, type_spec, self)

  def _is_as_known(self) -> bool:
    return all(hasattr(self, name) for name in _ATTRIBUTES)


@functools.cache
def fills_messages() -> bool:
  """Returns whether messages are filled here, and not by TFF.

  This is tested once, on a small value: its message must equal the one that TFF makes.
  """
  modules = _module(MESSAGES), _module(EXECUTOR)
  needed = 'CreateValueRequest', 'RemoteValue'
  if not all(hasattr(*pair) for pair in zip(modules, needed, strict=True)):
    return False
  probe = tff.FederatedType(
    tff.StructType([('a', tff.TensorType(np.float32, [2])), tff.StructType([])]),
    tff.CLIENTS,
  )
  value = [tff.structure.Struct([('a', np.ones([2], np.float32)), (None, ())])]
  expected = tff.framework.serialize_value(value, probe)[0]
  message = type(expected)()
  try:
    fill(message, value, probe)
  except (AttributeError, TypeError, ValueError):
    # This TFF's messages have other fields.
    return False
  return bool(message == expected)


def remember_types() -> bool:
  """Makes TFF read equal messages of types only once in this process.

  Types do not change, so that one object may be part of many computations.

  Returns:
    Whether TFF now does so: it does not if TFF keeps the function elsewhere.
  """
  module: Any = _module(TYPES)
  read = getattr(module, 'deserialize_type', None)
  if read is None:
    return False
  if not isinstance(read, Remembering):
    module.deserialize_type = Remembering(read)
  return True


class Remembering:
  """A function that reads messages of types, equal ones only once."""

  def __init__(self, read: Callable[[Any], tff.Type]):
    """Initializes the function.

    Args:
      read: Returns the type of a message.
    """
    self.read = read
    self.known: dict[bytes, tff.Type] = {}

  def __call__(self, type_proto: Any) -> tff.Type:
    """Returns the type of a message."""
    content = type_proto.SerializeToString(deterministic=True)
    result = self.known.get(content)
    if result is None:
      result = self.read(type_proto)
      if len(self.known) >= _MOST_TYPES:
        self.known.clear()
      self.known[content] = result
    return result


def _module(name: str) -> ModuleType | None:
  try:
    return importlib.import_module(name)
  except ImportError:
    return None


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
  # TFF has no public function for the message of an array's type alone.
  nothing = np.zeros([0], value.dtype)
  nothing_type = tff.TensorType(value.dtype, [0])
  message.CopyFrom(tff.framework.serialize_value(nothing, nothing_type)[0])
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
  # No public function of TFF gives the message of a type alone; the message of no
  # values of this type holds it.
  nothing = tff.FederatedType(type_spec.member, type_spec.placement, all_equal=False)
  message.CopyFrom(tff.framework.serialize_value([], nothing)[0].federated)
  message.type.all_equal = type_spec.all_equal
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
    RuntimeError: If this TFF keeps graphs in a way that is not known here.
  """
  try:
    proto = block.proto
    kind = proto.WhichOneof('computation')
    if kind == TENSORFLOW:
      content = proto.tensorflow
      graph_def = tf.compat.v1.GraphDef()
      if not content.graph_def.Unpack(graph_def):
        raise TypeError(f'graph of type {content.graph_def.type_url}')
      return ComputationGraph(
        graph_def,
        _bound(content.parameter) if content.HasField('parameter') else None,
        _bound(content.result),
        content.initialize_op,
        content.session_token_tensor_name,
      )
  except (AttributeError, TypeError, ValueError) as error:
    raise RuntimeError(
      f'this TensorFlow Federated stores graphs differently from 0.87 ({error}): use '
      'the runtime worker, because in_process cannot read them'
    ) from error
  raise ValueError(
    f'the computation has a part of kind {kind}; in_process takes only {TENSORFLOW}'
  )


def _bound(binding: Any) -> Any:
  """Returns the tensors that a value of a graph is bound to."""
  kind = binding.WhichOneof('binding')
  if kind == 'struct':
    return tuple(_bound(element) for element in binding.struct.element)
  if kind == 'tensor':
    return Bound(binding.tensor.tensor_name, False)
  if kind == 'sequence' and binding.sequence.variant_tensor_name:
    return Bound(binding.sequence.variant_tensor_name, True)
  raise TypeError(f'a value bound to a {kind}')
