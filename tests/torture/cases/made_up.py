"""Command lines and configurations that hypothesis makes up, each with one mistake."""

import dataclasses
import importlib
import json
import typing
from typing import Any, NamedTuple

from hypothesis import strategies

from binaries.config import changing
from binaries.config import command_line
from binaries.config import programs
from binaries.config import roles
from binaries.config import run_config
from tests.binaries import command_lines
from tests.torture.cases import making
from tff_ssl.computing import kinds

# No blank, no brace, and nothing that begins a number or a name.
NONSENSE = strategies.text('?*.,:;!abcdef', min_size=1).map(lambda text: f'?{text}')
_BY = strategies.integers(1, 10**6)
# What a command line must say before the program reads other values.
_NEEDED = {
  'embed': '--run={d}/run --images={d} --out={d}/o',
  'evaluate': '--run={d}/run',
  'export': '--run={d}/run --out={d}/o',
}
# Flags whose kinds are found first, in the rows of the program.
_ROWS = ('method', 'objective')


class _Value(NamedTuple):
  """A value of a flag, or of one of its fields.

  Attributes:
    program: A program of `binaries`.
    flag: Name of the flag.
    kind: A kind that its text names; '' for a flag without kinds.
    field: Name of the field; '' for a flag that is one value.
    type_: Type of the value.
    default: The field's default, as text.
    right: A text that the program takes, if the flag may be repeated.
  """

  program: str
  flag: str
  kind: str
  field: str
  type_: Any
  default: str = ''
  right: str = ''

  def text(self, *fields: str) -> str:
    """Returns the text of the flag's value with these fields."""
    return f'{self.kind}{":" if self.kind else ""}{",".join(fields)}'


def flags() -> strategies.SearchStrategy[making.Case]:
  """Values, fields and kinds that a flag must refuse, also among right ones."""
  offered = [each for name in command_lines.programs() for each in _offered(name)]

  @strategies.composite
  def draw_case(draw) -> making.Case:
    value = draw(strategies.sampled_from(offered))
    ways = (_wrong_value, _wrong_field, _wrong_kind, _field_twice)
    way = draw(strategies.sampled_from(ways)) if value.field else _wrong_value
    text, words = draw(way(value))
    parts = [_NEEDED.get(value.program, ''), f'--{value.flag}={text}']
    if value.program in command_lines.TRAINING:
      parts.insert(0, making.RUN)
    if value.right:
      right = f'--{value.flag}={value.right}'
      parts.insert(-1, right * draw(strategies.booleans()))
      parts.append(right * draw(strategies.booleans()))
    line = ' '.join(part for part in parts if part)
    return making.case(value.program, line, words, making.run())

  return draw_case()


def configurations() -> strategies.SearchStrategy[making.Case]:
  """The config.json of a run, with a value, a field or a kind that is wrong."""

  @strategies.composite
  def draw_case(draw) -> making.Case:
    program = programs.load(draw(strategies.sampled_from(command_lines.TRAINING)))
    rows = [row for of_method in program.rows.values() for row in of_method.values()]
    row = draw(strategies.sampled_from(rows))
    types = {
      name: type_
      for name, type_ in _types(row).items()
      if row.uses(name) and _is_strict(type_)
    }
    name = draw(strategies.sampled_from(sorted(types)))
    part, _, field = name.rpartition('.')
    values = run_config.to_json(row)
    own = values[part] if part else values
    way = draw(strategies.sampled_from(('value', 'range', 'field', 'kind')))
    nonsense = draw(NONSENSE)
    if way == 'range' and (outside := _outside(types[name])):
      own[field] = float(draw(strategies.one_of(outside)))
      words = (field,)
    elif way == 'field':
      own[nonsense] = own.pop(field)
      words = ('The run has the field', nonsense)
    elif way == 'kind' and kinds.KIND in own:
      own[kinds.KIND] = nonsense
      words = (f'The run has the {part}', nonsense)
    else:
      own[field] = nonsense
      words = (f'The run has {name}=', 'it must')
    content = json.dumps({'config': values})
    make = making.text('theirs/config.json', content)
    lines = {
      program.name: f'{making.RUN} --config={{d}}/theirs/config.json',
      'evaluate': '--run={d}/theirs',
    }
    named = draw(strategies.sampled_from(sorted(lines)))
    return making.case(named, lines[named], words, make)

  return draw_case()


