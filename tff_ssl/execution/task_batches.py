"""A batch of tasks for several hosts: which host does which, repeats, and results.

Pure bookkeeping, without threads: `hosts` holds a lock around every call. Results are
kept by the index of their task, so that nothing depends on when they came or from which
host.
"""

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

# The batch fails after this many errors of one task.
TRIES = 3

Task = Callable[[], Any]


class FailedError(RuntimeError):
  """A task that no host can do."""


class Batch:
  """Tasks that hosts do; the first result of each counts.

  Attributes:
    tasks: The tasks.
    repeated: How often a task was given out again.
  """

  def __init__(self, tasks: Sequence[Task], max_losses: int):
    """Initializes the batch; `take` assigns its tasks.

    Args:
      tasks: Each may be done by any host, and more than once.
      max_losses: How many hosts may be lost while they do one task. If more are lost,
        the batch fails because the task itself may end them.
    """
    self.tasks = tasks
    self.repeated = 0
    self._max_losses = max_losses
    self._pending = collections.deque(range(len(tasks)))
    self._results: dict[int, Any] = {}
    self._running: dict[int, dict[str, float]] = collections.defaultdict(dict)
    self._failed: dict[int, list[str]] = collections.defaultdict(list)
    self._losses: collections.Counter[int] = collections.Counter()
    self._longest = 0.0
    self._error: BaseException | None = None

  @property
  def is_done(self) -> bool:
    """Whether all results are there, or some task cannot be done."""
    return self._error is not None or len(self._results) == len(self.tasks)

  def results(self) -> list[Any]:
    """Returns the results in the order of the tasks.

    Raises:
      FailedError: If some task cannot be done.
    """
    if self._error is not None:
      raise self._error
    return [self._results[k] for k in range(len(self.tasks))]

  def take(
    self,
    host: str,
    connected: Collection[str],
    silent: Collection[str],
    now: float,
    patience: float,
  ) -> int | None:
    """Gives a host its next task, if there is one for it.

    If no task waits, the host may get a task that another host is doing: if that other
    host has not answered for some seconds, or takes so much longer than others did that
    it may never end. The other host keeps the task too; the first result counts.

    Args:
      host: The host that asks.
      connected: All hosts that have a connection.
      silent: Connected hosts that have not answered for some seconds.
      now: The time, in seconds.
      patience: Seconds that any task may take. A task that takes longer is given to a
        second host after three times the longest of the batch so far.
    """
    for place in self._pending:
      # A host that has failed at a task gets it again only if there is no other host.
      tried = self._failed[place]
      if host not in tried or not set(connected) - set(tried):
        self._pending.remove(place)
        return self._give(place, host, now)
    for place, runners in self._running.items():
      if len(runners) != 1 or host in runners or host in self._failed[place]:
        continue
      ((other, since),) = runners.items()
      is_slow = self._results and now - since > max(patience, 3 * self._longest)
      if other in silent or is_slow:
        self.repeated += 1
        return self._give(place, host, now)
    return None

  def succeeded(self, place: int, host: str, result: Any, now: float) -> set[str]:
    """Keeps a result, if it is the first; returns the hosts still at the task."""
    since = self._running.get(place, {}).pop(host, now)
    self._longest = max(self._longest, now - since)
    self._results.setdefault(place, result)
    return set(self._running.pop(place, ()))

  def lost(self, place: int, host: str) -> None:
    """Puts the task of a lost host back, to be given out again."""
    if not self._is_released(place, host):
      return
    self._losses[place] += 1
    if self._losses[place] > self._max_losses:
      self._error = FailedError(
        f'Part {place + 1} of {len(self.tasks)} was sent out {self._losses[place]} '
        f'times, and the host was lost each time, last {host}: it may be too large '
        'for the hosts.'
      )
    self._again(place)

  def failed(self, place: int, host: str, error: BaseException) -> None:
    """Puts back a task that a host answered with an error."""
    if not self._is_released(place, host):
      return
    self._failed[place].append(host)
    if len(self._failed[place]) >= TRIES:
      failed = FailedError(
        f'Part {place + 1} of {len(self.tasks)} failed on '
        f'{", ".join(self._failed[place])}: {type(error).__name__}: {error}'
      )
      failed.__cause__ = error
      self._error = failed
    self._again(place)

  def running(self) -> Mapping[int, Collection[str]]:
    """Returns the hosts that are doing each task, by the task's index."""
    return {place: tuple(who) for place, who in self._running.items() if who}

  def _give(self, place: int, host: str, now: float) -> int:
    self._running[place][host] = now
    return place

  def _is_released(self, place: int, host: str) -> bool:
    """Withdraws a task from a host; returns whether it must be reassigned."""
    runners = self._running.get(place, {})
    runners.pop(host, None)
    return place not in self._results and not runners

  def _again(self, place: int) -> None:
    self.repeated += 1
    self._pending.appendleft(place)
