"""The process that owns threads and child processes: no fork of it may use them.

`os.fork`, and `multiprocessing` on Linux, copy the memory of a process but none of its
threads: in the copy a call would wait forever for one of them.
"""

import os


class Owner:
  """Remembers the process in which it was made."""

  def __init__(self) -> None:
    self._pid = os.getpid()

  @property
  def is_here(self) -> bool:
    """Whether this is that process."""
    return os.getpid() == self._pid

  def check(self, what: str) -> None:
    """Refuses the use of something in a fork.

    Args:
      what: Its name, for the message.

    Raises:
      RuntimeError: If this is another process.
    """
    if not self.is_here:
      raise RuntimeError(
        f'{what} was opened by process {self._pid}: its fork {os.getpid()} cannot '
        'use it and must open its own'
      )
