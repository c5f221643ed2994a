"""Answers --help, and refuses wrong command lines, without importing TensorFlow.

Its import takes seconds, and the table of methods needs it. So what `--help` says, and
how values are parsed, is recorded beside this file in outlines/PROGRAM.json, which
`make outlines` writes and a test compares with the flags. An old record does no harm:
what it does not know, or cannot parse, is left to the flags themselves.
"""

from collections.abc import Collection, Mapping, Sequence
import itertools
import json
import os
import pathlib
import re
import sys
from typing import Any

from absl import flags

from binaries.flags import parsing

# Flags belong to the modules that call this one, not to it.
flags.disclaim_key_flags()

_HELP = ('--help', '-help', '--helpshort', '-helpshort', '-?')
_HERE = pathlib.Path(__file__).parent
_FOLDER = _HERE / 'outlines'
_KINDS = {
  flags.BooleanParser: 'bool',
  flags.IntegerParser: 'integer',
  flags.FloatParser: 'float',
  flags.EnumParser: 'enum',
}


def path_of(program: str) -> pathlib.Path:
  """Returns the file of a program's record.

  Args:
    program: Its name, without its package.
  """
  return _FOLDER / f'{program}.json'


def record(
  doc: str,
  shown: flags.FlagValues,
  modules: Sequence[str],
  required: Mapping[str, str],
) -> dict[str, object]:
  """Returns what is to be recorded of a program, as JSON values.

  Args:
    doc: Its docstring.
    shown: Its flags.
    modules: That define them, in the order in which they are told.
    required: What the flags that it needs name.
  """
  return {
    'help': help_text(doc, shown, modules).split('\n'),
    'required': dict(required),
    'flags': {name: _outlined(shown[name]) for name in sorted(shown)},
  }


def help_text(doc: str, shown: flags.FlagValues, modules: Sequence[str]) -> str:
  """Returns what --help says; see `record` for the arguments."""
  parts = [shown.module_help(module).strip('\n') for module in modules]
  return '\n\n'.join([doc.strip(), *parts])


def _outlined(flag: 'flags.Flag[Any]') -> dict[str, object]:
  """Returns how values of a flag are parsed; of what is not recorded, nothing."""
  kind = _KINDS.get(type(flag.parser))
  if kind is None:
    return {}
  known: dict[str, object] = {'kind': kind}
  for name in ('lower_bound', 'upper_bound', 'enum_values'):
    if (value := getattr(flag.parser, name, None)) is not None:
      known[name] = value
  return known


def look(program: str, arguments: Sequence[str]) -> None:
  """Ends the process where a command line asks for help, or is clearly wrong.

  That is a malformed value, or a flag that the program needs and is not there.

  Args:
    program: Name of the program; of one that is not recorded nothing is known.
    arguments: What follows it on the command line.

  Raises:
    SystemExit: With 0 after the help, with 1 after what is wrong.
  """
  try:
    known = json.loads(path_of(program).read_text(encoding='utf-8'))
  except (OSError, ValueError):
    return
  if asks_for_help(arguments):
    try:
      print('\n'.join(known['help']), flush=True)
    except BrokenPipeError:
      # Whoever read it, as `head`, has enough. Python's own end would say so.
      os._exit(0)
    sys.exit(0)
  outlined = _defined(known['flags'])
  for argument in _flags(arguments):
    name, has_value, _ = argument.lstrip('-').partition('=')
    is_known = name in outlined or name.removeprefix('no') in outlined
    # `--name value` takes two arguments, which is left to the flags themselves.
    is_checked = has_value if is_known else not _is_mentioned(program, name)
    if argument.startswith('-') and is_checked:
      parsing.parse([program, argument], known['flags'], outlined)
  named = {argument.lstrip('-').partition('=')[0] for argument in _flags(arguments)}
  for name, what in known.get('required', {}).items():
    if not named & {name, 'flagfile'}:
      print(f'Error: {parsing.missing(name, what)}', file=sys.stderr)
      sys.exit(1)


def asks_for_help(arguments: Sequence[str]) -> bool:
  """Returns whether a command line has --help among its flags.

  Args:
    arguments: What follows the program.
  """
  return any(argument in _HELP for argument in _flags(arguments))


def _flags(arguments: Sequence[str]) -> list[str]:
  """Returns what is before a `--`, which ends the flags."""
  return list(itertools.takewhile(lambda argument: argument != '--', arguments))


def _defined(known: dict[str, dict[str, Any]]) -> flags.FlagValues:
  """Defines the flags; those whose parsers are not recorded take anything."""
  made = flags.FlagValues()
  define = {
    'bool': flags.DEFINE_bool,
    'integer': flags.DEFINE_integer,
    'float': flags.DEFINE_float,
  }
  for name, outlined in known.items():
    options = dict(outlined)
    kind = options.pop('kind', None)
    if kind == 'enum':
      flags.DEFINE_enum(name, None, options['enum_values'], '', flag_values=made)
    elif kind is None:
      flags.DEFINE_string(name, None, '', flag_values=made)
    else:
      define[kind](name, None, '', flag_values=made, **options)
  return made


def _is_mentioned(program: str, name: str) -> bool:
  """Returns whether a flag that is not recorded may exist, ours or a library's."""
  if not re.fullmatch(r'\w+', name):
    return True
  stem = name.removeprefix('no')
  sources = [*_HERE.glob('*.py'), _HERE.parent / f'{program}.py']
  texts = [path.read_text(encoding='utf-8') for path in sources if path.exists()]
  names: Collection[str] = {name, stem}
  return any(f"'{each}'" in text for text in texts for each in names) or any(
    each in flags.FLAGS for each in names
  )
