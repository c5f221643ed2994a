"""Answers --help, and refuses wrong command lines, without importing TensorFlow.

Importing TensorFlow takes seconds, and the table of methods needs it. So the text of
`--help`, and how values are parsed, are recorded next to this file in
outlines/PROGRAM.json. `make outlines` writes the records, and a test compares them with
the flags. An outdated record does no harm: what it does not know or cannot parse is
left to the flags themselves.
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

# Flags belong to the modules that call this one, not to this one.
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
    program: Name of the program, without its package.
  """
  return _FOLDER / f'{program}.json'


def record(
  doc: str,
  shown: flags.FlagValues,
  modules: Sequence[str],
  required: Mapping[str, str],
) -> dict[str, object]:
  """Returns the record of a program, as JSON values.

  Args:
    doc: Docstring of the program.
    shown: Its flags.
    modules: The modules that define the flags, in the order in which they are listed.
    required: For each flag that the program needs, what it names.
  """
  return {
    'help': help_text(doc, shown, modules).split('\n'),
    'required': dict(required),
    'flags': {name: _outlined(shown[name]) for name in sorted(shown)},
  }


def help_text(doc: str, shown: flags.FlagValues, modules: Sequence[str]) -> str:
  """Returns the text of --help; see `record` for the arguments."""
  parts = [shown.module_help(module).strip('\n') for module in modules]
  return '\n\n'.join([doc.strip(), *parts])


def _outlined(flag: 'flags.Flag[Any]') -> dict[str, object]:
  """Returns how values of a flag are parsed; nothing if that is not recorded."""
  kind = _KINDS.get(type(flag.parser))
  if kind is None:
    return {}
  known: dict[str, object] = {'kind': kind}
  for name in ('lower_bound', 'upper_bound', 'enum_values'):
    if (value := getattr(flag.parser, name, None)) is not None:
      known[name] = value
  return known


def look(program: str, arguments: Sequence[str]) -> None:
  """Ends the process if a command line asks for help, or is clearly wrong.

  It is clearly wrong if a value is malformed, or a flag that the program needs is
  missing.

  Args:
    program: Name of the program; without a record, nothing is checked.
    arguments: The command line after the program's name.

  Raises:
    SystemExit: With 0 after the help, with 1 after an error message.
  """
  try:
    known = json.loads(path_of(program).read_text(encoding='utf-8'))
  except (OSError, ValueError):
    return
  if asks_for_help(arguments):
    try:
      print('\n'.join(known['help']), flush=True)
    except BrokenPipeError:
      # The reader, such as `head`, has enough. A normal exit would print an error.
      os._exit(0)
    sys.exit(0)
  outlined = _defined(known['flags'])
  for argument in _flags(arguments):
    name, has_value, _ = argument.lstrip('-').partition('=')
    is_known = name in outlined or name.removeprefix('no') in outlined
    # `--name value` takes two arguments; this is left to the flags themselves.
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
    arguments: The command line after the program's name.
  """
  return any(argument in _HELP for argument in _flags(arguments))


def _flags(arguments: Sequence[str]) -> list[str]:
  """Returns the arguments before a `--`, which ends the flags."""
  return list(itertools.takewhile(lambda argument: argument != '--', arguments))


def _defined(known: dict[str, dict[str, Any]]) -> flags.FlagValues:
  """Defines the flags; those without a recorded parser take any value."""
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
  """Returns whether an unrecorded flag may exist, ours or a library's."""
  if not re.fullmatch(r'\w+', name):
    return True
  stem = name.removeprefix('no')
  sources = [*_HERE.glob('*.py'), _HERE.parent / f'{program}.py']
  texts = [path.read_text(encoding='utf-8') for path in sources if path.exists()]
  names: Collection[str] = {name, stem}
  return any(f"'{each}'" in text for text in texts for each in names) or any(
    each in flags.FLAGS for each in names
  )
