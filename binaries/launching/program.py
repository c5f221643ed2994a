"""Starts every program: reads its command line, and turns errors into sentences."""

import atexit
from collections.abc import Callable, Sequence
import faulthandler
import importlib
import logging as logging_lib
import os
import signal
import sys
from typing import Any, NoReturn

from absl import logging

from binaries.config import command_line
from binaries.config import help_text
from binaries.launching import stopping
from binaries.launching import streams
from tff_ssl.execution import allocator
from tff_ssl.runs import own_modules


def run(name: str, resumes: bool = True) -> None:
  """Runs a program of `binaries` with this process's command line, and ends it.

  Args:
    name: Name of the program's module in `binaries`, which has `main` and what the
      command line is parsed into: `PROGRAM`, or `Options`.
    resumes: See `run_checked`.
  """
  run_module(f'binaries.{name}', resumes)


def run_module(name: str, resumes: bool = True) -> None:
  """Runs any program like one of `binaries`; see `run`.

  Args:
    name: Name of its module.
    resumes: See `run_checked`.
  """
  # Not the module that was started, which is `__main__`: its classes would be others.
  module = importlib.import_module(name)
  if (asked := help_text.asked(sys.argv[1:])) is not None:
    try:
      import_own(sys.argv[1:])
      print(help_text.build(module, asked), flush=True)
    except BrokenPipeError:
      # The reader, such as `head`, has enough. A normal exit would print an error.
      os._exit(0)
    except ValueError as error:
      print(f'Error: {error}', file=sys.stderr)
      sys.exit(1)
    sys.exit(0)
  logging.get_absl_logger().addFilter(is_for_users)
  faulthandler.enable()
  try:
    start(module, sys.argv, resumes)
  except SystemExit as ended:
    end(ended)


def is_for_users(record: logging_lib.LogRecord) -> bool:
  """Returns whether a log line is meant for the users of a program.

  Args:
    record: A record of absl's logger, to which TensorFlow, TFF and TFDS write.
  """
  # TFF logs each lost connection, although an error reports the consequence. TFDS logs
  # each file that it opens.
  of_tfds = 'tensorflow_datasets' in record.pathname
  if of_tfds and record.levelno < logging_lib.WARNING:
    return False
  return 'retryable gRPC error' not in str(record.msg)


def import_tff() -> None:
  """Imports TFF without its default context, unless it is imported already.

  That context would leave a worker behind if a program ends without having opened one
  of ours. Whoever has imported TFF before decides about the context. Programs import it
  late, when the command line has been checked.
  """
  if 'tensorflow_federated' not in sys.modules:
    contexts = importlib.import_module('tff_ssl.execution.contexts')
    contexts.remove_default()


def start(module: Any, argv: Sequence[str], resumes: bool = True) -> None:
  """Parses a command line and runs a program; see `run_checked`.

  Args:
    module: A program of `binaries`.
    argv: The command line, with the program's name.
    resumes: See `run_checked`.

  Raises:
    SystemExit: At the end.
  """
  streams.make_inert()
  logging.get_absl_handler().python_handler.setStream(sys.stderr)
  # Not by absl's `app.run`: Keras makes no models if it is imported after that.
  logging.use_absl_handler()
  run_checked(lambda: work(module, argv[1:]), resumes)
  sys.exit(0)


def work(module: Any, arguments: Sequence[str]) -> None:
  """Parses a command line and does the work; errors are raised.

  Args:
    module: A program of `binaries`.
    arguments: The command line, after the program's name.
  """
  value = parse(module, import_own(arguments))
  # Before TensorFlow is imported, which starts threads.
  allocator.keep_freed_memory()
  module.main(value)


def import_own(arguments: Sequence[str]) -> list[str]:
  """Imports the modules that a command line names; returns its other arguments.

  Raises:
    ValueError: If one cannot be imported.
  """
  names, rest = command_line.take_imports(arguments)
  if names:
    # They import TensorFlow, and perhaps TFF.
    allocator.keep_freed_memory()
    import_tff()
    own_modules.load(names)
  return rest


def parse(module: Any, arguments: Sequence[str]) -> Any:
  """Returns what a program's command line says: a `RunConfig`, or its `Options`.

  Raises:
    ValueError: If it is malformed.
  """
  if hasattr(module, 'PROGRAM'):
    return command_line.parse_run(module.PROGRAM.name, arguments)
  return command_line.parse_options(module.Options, arguments)


def end(ended: SystemExit) -> None:
  """Ends the process at once: freeing TensorFlow's and TFF's memory takes seconds.

  Args:
    ended: The exit, with its status as in `sys.exit`.
  """
  code = ended.code
  if isinstance(code, str):
    sys.stderr.write(f'{code}\n')
  atexit._run_exitfuncs()
  status = code if isinstance(code, int) else int(code is not None)
  os._exit(streams.end() or status)


def run_checked(work: Callable[[], None], resumes: bool = True) -> None:
  """Does the work of a program, whose errors are readable to a person.

  Bad input, and failures that can happen to any run (`failures`), give one sentence on
  stderr and exit status 1 (with `--verbosity=1` a traceback). Ctrl-C that nothing else
  handles gives one line and status 130. Only a mistake in the code gives a traceback.

  Args:
    work: Does the work; raises ValueError or OSError for bad input.
    resumes: Whether the same command goes on where this one is stopped.
  """
  left = 'the same command resumes it' if resumes else 'nothing unfinished was written'
  line = f'stopped: {left}'
  try:
    stopping.interruptible(work, line)
  except Exception as error:
    if (number := stopping.received()) is not None:
      _end_stopped(number, line)
    sentence = _sentence(error)
    if sentence is None or logging.level_debug():
      raise
    print(f'Error: {sentence}', file=sys.stderr)
    sys.exit(1)
  except KeyboardInterrupt as stopped:
    # An interrupt from a signal has its number (`stopping`).
    _end_stopped(stopped.args[0] if stopped.args else signal.SIGINT, line)


def _end_stopped(number: int, line: str) -> NoReturn:
  print(f'\n{line}', file=sys.stderr)
  sys.exit(128 + number)


def _sentence(error: Exception) -> str | None:
  """Returns an error's message in one line; None if it tells a person nothing."""
  own = own_modules.described(error)
  if own is None and isinstance(error, ValueError):
    text = ' '.join(str(error).split())
    return text if text.endswith(('.', '?')) else f'{text}.'
  # Only here: it imports gRPC.
  failures = importlib.import_module('tff_ssl.execution.failures')
  return failures.sentence(error) or own
