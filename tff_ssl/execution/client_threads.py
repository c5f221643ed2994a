"""The threads that compute clients, each on a device in turn."""

from collections.abc import Callable, Sequence
import queue
import threading
from typing import Any

# A function of a client's value and the number of its device.
Function = Callable[[Any, int], Any]


class ClientThreads:
  """A few threads per device; client k runs on device k modulo the number of devices.

  The threads are daemons: one that is deep in a computation does not keep the process
  alive.
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
    self._threads = [
      threading.Thread(
        target=_work, args=(tasks, device), name=f'tff_ssl_{device}', daemon=True
      )
      for device, tasks in enumerate(self._queues)
      for _ in range(threads_per_device)
    ]
    for thread in self._threads:
      thread.start()

  def map(self, function: Function, values: Sequence[Any]) -> list[Any]:
    """Applies a function to each client's value; returns the results in their order.

    Args:
      function: Takes a value and the number of its device.
      values: One for each client.

    Raises:
      Exception: The error of the failed client that comes first in the order. Clients
        that have not begun when one fails are not computed.
    """
    job = _Job(function, len(values))
    for k, value in enumerate(values):
      self._queues[k % len(self._queues)].put(_Task(job, k, value))
    return job.results()

  def stop(self) -> None:
    """Ends the threads once all queued work is done."""
    for tasks in self._queues:
      for _ in range(self._threads_per_device):
        tasks.put(None)


class _Job:
  """One function over all clients."""

  def __init__(self, function: Function, count: int):
    self._function = function
    self._results: list[Any] = [None] * count
    self._errors: dict[int, BaseException] = {}
    self._done: queue.SimpleQueue[None] = queue.SimpleQueue()

  def run(self, place: int, value: Any, device: int) -> None:
    """Computes one client, unless another has failed."""
    try:
      if not self._errors:
        self._results[place] = self._function(value, device)
    except BaseException as error:
      self._errors[place] = error
    self._done.put(None)

  def results(self) -> list[Any]:
    """Waits for all; see `ClientThreads.map`."""
    for _ in self._results:
      self._done.get()
    if self._errors:
      raise self._errors[min(self._errors)]
    return self._results


class _Task:
  """One client of a job."""

  def __init__(self, job: _Job, place: int, value: Any):
    self._job, self._place, self._value = job, place, value

  def run(self, device: int) -> None:
    self._job.run(self._place, self._value, device)


def _work(tasks: 'queue.SimpleQueue[_Task | None]', device: int) -> None:
  while (task := tasks.get()) is not None:
    task.run(device)
    # While the thread waits, it must not keep a client's value in memory.
    del task
