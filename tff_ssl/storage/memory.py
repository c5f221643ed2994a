"""Whether what is about to be read fits into memory, by arithmetic.

A file from a stranger may unpack to more than the memory, or hold a billion short rows.
The kernel would kill the program without a word, or another one.
"""

import contextlib
import os
import pathlib

import psutil

from tff_ssl.storage import files

_GIB = 2**30
# Where Linux states the limit of a container (cgroups, version 2 and 1).
_LIMITS = (
  '/sys/fs/cgroup/memory.max',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes',
)
# Measured, and rounded up by a third: what a CSV file takes as rows of text, for each
# of its rows, cells and bytes.
_A_ROW, _A_CELL, _A_BYTE = 300, 100, 8


def total() -> int:
  """Returns the bytes of this machine or container."""
  return _within_limits(psutil.virtual_memory().total)


def free() -> int:
  """Returns the bytes that are available, at most a container's limit.

  What a container already uses is not subtracted from its limit: most of that may be
  files that were read, which the kernel gives back.
  """
  return _within_limits(psutil.virtual_memory().available)


def _within_limits(there: int) -> int:
  for path in _LIMITS:
    # Without a limit it is `max`, or more than any machine has; there may be no file.
    with contextlib.suppress(OSError, ValueError):
      there = min(there, int(pathlib.Path(path).read_text()))
  return there


def check(num_bytes: int, what: str) -> None:
  """Refuses what does not fit.

  Args:
    num_bytes: What it takes at most.
    what: Its name, for the error.

  Raises:
    ValueError: If that is more than is free.
  """
  if num_bytes > (there := free()):
    raise ValueError(
      f'{what} takes up to {num_bytes / _GIB:,.1f} GiB of memory, and '
      f'{there / _GIB:,.1f} GiB are free; it must be smaller.'
    )


def check_csv(name: str, content: bytes) -> None:
  """Refuses a CSV file whose rows do not fit.

  Args:
    name: Its name, for the error.
    content: The file.

  Raises:
    ValueError: If its rows, as text by column, take more than is free.
  """
  rows = content.count(b'\n') + content.count(b'\r')
  cells = rows + sum(map(content.count, (b',', b';', b'\t')))
  check(_A_ROW * rows + _A_CELL * cells + _A_BYTE * len(content), name)


def read_csv(path: str | os.PathLike[str]) -> bytes:
  """Returns a CSV file whose rows fit into memory.

  Args:
    path: The file.

  Raises:
    ValueError: If they do not fit, or it is no regular file.
    OSError: If it cannot be read.
  """
  content = files.read_bytes(path, free() // _A_BYTE)
  check_csv(str(path), content)
  return content
