"""What a function does in a fork of this process."""

from collections.abc import Callable
import os
import select
import signal

# More than a fork of gigabytes takes on a loaded machine.
_SECONDS = 60


def said(function: Callable[[], object]) -> str:
  """Returns what a function returns, or raises, as text, in a fork of this process.

  Raises:
    TimeoutError: If the fork does not end.
  """
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
    is_over = any(select.select([pipe], [], [], _SECONDS))
    if not is_over:
      os.kill(child, signal.SIGKILL)
    text = pipe.read()
  os.waitpid(child, 0)
  if not is_over:
    raise TimeoutError(f'the fork did not end in {_SECONDS} s')
  return text
