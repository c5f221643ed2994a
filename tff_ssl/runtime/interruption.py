"""Ctrl-C and SIGTERM end a run between two rounds, not in the middle of one."""

import signal
import sys
import threading
import types
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(SystemExit):
  """The run was asked to stop and has saved its state.

  Uncaught, it ends the process with the status that the signal calls for: 130 for
  SIGINT, 143 for SIGTERM.
  """

  def __init__(self, number: int):
    super().__init__(128 + number)
    self.signal = signal.Signals(number)


class Interruption:
  """While entered, the first signal is noted and the second stops at once.

  The second raises KeyboardInterrupt. Outside the main thread, where Python cannot
  handle signals, nothing changes.
  """

  def __init__(self) -> None:
    self.number: int | None = None
    self._previous: dict[int, object] = {}

  def __enter__(self) -> Self:
    if threading.current_thread() is threading.main_thread():
      for number in _SIGNALS:
        self._previous[number] = signal.signal(number, self._handle)
    return self

  def __exit__(
    self,
    exception_type: type[BaseException] | None,
    exception: BaseException | None,
    traceback: types.TracebackType | None,
  ) -> None:
    for number, handler in self._previous.items():
      signal.signal(number, handler)  # type: ignore[arg-type]

  def _handle(self, number: int, frame: types.FrameType | None) -> None:
    del frame
    if self.number is not None:
      raise KeyboardInterrupt
    self.number = number
    sys.stderr.write(
      f'\n{signal.Signals(number).name}: stopping after this round; '
      'once more to stop at once\n'
    )
