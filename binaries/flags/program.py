"""Starts every binary: parses flags, and turns errors into sentences."""

import atexit
from collections.abc import Callable, Collection, Mapping, Sequence
import copy
import logging as logging_lib
import math
import os
import re
import signal
import sys
from typing import NoReturn

from absl import app
from absl import flags
from absl import logging

from binaries.flags import outline
from binaries.flags import parsing
from binaries.flags import stopping
from binaries.flags import streams
from tff_ssl.execution import allocator
from tff_ssl.execution import failures


def run(main: Callable[[], None], taken: Collection[str] | None = None) -> None:
  """Runs a program, and ends the process; with --help, lists its flags.

  Args:
    main: Does the work; raises ValueError or OSError for bad input.
    taken: Flags that --help lists; None: all flags of the imported modules.
  """
  if outline.asks_for_help(sys.argv[1:]):
    print(help_text(sys.argv[0], taken))
    sys.exit(0)
  logging.get_absl_logger().addFilter(is_told)
  # TensorFlow may be imported by now, but has not started its threads.
  allocator.keep_freed_memory()
  stopping.as_it_begins()
  try:
    start(main, sys.argv, taken)
  except SystemExit as ended:
    end(ended)


def is_told(record: logging_lib.LogRecord) -> bool:
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


def start(
  main: Callable[[], None], argv: Sequence[str], taken: Collection[str] | None = None
) -> None:
  """Parses a command line and runs a program; see `checked`.

  Args:
    main: Does the work.
    argv: The command line, with the program's name.
    taken: See `run`.

  Raises:
    SystemExit: At the end.
  """
  streams.make_inert()
  logging.get_absl_handler().python_handler.setStream(sys.stderr)
  own = (name for names in flags_by_module().values() for name in names)
  offered = [*own] if taken is None else [*taken]
  app.run(
    checked(main),
    argv=[*argv],
    flags_parser=lambda given: parsing.parse(given, offered),
  )


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


def check_required(required: Mapping[str, str]) -> None:
  """Refuses a command line without the flags that a program needs.

  Args:
    required: What each flag names. `outline` records them, and asks for missing flags
      before TensorFlow is imported; here flags that are given but empty are found.

  Raises:
    ValueError: If a flag has no value.
  """
  for name, what in required.items():
    if not flags.FLAGS[name].value:
      raise ValueError(parsing.missing(name, what))


def check_first(check: Callable[[], None], taken: Collection[str]) -> None:
  """Checks some flags before the modules that define the others are imported.

  The modules take seconds to import. Bad input ends the process as `checked` says.
  Otherwise the flags are reset, to be parsed later with the others.

  Args:
    check: Raises ValueError or OSError for bad input.
    taken: Names of the flags that it reads, which must be defined.
  """
  if outline.asks_for_help(sys.argv[1:]):
    return
  known = {*taken} & {*flags.FLAGS}
  arguments = [a for a in sys.argv[1:] if a.lstrip('-').partition('=')[0] in known]
  try:
    flags.FLAGS([sys.argv[0], *arguments])
  except flags.Error:
    # `start` reports it.
    return
  checked(check)([sys.argv[0]])
  for name in known:
    flags.FLAGS[name].unparse()
  flags.FLAGS.unparse_flags()


def checked(main: Callable[[], None]) -> Callable[[Sequence[str]], None]:
  """Returns a program for `app.run` whose errors are readable to a person.

  Bad input, and failures that can happen to any run (`failures`), give one sentence on
  stderr and exit status 1 (with `--verbosity=1` a traceback). Ctrl-C that nothing else
  handles gives one line and status 130. Only a mistake in the code gives a traceback.

  Args:
    main: Does the work; raises ValueError or OSError for bad input.
  """

  def run_checked(argv: Sequence[str]) -> None:
    try:
      if len(argv) > 1:
        raise ValueError(
          f'Unexpected argument {argv[1]!r}; all arguments must be --flag=value.'
        )
      _check_numbers()
      main()
    except Exception as error:
      if (number := stopping.received()) is not None:
        _end_stopped(number)
      sentence = _sentence(error)
      if sentence is None or logging.level_debug():
        raise
      print(f'Error: {sentence}', file=sys.stderr)
      sys.exit(1)
    except KeyboardInterrupt as stopped:
      # An interrupt from a signal has its number (`stopping`).
      _end_stopped(stopped.args[0] if stopped.args else signal.SIGINT)

  return run_checked


