"""What any context of ours needs of TFF: channels, executors, and compilation."""

import collections
from collections.abc import Callable

import tensorflow_federated as tff

_MAX_EXECUTORS = 10
_MAX_MESSAGE_BYTES = 2_000_000_000
CHANNEL_OPTIONS = (
  ('grpc.max_message_length', _MAX_MESSAGE_BYTES),
  ('grpc.max_receive_message_length', _MAX_MESSAGE_BYTES),
  ('grpc.max_send_message_length', _MAX_MESSAGE_BYTES),
  # gRPC waits a second before it tries a port again that was not listening yet.
  ('grpc.initial_reconnect_backoff_ms', 50),
  ('grpc.min_reconnect_backoff_ms', 50),
  ('grpc.max_reconnect_backoff_ms', 500),
)


def transform_to_native(
  computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Compiles as TFF does, but for the optimization of TensorFlow's graphs.

  Args:
    computation: What is compiled.

  Returns:
    What TFF's native runtime executes.
  """
  block, _ = tff.tensorflow.replace_intrinsics_with_bodies(
    computation.to_building_block()
  )
  return tff.backends.native.transform_to_native_form(
    tff.framework.ConcreteComputation.from_building_block(block)
  )


class Executors(tff.framework.ExecutorFactory):
  """Keeps the executors of the last few cohort sizes.

  TFF's own factory drops the oldest without closing it, so the worker's memory grows
  with every new cohort size.
  """

  def __init__(
    self,
    make_executor: Callable[
      [dict[tff.framework.PlacementLiteral, int]], tff.framework.RemoteExecutor
    ],
  ):
    """Initializes the factory.

    Args:
      make_executor: Makes an executor for numbers of clients by placement.
    """
    self._make_executor = make_executor
    self._executors: collections.OrderedDict[
      frozenset[tuple[str, int]], tff.framework.RemoteExecutor
    ] = collections.OrderedDict()

  def create_executor(
    self, cardinalities: dict[tff.framework.PlacementLiteral, int]
  ) -> tff.framework.RemoteExecutor:
    """Returns the executor for these numbers of clients, made if there is none."""
    key = _key(cardinalities)
    if key not in self._executors:
      self._executors[key] = self._make_executor(cardinalities)
    self._executors.move_to_end(key)
    if len(self._executors) > _MAX_EXECUTORS:
      self._executors.popitem(last=False)[1].close()
    return self._executors[key]

  def clean_up_executor(
    self, cardinalities: dict[tff.framework.PlacementLiteral, int]
  ) -> None:
    """Closes the executor for these numbers of clients, as TFF asks after an error."""
    executor = self._executors.pop(_key(cardinalities), None)
    if executor is not None:
      executor.close()

  def close(self) -> None:
    """Closes all executors."""
    while self._executors:
      self._executors.popitem()[1].close()


def _key(
  cardinalities: dict[tff.framework.PlacementLiteral, int],
) -> frozenset[tuple[str, int]]:
  return frozenset((str(name), count) for name, count in cardinalities.items())
