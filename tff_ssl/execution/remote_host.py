"""One host: a TFF worker at an address, which may die, freeze, or come back.

Every wait for a host ends. TFF itself repeats a call on a dead connection forever. Here
a call that has lost its connection raises `LostError`, and closing the connection from
another thread ends a call that waits for an answer. Another call on the same connection
asks whether a host that computes for long is alive (`health`).
"""

from collections.abc import Callable
import contextlib
import threading
import time
from typing import Any

import grpc
import numpy as np
import tensorflow_federated as tff

from tff_ssl.execution import executors
from tff_ssl.execution import worker_health

_CLOSE_SECONDS = 1.0
_OPTIONS = (
  *executors.CHANNEL_OPTIONS,
  # A new connection does not wait for the back-off of the previous one.
  ('grpc.use_local_subchannel_pool', 1),
)
# Status codes of a call whose host is gone or was restarted, or whose connection was
# closed.
_LOST = (
  grpc.StatusCode.UNAVAILABLE,
  grpc.StatusCode.CANCELLED,
  grpc.StatusCode.DEADLINE_EXCEEDED,
  grpc.StatusCode.FAILED_PRECONDITION,
)


class LostError(Exception):
  """The host does not answer, or the connection was closed."""


class Host:
  """A connection to one host, which can be made again whenever it is lost.

  Attributes:
    address: 'host:port'.
  """

  def __init__(self, address: str, compile_fn: executors.Compile):
    """Initializes the host; `connect` connects to it.

    Args:
      address: 'host:port'.
      compile_fn: Compiles a computation for TFF's runtime.
    """
    self.address = address
    self._lock = threading.Lock()
    self._channel: grpc.Channel | None = None
    self._stub: Any = None
    self._asked: float | None = None
    self._executors = executors.Executors(self._make_executor)
    self._context = executors.build_context(self._executors, compile_fn)

  @property
  def is_connected(self) -> bool:
    """Whether there is a connection; the host behind it may still be lost."""
    return self._channel is not None

  @property
  def silent_seconds(self) -> float:
    """Seconds that the current health check has waited for an answer; 0: none waits."""
    asked = self._asked
    return 0.0 if asked is None else time.monotonic() - asked

  def connect(self, seconds: float) -> None:
    """Makes a new connection.

    Args:
      seconds: How long to wait for an answer.

    Raises:
      LostError: If there is none.
    """
    self.disconnect()
    # A restarted worker does not know the executors of the previous one.
    self._executors.close()
    channel = grpc.insecure_channel(self.address, _OPTIONS)
    with self._lock:
      self._channel = channel
      self._stub = tff.framework.RemoteExecutorGrpcStub(_Channel(channel))
    try:
      self.check(seconds, wait_for_ready=True)
    except LostError:
      self.disconnect()
      raise

  def disconnect(self) -> None:
    """Closes the connection; calls that wait for an answer raise `LostError`."""
    with self._lock:
      channel, self._channel, self._stub = self._channel, None, None
    if channel is not None:
      channel.close()

  def close(self) -> None:
    """Frees what the host, if alive, holds for this process, and disconnects."""
    with contextlib.suppress(LostError):
      self.check(_CLOSE_SECONDS)
      self._executors.close()
    self.disconnect()

  def check(self, seconds: float, wait_for_ready: bool = False) -> None:
    """Asks whether the host is alive, even while it computes.

    Args:
      seconds: How long to wait for the answer.
      wait_for_ready: Whether to wait for a host that does not listen yet.

    Raises:
      LostError: If there is none.
    """
    channel = self._channel
    if channel is None:
      raise LostError(f'there is no connection to {self.address}')
    self._asked = time.monotonic()
    try:
      if not worker_health.answers(channel, seconds, wait_for_ready):
        raise LostError(f'{self.address} does not answer')
    except ValueError:
      raise LostError(f'the connection to {self.address} was closed') from None
    finally:
      self._asked = None

  def run(self, task: Callable[[], Any]) -> Any:
    """Calls a function whose TFF computations are executed by the host.

    Args:
      task: The function. It is called in this thread, whose default context for TFF
        computations is the host from then on.

    Raises:
      LostError: If the host is lost meanwhile.
      TypeError: If a result does not have the type of its computation.
    """
    tff.framework.set_default_context(_Checked(self._context))
    return task()

  def _make_executor(
    self, cardinalities: dict[tff.framework.PlacementLiteral, int]
  ) -> tff.framework.RemoteExecutor:
    stub = self._stub
    if stub is None:
      raise LostError(f'there is no connection to {self.address}')
    return executors.build_executor(stub, cardinalities)


class _Channel:
  """A gRPC channel as TFF's stub uses it, whose calls raise `LostError`.

  TFF then sees no error that makes it repeat the call, and logs none. Calls that only
  free values never fail: values may be freed after their connection is closed.
  """

  def __init__(self, channel: grpc.Channel):
    self._channel = channel

  def subscribe(self, callback: Any, try_to_connect: bool = False) -> None:
    """Does nothing: `check` asks, so that no thread needs to poll the state."""

  def unary_unary(
    self,
    method: str,
    request_serializer: Any,
    response_deserializer: Any,
    **others: Any,
  ) -> Callable[[Any], Any]:
    """Returns the call of a method."""
    call = self._channel.unary_unary(
      method, request_serializer, response_deserializer, **others
    )
    frees = method.rpartition('/')[2].startswith('Dispose')

    def answered(request: Any) -> Any:
      try:
        return call(request)
      except grpc.RpcError as error:
        if not frees and error.code() not in _LOST:
          raise
        text = f'{error.code().name} {error.details()}'
      except ValueError as error:
        # gRPC raises this when its channel was closed.
        text = str(error)
      if frees:
        return response_deserializer(b'')
      raise LostError(f'{method}: {text}')

    return answered


class _Checked(tff.framework.SyncContext):
  """An execution context that refuses results of another type than expected."""

  def __init__(self, context: tff.framework.SyncContext):
    self._context = context

  def invoke(self, comp: Any, arg: Any) -> Any:
    """Invokes a computation."""
    result = self._context.invoke(comp, arg)
    check_type(result, comp.type_signature.result)
    return result


def check_type(value: Any, type_spec: tff.Type) -> None:
  """Refuses a value that does not have a type; data sets are not checked.

  Args:
    value: As TFF returns it from a computation.
    type_spec: The type.

  Raises:
    TypeError: If the structure, or the shape or type of an array, differs.
  """
  if isinstance(type_spec, tff.FederatedType):
    for each in [value] if type_spec.all_equal else value:
      check_type(each, type_spec.member)
  elif isinstance(type_spec, tff.StructType):
    elements = tff.structure.to_elements(tff.structure.from_container(value))
    expected = tff.structure.to_elements(type_spec)
    if [name for name, _ in elements] != [name for name, _ in expected]:
      raise TypeError(f'a result is a {type(value).__name__}; it must be {type_spec}')
    for (_, element), (_, own) in zip(elements, expected, strict=True):
      check_type(element, own)
  elif isinstance(type_spec, tff.TensorType):
    array = np.asarray(value)
    shape = type_spec.shape
    # Texts come as Python objects, in arrays of objects.
    is_text = np.dtype(type_spec.dtype).kind == 'U' and array.dtype.kind in 'OSU'
    fits = shape is None or (
      len(shape) == array.ndim
      and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    )
    if not (is_text or array.dtype == type_spec.dtype) or not fits:
      raise TypeError(
        f'a result is {array.dtype}{list(array.shape)}; it must be {type_spec}'
      )