def _end_stopped(number: int) -> NoReturn:
  print('\nstopped: the same command resumes it', file=sys.stderr)
  sys.exit(128 + number)


def flags_by_module() -> dict[str, list[str]]:
  """Returns the names of the flags that our modules define, by module."""
  found = flags.FLAGS.flags_by_module_dict()
  # The main module is listed under the path with which it was started.
  ours = [m for m in found if m.startswith('binaries') or m.endswith('.py')]
  return {module: [flag.name for flag in found[module]] for module in ours}


def help_text(main_module: str, taken: Collection[str] | None = None) -> str:
  """Returns the docstring of the program and its flags.

  absl's own --help lists only the flags of the main module, and ours has none.

  Args:
    main_module: Its name among the modules with flags: the path that started it.
    taken: Names of its flags; None: all flags of our imported modules.
  """
  doc = sys.modules['__main__'].__doc__ or ''
  return outline.help_text(doc, *shown(main_module, taken))


def shown(
  main_module: str,
  taken: Collection[str] | None = None,
  defaults: Mapping[str, str] | None = None,
) -> tuple[flags.FlagValues, list[str]]:
  """Returns the flags that --help lists, and their modules in order.

  Args:
    main_module: See `help_text`.
    taken: See `help_text`.
    defaults: Texts of defaults, by flag, for defaults that are not the flag's own.
  """
  values = flags.FlagValues()
  for module, names in flags_by_module().items():
    for name in names:
      if taken is None or name in taken:
        flag = copy.deepcopy(flags.FLAGS[name])
        flag.default_as_str = (defaults or {}).get(name, flag.default_as_str)
        values[name] = flag
        values.register_flag_by_module(module, flag)
  modules = sorted(
    values.flags_by_module_dict(), key=lambda name: (name != main_module, name)
  )
  return values, modules


def _sentence(error: Exception) -> str | None:
  """Returns an error's message in one line; None if it tells a person nothing."""
  if not isinstance(error, ValueError):
    return failures.sentence(error)
  text = ' '.join(str(error).split())
  text = text if text.endswith('.') else f'{text}.'
  return text + _where_from(text)


def _check_numbers() -> None:
  """Refuses numbers that none of our flags takes.

  Raises:
    ValueError: If one is infinite or NaN.
  """
  for name, value in _given().items():
    if isinstance(value, float) and not math.isfinite(value):
      raise ValueError(f'--{name} is {value}; it must be a finite number.')


def _where_from(text: str) -> str:
  """Returns a sentence that names the flags whose values caused an error.

  Libraries do not know the flags: a schedule's `initial` is --server_learning_rate for
  the user. The sentence is empty if the error already names a flag or a path.
  """
  given = _given()
  if text.partition(' ')[0] in flags.FLAGS:
    return ''
  is_path = re.search(r'[\w.~]/[A-Za-z_.]|(^|[\s\'"])/\w', text)
  if '--' in text or is_path or any(name in text for name in given):
    return ''
  pieces = re.split(r'[^-+.\w]+', text.partition(';')[0])
  words = {piece.rstrip('.') for piece in pieces}
  found = [
    f'--{name}={flags.FLAGS[name].serialize().partition("=")[2]}'
    for name, value in given.items()
    if not isinstance(value, bool) and _texts(value) and _texts(value) <= words
  ]
  return f' It comes from {" or ".join(found)}.' if found else ''


def _texts(value: object) -> set[str]:
  return set(map(str, value if isinstance(value, list) else [value]))


def _given() -> dict[str, object]:
  """Returns the values of those of our flags that the command line gives."""
  names = sorted(name for own in flags_by_module().values() for name in own)
  known = flags.FLAGS
  return {name: known[name].value for name in names if known[name].present}
