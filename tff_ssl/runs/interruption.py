"""Ctrl-C and SIGTERM end a run between two rounds or, if a round is long, within it."""

import signal
import sys
import threading
import types
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds for a round to finish; a longer round is repeated when the run resumes.
_PATIENCE = 1.0


class Interrupted(SystemExit):
  """The run was asked to stop and has saved its state.

  Uncaught, it ends the process with the usual status of the signal: 130 for SIGINT, 143
  for SIGTERM.
  """

  def __init__(self, number: int):
    super().__init__(128 + number)
    self.signal = signal.Signals(number)


class Interruption:
  """Notes a first signal; one second later, or at the next signal, interrupts.

  It interrupts with a KeyboardInterrupt, while it is entered, in the main thread. In
  another thread, where Python cannot handle signals, it does nothing.

  Attributes:
    number: The first signal; None: there was none.
  """

  def __init__(self) -> None:
    self.number: int | None = None
    self._is_settled = False
    self._previous: dict[int, object] = {}

  def __enter__(self) -> Self:
    if threading.current_thread() is threading.main_thread():
      for number in _SIGNALS:
        self._previous[number] = signal.signal(number, self._handle)
      self._previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._time_is_up)
    return self

  def end_countdown(self) -> None:
    """Ends the countdown: from now on only a further signal interrupts."""
    self._is_settled = True

  def __exit__(self, kind: object, *_: object) -> None:
    if self._previous:
      signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in self._previous.items():
      signal.signal(number, handler)  # type: ignore[arg-type]
    if self.number is not None and kind is None:
      # It came after the last look at `number`.
      signal.raise_signal(self.number)

  def _handle(self, number: int, frame: types.FrameType | None) -> None:
    del frame
    if self.number is not None:
      raise KeyboardInterrupt(number)
    self.number = number
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    sys.stderr.write(
      f'\n{signal.Signals(number).name}: stopping after this round, or in a '
      'second, whichever comes first\n'
    )

  def _time_is_up(self, number: int, frame: types.FrameType | None) -> None:
    del number, frame
    if not self._is_settled:
      raise KeyboardInterrupt
