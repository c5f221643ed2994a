"""Workers on this machine, which are killed, restarted and frozen."""

from collections.abc import Callable, Iterator
import contextlib
import os
import pathlib
import signal

from tests.binaries import launch
from tff_ssl.execution import worker_process


class Machines:
  """Workers, which are restarted at the same addresses."""

  def __init__(self, count: int):
    """Starts the workers."""
    self._pids: list[int] = []
    self._workers = [self._start(0) for _ in range(count)]

  @property
  def addresses(self) -> list[str]:
    """'host:port' of each worker."""
    return [worker.address for worker in self._workers]

  def kill(self, k: int) -> None:
    """Kills a worker with SIGKILL, and starts another at its address."""
    worker = self._workers[k]
    worker.stop()
    self._workers[k] = self._start(int(worker.address.rpartition(':')[2]))

  def freeze(self, k: int) -> Callable[[], None]:
    """Stops a worker with SIGSTOP; returns a function that resumes it, if alive."""
    pid = self._workers[k].pid
    os.kill(pid, signal.SIGSTOP)

    def thaw() -> None:
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)

    return thaw

  def stop(self) -> None:
    """Ends all workers; none of all that were started may be left."""
    for worker in self._workers:
      worker.stop()
    # Other processes may have their numbers by now.
    left = [pid for pid in self._pids if launch.is_alive(pid) and _is_worker(pid)]
    assert not left, f'workers {left} are left'

  def _start(self, port: int) -> worker_process.Worker:
    worker = worker_process.Worker(1, 1, port=port)
    self._pids.append(worker.pid)
    return worker


def _is_worker(pid: int) -> bool:
  with contextlib.suppress(OSError):
    return b'worker_binary' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
  return False


@contextlib.contextmanager
def started(count: int) -> Iterator[Machines]:
  """Starts workers, and ends them afterwards."""
  made = Machines(count)
  try:
    yield made
  finally:
    made.stop()
