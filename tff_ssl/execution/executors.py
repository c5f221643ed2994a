"""How computations are sent to TFF's workers: gRPC options, executors, compilation."""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow_federated as tff

from tff_ssl.execution import internals

_MAX_EXECUTORS = 10
_MAX_MESSAGE_BYTES = 2_000_000_000
CHANNEL_OPTIONS = (
  ('grpc.max_message_length', _MAX_MESSAGE_BYTES),
  ('grpc.max_receive_message_length', _MAX_MESSAGE_BYTES),
  ('grpc.max_send_message_length', _MAX_MESSAGE_BYTES),
  # By default gRPC waits a second before it retries a port that was not listening yet.
  ('grpc.initial_reconnect_backoff_ms', 50),
  ('grpc.min_reconnect_backoff_ms', 50),
  ('grpc.max_reconnect_backoff_ms', 500),
)


def build_context(
  factory: tff.framework.ExecutorFactory, optimize_graphs: bool
) -> tff.framework.SyncExecutionContext:
  """Returns a TFF context that executes computations on a worker.

  Args:
    factory: Makes the worker's executors.
    optimize_graphs: Whether Grappler optimizes TensorFlow's graphs.
  """
  optimized = tff.backends.native.desugar_and_transform_to_native
  return tff.framework.SyncExecutionContext(
    executor_fn=factory,
    compiler_fn=optimized if optimize_graphs else _transform_to_native,
    transform_args=tff.tensorflow.transform_args,
    transform_result=tff.tensorflow.transform_result,
  )


def build_executor(
  stub: Any, cardinalities: dict[tff.framework.PlacementLiteral, int]
) -> tff.framework.RemoteExecutor:
  """Returns an executor for one number of clients.

  Args:
    stub: The gRPC stub of the worker.
    cardinalities: Number of values by placement; 0 clients if they are not named.
  """
  # The worker drops unused values once there are this many; a round makes 3. By default
  # it would keep the data and client states of six rounds.
  executor = internals.RemoteExecutor(stub, dispose_batch_size=3)
  executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
  return executor


def _transform_to_native(
  computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Compiles as TFF does, without optimizing TensorFlow's graphs."""
  block, _ = tff.tensorflow.replace_intrinsics_with_bodies(
    computation.to_building_block()
  )
  return tff.backends.native.transform_to_native_form(
    tff.framework.ConcreteComputation.from_building_block(block)
  )


class Executors(tff.framework.ExecutorFactory):
  """Keeps the executors of the last few cohort sizes.

  TFF's own factory drops the oldest executor without closing it, so the worker's memory
  grows with every new cohort size.
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
      frozenset[Any], tff.framework.RemoteExecutor
    ] = collections.OrderedDict()

  def create_executor(
    self, cardinalities: dict[tff.framework.PlacementLiteral, int]
  ) -> tff.framework.RemoteExecutor:
    """Returns the executor for these numbers of clients, and makes it if needed."""
    key = frozenset(cardinalities.items())
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
    executor = self._executors.pop(frozenset(cardinalities.items()), None)
    if executor is not None:
      executor.close()
