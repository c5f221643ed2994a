"""The text of --help: a program's flags, or with --help=KIND the fields of a kind."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import importlib
import itertools
import textwrap
from typing import Any

from binaries.config import changing
from binaries.config import command_line
from binaries.config import docstrings
from binaries.config import programs
from binaries.config import repeating
from binaries.config import run_config
from tff_ssl.computing import kinds
from tff_ssl.computing import near_names
from tff_ssl.runs import own_modules

_HELP = ('--help', '-help', '--helpshort', '-helpshort', '-?')
_WIDTH = 88


def asked(arguments: Sequence[str]) -> str | None:
  """Returns what a command line asks help about: '' for the program; None: nothing.

  Args:
    arguments: The command line after the program's name.
  """
  for argument in itertools.takewhile(lambda each: each != '--', arguments):
    flag, _, about = argument.partition('=')
    if flag in _HELP:
      return about
  return None


def build(module: Any, about: str) -> str:
  """Returns the text of --help.

  Args:
    module: A program of `binaries`.
    about: '' for the program; the name of a kind, such as 'fedema', or of a flag.

  Raises:
    ValueError: If there is no such kind or flag.
  """
  if about:
    return _about(about, module)
  doc = (module.__doc__ or '').strip()
  program = getattr(module, 'PROGRAM', None)
  flags = [*_flags(module), (own_modules.FLAG, '', command_line.ABOUT_IMPORT)]
  example = next(iter(program.rows)) if program else _example(module)
  more = [f'--help=KIND shows the fields of a kind, as --help={example}']
  return '\n'.join(
    [doc, '', 'Flags:', *itertools.starmap(_flag, flags), *(more if example else [])]
  )


def _flags(module: Any) -> list[tuple[str, str, str]]:
  """Returns the flags of a program, with their defaults and what they are."""
  if hasattr(module, 'PROGRAM'):
    return _of_runs(module.PROGRAM)
  cls = module.Options
  defaults = {field.name: field.default for field in dataclasses.fields(cls)}
  return [
    (name, _default(defaults.get(name)), text)
    for name, text in command_line.of_options(cls).items()
    if name in defaults or name not in command_line.OF_ONE_RUN
  ]


def _of_runs(program: programs.Program) -> list[tuple[str, str, str]]:
  """Returns the flags of a training program, with the defaults of its first method."""
  row = program.row(None, None)
  rows = []
  for name, text in command_line.of_runs().items():
    value = getattr(row, name, None)
    if name in changing.SHORT:
      part, field = changing.SHORT[name].split('.')
      value = getattr(getattr(row, part), field)
    if not any(
      config.uses(name) for own in program.rows.values() for config in own.values()
    ):
      continue
    if names := _kinds_of(program, name):
      text = f'{text} One of {", ".join(names)}.'
    elif name in run_config.PARTS:
      text = f'{text} Its fields: --help={name}.'
    rows.append((name, _default(value), text))
  return rows


def _kinds_of(program: programs.Program, flag: str) -> Sequence[str]:
  """Returns the kinds that a program's flag takes; none if it takes no kind."""
  if flag == 'method':
    return [*program.methods]
  if flag == 'objective':
    return [*program.objectives]
  if flag == 'clients':
    classes = program.methods.values()
    return [*dict.fromkeys(k for m in classes for k in run_config.clients_of(m))]
  return [*run_config.KINDS.get(flag, ())]


def _default(value: Any) -> str:
  """Returns a default as on a command line; '' if there is none."""
  if value is dataclasses.MISSING or value is None:
    return ''
  if dataclasses.is_dataclass(value):
    return kinds.to_text(value)
  return repeating.text(value)


def _flag(name: str, default: str, text: str) -> str:
  shown = f'  --{name}={default}' if default else f'  --{name}'
  wrapped = textwrap.wrap(text, _WIDTH - 6)
  return '\n'.join([shown, *(f'      {line}' for line in wrapped)])


def _tables(
  program: programs.Program | None,
) -> Iterator[tuple[str, Mapping[str, type[Any]]]]:
  """Yields flags and their kinds by name."""
  if program is not None:
    yield 'method', program.methods
    yield 'objective', program.objectives
  yield 'method', programs.all_methods()
  yield from run_config.KINDS.items()


