"""The standard streams of a program: closed ones, and what is written to a terminal."""

import io
import os
import sys
from typing import TextIO

from tff_ssl.computing import inert

# With this status Python itself ends if its output cannot be written.
CLOSED = 120
_NAMES = ('stdin', 'stdout', 'stderr')


class _Output(io.TextIOWrapper):
  """A stream on which names from strangers give no orders (`inert.lines`).

  If its reader is gone, as in `| head`, the program ends.

  Attributes:
    has_reader: Whether nobody has found out that the reader is gone.
  """

  has_reader = True

  def write(self, text: str) -> int:
    """Writes a text; raises SystemExit if nobody reads it."""
    try:
      return super().write(inert.lines(text))
    except BrokenPipeError:
      self.has_reader = False
      raise SystemExit(CLOSED) from None

  def flush(self) -> None:
    """Writes what has been kept back; raises SystemExit if nobody reads it."""
    try:
      super().flush()
    except BrokenPipeError:
      self.has_reader = False
      raise SystemExit(CLOSED) from None


def fill() -> None:
  """Opens the null device in place of standard streams that are closed, as by `>&-`.

  The next file that a program opens would otherwise become its standard output, and
  libraries would write into it.
  """
  for number, name in enumerate(_NAMES):
    try:
      os.fstat(number)
    except OSError:
      # The lowest number that is free: this one. Child processes inherit it.
      os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
      stream = os.fdopen(number, 'w' if number else 'r', closefd=False)
      # The second keeps it open, whatever takes the place of the first.
      setattr(sys, name, stream)
      setattr(sys, f'__{name}__', stream)


def make_inert() -> None:
  """Makes this process's output inert; idempotent."""
  sys.stdout, sys.stderr = _inert(sys.stdout), _inert(sys.stderr)


def _inert(stream: TextIO) -> TextIO:
  # No subclass: it is inert already, or a test reads it.
  if type(stream) is not io.TextIOWrapper:
    return stream
  # Characters that the terminal's encoding lacks become escapes.
  return _Output(
    stream.buffer,
    stream.encoding,
    'backslashreplace',
    line_buffering=stream.line_buffering,
    write_through=stream.write_through,
  )


def end() -> int:
  """Writes what has been kept back; returns `CLOSED` if that failed, and 0 if not.

  A failure before, as in a function that ran at the exit, counts too.
  """
  status = 0
  for stream in (sys.stdout, sys.stderr):
    try:
      stream.flush()
    except (OSError, SystemExit):
      status = CLOSED
    if isinstance(stream, _Output) and not stream.has_reader:
      status = CLOSED
  return status
