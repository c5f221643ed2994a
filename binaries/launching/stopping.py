"""Handles Ctrl-C and SIGTERM around a program's work; imported before all else.

One handler stays from the first import to the exit, because Python handles a signal
between any two instructions. It looks at what the program is doing: its work is
interrupted by an exception, which can be caught; anywhere else the process ends.
"""

from collections.abc import Callable
import os
import signal
import sys
import types

_received: list[int] = []
_lines = ['stopped before it began: the same command starts it']
# Seconds until an interrupt that was lost is repeated.
_PAUSE = 0.05


def while_it_imports() -> None:
  """Has both signals end this process with one line on stderr.

  Imports take seconds, during which Python's own handling would print a traceback.
  There is nothing to save yet, and the imports need no cleanup. A signal that is
  ignored, like SIGINT in a shell's background processes, stays ignored.
  """
  for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
      signal.signal(number, _stop)
      sys.unraisablehook = _repeat


def interruptible(work: Callable[[], None], line: str) -> None:
  """Does what both signals interrupt by KeyboardInterrupt, with the signal's number.

  Imports are not interrupted, which makes other errors of an exception or loses it: in
  them, as before and after the work, the signals end the process.

  Args:
    work: Does it.
    line: What a signal says that ends the process from now on.
  """
  _lines.append(line)
  work()


def received() -> int | None:
  """Returns the number of the signal that should have interrupted this process, if any.

  If KeyboardInterrupt is raised where C asks Python for an attribute, as TensorFlow
  does while it traces, it becomes an error that there is no such attribute.
  """
  return _received[-1] if _received else None


def _stop(number: int, frame: types.FrameType | None) -> None:
  if _is_interruptible(frame):
    _received.append(number)
    raise KeyboardInterrupt(number)
  if not _received:
    # After a first signal the line is there, or about to be.
    os.write(2, f'\n{_lines[-1]}\n'.encode())
  os._exit(128 + number)


def _is_interruptible(frame: types.FrameType | None) -> bool:
  """Returns whether `interruptible` is at work in a frame, and no import."""
  while frame is not None and frame.f_code is not interruptible.__code__:
    if frame.f_code.co_filename.startswith('<frozen importlib'):
      return False
    frame = frame.f_back
  return frame is not None


def _repeat(lost: 'sys.UnraisableHookArgs') -> None:
  """Sends a signal again whose exception was lost, as in a destructor."""
  if lost.exc_type is not KeyboardInterrupt or not _received:
    sys.__unraisablehook__(lost)
    return
  # Only here: it is seldom needed, and each import delays the handling of signals.
  import threading

  again = threading.Timer(_PAUSE, os.kill, (os.getpid(), _received[-1]))
  again.daemon = True
  again.start()
