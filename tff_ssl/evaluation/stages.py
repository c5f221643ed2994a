"""Lines on the terminal about a long evaluation: its stage, and the time left.

Functions of this package name their stages (`begin`) and say how far they are
(`update`); nothing is written unless a program asks for lines (`show_progress`). No
number depends on them.
"""

from collections.abc import Callable, Iterator
import contextlib
import contextvars
import sys
import time
from typing import TextIO

# A shorter evaluation writes nothing; a longer stage writes this often.
_QUIET_SECONDS = 5.0
_SECONDS_BETWEEN_LINES = 10.0


class StageLines:
  """A line for each stage once an evaluation has taken some seconds."""

  def __init__(
    self,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
    what: str = 'evaluating',
  ):
    """Starts the clock.

    Args:
      stream: Where to write; None: stderr.
      clock: Returns seconds.
      what: How each line begins.
    """
    self._what = what
    self._stream = stream
    self._clock = clock
    self._began = self._stage_began = self._last = clock()
    self._stage, self._timed = '', False

  def begin(self, stage: str) -> None:
    """Begins a stage."""
    self._stage, self._stage_began, self._timed = stage, self._clock(), False
    if self._stage_began - self._began >= _QUIET_SECONDS:
      self._write('')

  def update(self, done: int, total: int) -> None:
    """Says how much of the stage is done."""
    now = self._clock()
    if now - self._began < _QUIET_SECONDS or not 0 < done < total:
      return
    # The first line with the time left comes soon after the line without it.
    if self._timed and now - self._last < _SECONDS_BETWEEN_LINES:
      return
    self._timed = True
    left = (now - self._stage_began) / done * (total - done)
    minutes, seconds = divmod(round(left), 60)
    self._write(f', {done:,} of {total:,}, {minutes:02d}:{seconds:02d} left')

  def _write(self, rest: str) -> None:
    self._last = self._clock()
    stream = self._stream or sys.stderr
    stream.write(f'{self._what}: {self._stage}{rest}\n')
    stream.flush()


_lines: contextvars.ContextVar[StageLines | None] = contextvars.ContextVar(
  'lines', default=None
)


@contextlib.contextmanager
def show_progress(lines: StageLines | None = None) -> Iterator[None]:
  """Writes a line for each stage that begins within the block.

  Args:
    lines: Writes the lines; None: lines on stderr.
  """
  token = _lines.set(lines or StageLines())
  try:
    yield
  finally:
    _lines.reset(token)


def begin(stage: str) -> None:
  """Begins a stage, such as 'encoding 50,000 training examples'."""
  if (lines := _lines.get()) is not None:
    lines.begin(stage)


def update(done: int, total: int) -> None:
  """Says how much of the stage is done, in any units."""
  if (lines := _lines.get()) is not None:
    lines.update(done, total)