def _parts(module: Any) -> dict[str, type[Any]]:
  """Returns the flags of a program that are one dataclass, which only it has."""
  types = kinds.field_types(module.Options) if hasattr(module, 'Options') else {}
  return {name: cls for name, cls in types.items() if dataclasses.is_dataclass(cls)}


def _example(module: Any) -> str:
  """Returns a flag with fields, or a kind, of a program that trains nothing, or ''."""
  flags = command_line.of_options(module.Options)
  own = [*_parts(module), *(name for name in run_config.PARTS if name in flags)]
  return 'fedema' if 'method' in flags else next(iter(own), '')


def _about(name: str, module: Any) -> str:
  program = getattr(module, 'PROGRAM', None)
  if name in (own := _parts(module)):
    return _kind(name, '', own[name], None)
  if name in run_config.PARTS:
    row = None if program is None else getattr(program.row(None, None), name)
    return _kind(name, '', run_config.PARTS[name], row)
  if name == 'partition':
    # Only here: it imports NumPy.
    spec = importlib.import_module('tff_ssl.partition.spec')
    return (spec.__doc__ or '').strip()
  if name == 'task':
    registry = importlib.import_module('tasks.registry')
    return f'--task is one of {", ".join(registry.TASKS)}.'
  known: list[str] = ['partition', 'task', *own, *run_config.PARTS]
  # A name may be a kind of several flags: fedsup is a method and its objective.
  found: dict[str, str] = {}
  for flag, table in _tables(program):
    if name == flag:
      return '\n\n'.join(_kind(flag, kind, cls, None) for kind, cls in table.items())
    if name in table and flag not in found:
      found[flag] = _kind(flag, name, table[name], _row(program, flag, name))
    known += [flag, *table]
  if found:
    return '\n\n'.join(found.values())
  for own_flag in _flags(module):
    if name == own_flag[0]:
      return _flag(*own_flag)
    known.append(own_flag[0])
  raise ValueError(
    f'help is {name!r}; it must be a flag or a kind, such as '
    f'{", ".join(dict.fromkeys(known[:8]))}.{near_names.question(name, known)}'
  )


def _row(program: programs.Program | None, flag: str, name: str) -> Any:
  """Returns the value that a program's first fitting row has; None: none has it."""
  for row in program.rows.values() if program else ():
    for config in row.values():
      value = getattr(config, flag)
      if kinds.kind_of(value) == name:
        return value
  return None


def _kind(flag: str, name: str, cls: type[Any], row: Any) -> str:
  """Returns the fields of a kind, with defaults and meaning.

  Args:
    flag: The flag that takes it.
    name: Name of the kind; '' for a part without kinds.
    cls: The dataclass.
    row: The value whose fields are shown as defaults; None: those of the dataclass.
  """
  about = ' '.join((cls.__doc__ or '').partition('Attributes:')[0].split())
  lines = textwrap.wrap(about, _WIDTH)
  defaults = {field.name: field.default for field in dataclasses.fields(cls)}
  types, texts = kinds.field_types(cls), docstrings.attributes(cls)
  example = f'  --{flag}={name}' + (':' if name and types else '')
  lines.append(example + ('FIELD=VALUE,...' if types else ''))
  lines.append(f'  in Python: {_in_python(name, cls)}')
  for field, text in texts.items():
    value = defaults[field] if row is None else getattr(row, field)
    shown = '' if value is dataclasses.MISSING else f'={kinds.value_text(value)}'
    lines.append(f'    {field}{shown}  ({kinds.type_text(types[field])})')
    lines += [f'        {line}' for line in textwrap.wrap(text, _WIDTH - 8)]
  return '\n'.join(lines)


def _in_python(name: str, cls: type[Any]) -> str:
  """Returns what builds a kind in Python, as in encoders.Conv(kind='conv2', ...)."""
  takes_name = any(each.name == kinds.KIND for each in dataclasses.fields(cls))
  arguments = [f'{kinds.KIND}={name!r}'] if takes_name else []
  arguments += ['...'] if kinds.field_types(cls) else []
  return f'{cls.__module__}.{cls.__name__}({", ".join(arguments)})'
