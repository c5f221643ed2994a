"""The threads that compute clients, each on a device in turn."""

from collections.abc import Callable, Sequence
from concurrent import futures
import functools
import queue
import threading
from typing import Any

# A function of a client's value and the number of its device.
Function = Callable[[Any, int], Any]
# A client to be computed, given the number of the device.
_Task = Callable[[int], None]


class ClientThreads:
  """A few threads per device; client k runs on device k modulo the number of devices.

  The threads are daemons, unlike those of an executor of `concurrent.futures`: one that
  is deep in a computation does not keep the process alive.
  """

  def __init__(self, num_devices: int, threads_per_device: int):
    """Starts them.

    Args:
      num_devices: At least 1.
      threads_per_device: Clients computed at the same time on one device; at least 1.
    """
    self._threads_per_device = threads_per_device
    self._queues: list[queue.SimpleQueue[_Task | None]] = [
      queue.SimpleQueue() for _ in range(num_devices)
    ]
    for device, tasks in enumerate(self._queues):
      for _ in range(threads_per_device):
        threading.Thread(
          target=_work, args=(tasks, device), name=f'tff_ssl_{device}', daemon=True
        ).start()

  def map(self, function: Function, values: Sequence[Any]) -> list[Any]:
    """Applies a function to each client's value; returns the results in their order.

    Args:
      function: Takes a value and the number of its device.
      values: One for each client.

    Raises:
      Exception: The error of the failed client that comes first in the order. Clients
        that have not begun when one fails are not computed.
    """
    results: list[futures.Future[Any]] = [futures.Future() for _ in values]
    has_failed = threading.Event()
    for k, (value, result) in enumerate(zip(values, results, strict=True)):
      task = functools.partial(_compute, function, value, result, has_failed)
      self._queues[k % len(self._queues)].put(task)
    futures.wait(results)
    return [result.result() for result in results]

  def stop(self) -> None:
    """Ends the threads once all queued work is done."""
    for tasks in self._queues:
      for _ in range(self._threads_per_device):
        tasks.put(None)


def _compute(
  function: Function,
  value: Any,
  result: futures.Future[Any],
  has_failed: threading.Event,
  device: int,
) -> None:
  """Computes one client, unless another has failed: then its result is None."""
  try:
    result.set_result(None if has_failed.is_set() else function(value, device))
  except BaseException as error:
    has_failed.set()
    result.set_exception(error)


def _work(tasks: queue.SimpleQueue[_Task | None], device: int) -> None:
  while (task := tasks.get()) is not None:
    task(device)
    # While the thread waits, it must not keep a client's value in memory.
    del task
