"""What Ctrl-C and SIGTERM do before a program is at work; imported before all else."""

import os
import signal
import types


def while_it_imports() -> None:
  """Has both end this process by a line.

  Imports take seconds, in which Python's own would show where it was. There is nothing
  to save yet, and what is imported need not be tidied up. A signal that is ignored, as
  SIGINT of what a shell runs in the background, stays so.
  """
  for number in (signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
      signal.signal(number, _stop)


def as_it_begins() -> None:
  """Has both raise KeyboardInterrupt from here on, that of SIGTERM with its number."""
  if signal.getsignal(signal.SIGINT) is _stop:
    signal.signal(signal.SIGINT, signal.default_int_handler)
  if signal.getsignal(signal.SIGTERM) is _stop:
    signal.signal(signal.SIGTERM, _terminate)


def _stop(number: int, frame: types.FrameType | None) -> None:
  del frame
  os.write(2, b'\nstopped before it began: the same command starts it\n')
  os._exit(128 + number)


def _terminate(number: int, frame: types.FrameType | None) -> None:
  del frame
  raise KeyboardInterrupt(number)
