"""What Ctrl-C and SIGTERM do before a program is at work; imported before all else."""

import os
import signal
import types

_received: list[int] = []


def while_it_imports() -> None:
  """Has both signals end this process with one line on stderr.

  Imports take seconds, in which Python's own would show where it was. There is nothing
  to save yet, and what is imported need not be tidied up. A signal that is ignored, as
  SIGINT of what a shell runs in the background, stays so.
  """
  for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
      signal.signal(number, _stop)


def as_it_begins() -> None:
  """Has both signals raise KeyboardInterrupt, with the signal's number as argument."""
  for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) is _stop:
      signal.signal(number, _interrupt)


def received() -> int | None:
  """Returns the number of the signal that was to interrupt this process, if one was.

  Raised where C asks Python for an attribute, as TensorFlow does while it traces,
  KeyboardInterrupt becomes an error that there is no such attribute.
  """
  return _received[-1] if _received else None


def _stop(number: int, frame: types.FrameType | None) -> None:
  del frame
  os.write(2, b'\nstopped before it began: the same command starts it\n')
  os._exit(128 + number)


def _interrupt(number: int, frame: types.FrameType | None) -> None:
  del frame
  _received.append(number)
  raise KeyboardInterrupt(number)
