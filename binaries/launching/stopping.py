"""Handles Ctrl-C and SIGTERM before a program works; imported before all else."""

import os
import signal
import types

_received: list[int] = []


def while_it_imports() -> None:
  """Has both signals end this process with one line on stderr.

  Imports take seconds, during which Python's own handling would print a traceback.
  There is nothing to save yet, and the imports need no cleanup. A signal that is
  ignored, like SIGINT in a shell's background processes, stays ignored.
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
  """Returns the number of the signal that should have interrupted this process, if any.

  If KeyboardInterrupt is raised where C asks Python for an attribute, as TensorFlow
  does while it traces, it becomes an error that there is no such attribute.
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
