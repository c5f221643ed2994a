"""What a function does in a fork of this process."""

from collections.abc import Callable
import os


def said(function: Callable[[], object]) -> str:
  """Returns what a function returns, or raises, as text, in a fork of this process."""
  reading, writing = os.pipe()
  child = os.fork()
  if not child:
    try:
      text = str(function())
    except BaseException as error:
      text = f'{type(error).__name__}: {error}'
    os.write(writing, text.encode())
    # Nothing of the tests must go on here.
    os._exit(0)
  os.close(writing)
  with os.fdopen(reading) as pipe:
    text = pipe.read()
  os.waitpid(child, 0)
  return text