def _offered(program: str) -> list[_Value]:
  """Returns the values that a program's command line can have and must check."""
  module = importlib.import_module(f'binaries.{program}')
  if not hasattr(module, 'PROGRAM'):
    types = kinds.field_types(module.Options)
    row, tables = None, {**run_config.KINDS, **_alone(run_config.PARTS)}
  else:
    row = module.PROGRAM.row(None, None)
    types = kinds.field_types(run_config.RunConfig)
    types = {name: types.get(name, command_line.Changes) for name in _of_runs(row)}
    tables = {
      **run_config.KINDS,
      **_alone(run_config.PARTS),
      'method': module.PROGRAM.methods,
      'objective': module.PROGRAM.objectives,
    }
  made = list[_Value]()
  for flag, type_ in types.items():
    table = {'': type_} if dataclasses.is_dataclass(type_) else tables.get(flag, {})
    if flag in changing.SHORT:
      part, _, field = changing.SHORT[flag].partition('.')
      type_ = kinds.field_types(run_config.PARTS[part])[field]
    for kind, cls in table.items():
      right = ''
      if row is not None:
        right = kind if flag in _ROWS else kinds.to_text(getattr(row, flag))
      made += [
        _Value(program, flag, kind, field, own, _default(cls, field), right)
        for field, own in kinds.field_types(cls).items()
      ]
    if not table:
      made.append(_Value(program, flag, '', '', type_))
  return [value for value in made if _is_strict(value.type_)]


def _of_runs(row: run_config.RunConfig) -> list[str]:
  return [name for name in command_line.of_runs() if row.uses(name)]


def _alone(parts: dict[str, type[Any]]) -> dict[str, dict[str, type[Any]]]:
  """Returns a table of one kind without a name for each part."""
  return {name: {'': cls} for name, cls in parts.items()}


def _default(cls: Any, field: str) -> str:
  return kinds.value_text(cls.__dataclass_fields__[field].default)


def _types(row: run_config.RunConfig) -> dict[str, Any]:
  """Returns the types of a run's fields that are no paths, by name."""
  found = {}
  for name, _, field in roles.fields(row):
    part, _, last = name.rpartition('.')
    types = kinds.field_types(type(getattr(row, part) if part else row))
    if last in types and not roles.is_path(field):
      found[name] = types[last]
  return found


def _is_strict(type_: Any) -> bool:
  """Returns whether nonsense is not a value of a type."""
  inner = kinds.without_none(type_)[1]
  if typing.get_origin(inner) is tuple:
    return _is_strict(typing.get_args(inner)[0])
  return inner in (bool, int, float) or typing.get_origin(inner) is typing.Literal


def _outside(type_: Any) -> list[strategies.SearchStrategy[str]]:
  """Returns numbers out of a type's range, as texts."""
  ranges = [
    each
    for part in (type_, *typing.get_args(type_))
    for each in getattr(part, '__metadata__', ())
    if isinstance(each, kinds.Range)
  ]
  made = []
  for allowed in ranges:
    if allowed.least > -float('inf'):
      made.append(_BY.map(lambda k, least=allowed.least: str(int(least) - k)))
    if allowed.most < float('inf'):
      made.append(_BY.map(lambda k, most=allowed.most: str(int(most) + k)))
  return made


@strategies.composite
def _wrong_value(draw, value: _Value) -> tuple[str, tuple[str, ...]]:
  """Nonsense, or a number out of the range."""
  wrong = draw(strategies.one_of(NONSENSE, *_outside(value.type_)))
  text = value.text(f'{value.field}={wrong}') if value.field else wrong
  return text, (f'--{value.flag}={text} is given: ', 'it must')


@strategies.composite
def _wrong_field(draw, value: _Value) -> tuple[str, tuple[str, ...]]:
  """A field that no kind has."""
  text = value.text(f'{draw(NONSENSE)}=1')
  return text, (f'--{value.flag}={text} is given: ',)


@strategies.composite
def _wrong_kind(draw, value: _Value) -> tuple[str, tuple[str, ...]]:
  """A kind that no table has."""
  text = value._replace(kind=draw(NONSENSE)).text(f'{value.field}={value.default}')
  return text, (f'{value.flag}', '?')


def _field_twice(value: _Value) -> strategies.SearchStrategy:
  """A field that is given twice."""
  text = value.text(*[f'{value.field}={value.default}'] * 2)
  return strategies.just((text, (f'--{value.flag}={text} is given: ',)))
