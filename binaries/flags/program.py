"""How every binary starts, and how its errors reach a person."""

from collections.abc import Callable, Sequence
import signal
import sys

from absl import app
from absl import logging

from tff_ssl.runtime import allocator


def run(main: Callable[[], None]) -> None:
  """Runs a program, and ends the process; see `checked`.

  Args:
    main: Does the work; raises ValueError or OSError for bad input.
  """
  # TensorFlow may be imported by now, but has not begun its threads.
  allocator.keep_freed_memory()
  app.run(checked(main))


def checked(main: Callable[[], None]) -> Callable[[Sequence[str]], None]:
  """Returns what `app.run` runs: a program whose errors reach a person.

  Bad input is one sentence on stderr and exit status 1 (with `--verbosity=1` a
  traceback); Ctrl-C that nothing else handles is one line and 130.

  Args:
    main: Does the work; raises ValueError or OSError for bad input.
  """

  def run_checked(argv: Sequence[str]) -> None:
    try:
      if len(argv) > 1:
        raise ValueError(f'Unexpected argument {argv[1]!r}; all are --flag=value.')
      main()
    except (ValueError, OSError) as error:
      if logging.level_debug():
        raise
      print(f'Error: {_sentence(error)}', file=sys.stderr)
      sys.exit(1)
    except KeyboardInterrupt:
      print('\nstopped: the same command takes it up again', file=sys.stderr)
      sys.exit(128 + signal.SIGINT)

  return run_checked


def _sentence(error: Exception) -> str:
  """Returns what an error says, in one line."""
  if isinstance(error, OSError) and error.filename and error.strerror:
    return f'{error.filename}: {error.strerror}.'
  text = ' '.join(str(error).split())
  return text if text.endswith('.') else f'{text}.'
