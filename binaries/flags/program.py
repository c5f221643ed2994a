"""How every binary starts, and how its errors reach a person."""

from collections.abc import Callable, Collection, Sequence
import itertools
import signal
import sys

from absl import app
from absl import flags
from absl import logging

from tff_ssl.runtime import allocator

_HELP = ('--help', '-help', '--helpshort', '-helpshort', '-?')


def run(main: Callable[[], None], taken: Collection[str] | None = None) -> None:
  """Runs a program, and ends the process; with --help, says what its flags are.

  Args:
    main: Does the work; raises ValueError or OSError for bad input.
    taken: Flags that --help lists; None: all of the modules that are imported.
  """
  if _asks_for_help(sys.argv):
    print(help_text(sys.argv[0], taken))
    sys.exit(0)
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


def flags_by_module() -> dict[str, list[str]]:
  """Returns the names of the flags that our modules define, by module."""
  found = flags.FLAGS.flags_by_module_dict()
  # The main module is known by the path it was started with.
  ours = [m for m in found if m.startswith('binaries') or m.endswith('.py')]
  return {module: [flag.name for flag in found[module]] for module in ours}


def help_text(main_module: str, taken: Collection[str] | None = None) -> str:
  """Returns the docstring of the program and its flags.

  absl's own --help lists the flags of the main module alone, where ours has none.

  Args:
    main_module: Its name among the modules with flags: the path it was started with.
    taken: Names of its flags; None: all of our modules that are imported.
  """
  shown = flags.FlagValues()
  for module, names in flags_by_module().items():
    for name in names:
      if taken is None or name in taken:
        shown[name] = flags.FLAGS[name]
        shown.register_flag_by_module(module, flags.FLAGS[name])
  modules = sorted(
    shown.flags_by_module_dict(), key=lambda name: (name != main_module, name)
  )
  parts = [shown.module_help(module).strip('\n') for module in modules]
  doc = sys.modules['__main__'].__doc__ or ''
  return '\n\n'.join([doc.strip(), *parts])


def _asks_for_help(arguments: Sequence[str]) -> bool:
  """Returns whether a command line has --help, before a `--` that ends the flags."""
  given = itertools.takewhile(lambda argument: argument != '--', arguments[1:])
  return any(argument in _HELP for argument in given)


def _sentence(error: Exception) -> str:
  """Returns what an error says, in one line."""
  if isinstance(error, OSError) and error.filename and error.strerror:
    return f'{error.filename}: {error.strerror}.'
  text = ' '.join(str(error).split())
  return text if text.endswith('.') else f'{text}.'
