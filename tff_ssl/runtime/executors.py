"""The executors behind a context: one for each size of a cohort."""

import collections
from collections.abc import Callable

import tensorflow_federated as tff

_MAX_EXECUTORS = 10


class Executors(tff.framework.ExecutorFactory):
  """Keeps the executors of the last few cohort sizes.

  TFF's own factory forgets the oldest without closing it, so the worker's memory grows
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
