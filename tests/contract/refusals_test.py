"""What is outside of a setting's range is refused in one sentence that names it.

The ranges and choices are those of the fields' types (`computing.kinds`): a field that
is added is tested here, and nowhere else. What a rule between fields says is tested
beside the rule.
"""

import collections
from collections.abc import Iterator
import dataclasses
import functools
import importlib
import math
import pkgutil
import typing
from typing import Any, NamedTuple

import pytest

# isort: split
from binaries.config import command_line
from binaries.config import programs
from binaries.config import run_config
import tff_ssl
from tff_ssl.computing import kinds

_PARTS = {name: {'': cls} for name, cls in run_config.PARTS.items()}
_METHODS = programs.all_methods()
_WITH_OPTIONS = (
  'compare',
  'demo_sites',
  'embed',
  'evaluate',
  'export',
  'partition',
  'predict',
  'site',
  'sweep',
)
_TABLES = {**run_config.KINDS, **_PARTS, 'method': _METHODS}


class _Case(NamedTuple):
  """A value that a field must refuse, as text and from Python."""

  cls: type[Any]
  field: str
  text: str
  value: Any


def _outside(allowed: kinds.Range, of: type) -> Iterator[float]:
  """Yields the numbers next to a range that are not in it."""
  for end, excluded, sign in (
    (allowed.least, allowed.least_excluded, -1),
    (allowed.most, allowed.most_excluded, 1),
  ):
    if math.isfinite(end):
      step = 1 if of is int else max(1e-9, abs(end) * 1e-9)
      yield of(end) if excluded else of(end) + sign * step


def _wrong(cls: type[Any]) -> Iterator[_Case]:
  """Yields values that each field of a class must refuse."""
  for field, type_ in kinds.field_types(cls).items():
    inner = kinds.without_none(type_)[1]
    is_tuple = typing.get_origin(inner) is tuple
    item = typing.get_args(inner)[0] if is_tuple else type_
    of = kinds.without_none(item)[1]
    if of in (int, float):
      numbers = [math.nan, math.inf, *_outside(kinds.range_of(item), of)]
      for number in numbers:
        yield _Case(cls, field, repr(number), (number,) if is_tuple else number)
    if of in (int, float, bool) or typing.get_origin(of) is typing.Literal:
      yield _Case(cls, field, 'neither', ('neither',) if is_tuple else 'neither')


def _numbers_for_settings(cls: type[Any]) -> Iterator[_Case]:
  """Yields a number in the place of settings, such as those of an objective."""
  for field, type_ in kinds.field_types(cls).items():
    if _is_kind(kinds.without_none(type_)[1]):
      yield _Case(cls, field, '0.5', 0.5)


def _is_kind(type_: Any) -> bool:
  return isinstance(type_, type) and issubclass(type_, kinds.Kind)


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
  for each in cls.__subclasses__():
    yield each
    yield from _subclasses(each)


@functools.cache
def _of_the_library() -> list[type[Any]]:
  """Returns the library's configurations and objectives that types check."""
  for module in pkgutil.walk_packages(tff_ssl.__path__, 'tff_ssl.'):
    importlib.import_module(module.name)
  found = {
    each
    for each in _subclasses(kinds.Kind)
    if each.__module__.startswith('tff_ssl.') and dataclasses.is_dataclass(each)
  }
  return sorted(found, key=lambda each: (each.__module__, each.__name__))


def _of_runs() -> list[tuple[str, str, type[Any]]]:
  """Returns the configurations of runs: name of the flag, of the kind, and class."""
  return [
    (flag, kind, cls) for flag, table in _TABLES.items() for kind, cls in table.items()
  ]


def _classes() -> list[type[Any]]:
  of_runs = {cls: None for _, _, cls in _of_runs()}
  return [*_of_the_library(), *of_runs, run_config.RunConfig]


def _check(error: pytest.ExceptionInfo[ValueError], case: _Case, shown: str) -> None:
  """Asserts one sentence with the field, its value and what is allowed."""
  said = str(error.value)
  allowed = kinds.type_text(kinds.field_types(case.cls)[case.field])
  assert '\n' not in said
  assert said.endswith('.')
  assert case.field in said and shown in said, (case, said)
  # A number of several is named by its own range.
  assert allowed in said or isinstance(case.value, tuple), (case, said)


def test_python_values_outside_of_a_type_are_refused_before_any_rule():
  for cls in _classes():
    needed = {
      field.name: ''
      for field in dataclasses.fields(cls)
      if field.default is dataclasses.MISSING
      and field.default_factory is dataclasses.MISSING
      and field.init
    }
    for name, type_ in kinds.field_types(cls).items():
      if name in needed:
        needed[name] = _allowed(type_)
    for case in (*_wrong(cls), *_numbers_for_settings(cls)):
      with pytest.raises(ValueError) as refused:
        cls(**{**needed, case.field: case.value})
      _check(refused, case, f'{case.field} is {case.value!r}; it must be')


def _allowed(type_: Any) -> Any:
  """Returns what a type of numbers allows; None for what is not checked."""
  optional, inner = kinds.without_none(type_)
  if typing.get_origin(inner) is tuple:
    return ()
  if typing.get_origin(inner) is typing.Literal:
    return typing.get_args(inner)[0]
  if _is_kind(inner):
    return inner.__new__(inner)
  if optional or inner not in (int, float):
    return None
  own = kinds.range_of(type_)
  return next(each for each in (own.least, 1, 0.5, 10) if own.allows(inner(each)))


def _rows() -> Iterator[tuple[str, run_config.RunConfig]]:
  for program in programs.NAMES:
    for row in programs.load(program).rows.values():
      for config in row.values():
        yield program, config


def _line(flag: str, kind: str, case: _Case) -> tuple[str, list[str]]:
  """Returns a program and a command line that give a field its wrong value."""
  path = f'{flag}.{case.field}' if flag else case.field
  for program, config in _rows():  # noqa: B007
    steps = flag == 'clients' and kind not in run_config.clients_of(config.method)
    own = flag in ('method', 'objective') and getattr(config, flag).kind != kind
    if not (steps or own or not config.uses(path)):
      break
  else:
    raise AssertionError(f'No row uses {path} of {kind}.')
  flags = [f'--method={config.method.kind}', f'--objective={config.objective.kind}']
  given = f'{case.field}={case.text}'
  if flag in ('method', 'objective'):
    flags = [each for each in flags if not each.startswith(f'--{flag}')]
  prefix = f'--{flag}=' + (f'{kind}:' if kind else '') if flag else '--'
  return program, [*flags, f'{prefix}{given}', '--run_dir=r']


def _cases() -> Iterator[tuple[str, str, _Case]]:
  for flag, kind, cls in [*_of_runs(), ('', '', run_config.RunConfig)]:
    for case in _wrong(cls):
      yield flag, kind, case


def test_command_lines_with_values_outside_of_a_type_are_refused():
  for flag, kind, case in _cases():
    if not flag and case.field not in command_line.of_runs():
      continue
    program, line = _line(flag, kind, case)
    with pytest.raises(ValueError) as refused:
      command_line.parse_run(program, line)
    _check(refused, case, case.text)


def test_json_values_outside_of_a_type_are_refused():
  values = run_config.to_json(programs.load('dcco').row(None, None))
  for flag, kind, case in _cases():
    wrong = list(case.value) if isinstance(case.value, tuple) else case.value
    own = {case.field: wrong}
    if flag:
      own = {flag: {'kind': kind, **own} if kind else own}
    with pytest.raises(ValueError) as refused:
      run_config.from_json({**values, **own}, _METHODS)
    _check(refused, case, '')


# A row for each rule between fields (`Kind.rules`): fields that break it, as on a
# command line, and what is said.
_RULES = [
  (
    'fedema',
    'tau=0.5,scaler=0.8',
    'tau is 0.5; leave it, or scaler and constant',
  ),
  (
    'fedema',
    'scaler=0.8,constant_mu=1',
    'scaler is 0.8; constant_mu is 1; leave o',
  ),
  (
    'fedema',
    'autoscaler=first_round,scaler=1',
    'autoscaler is first_round; it must be',
  ),
  (
    'fedema',
    'autoscaler=first_round,divergence_of=training',
    'autoscaler is first_round; it must be returning with divergence_of=training',
  ),
  (
    'fedu',
    'threshold=0.2,threshold_quantile=0.5',
    'threshold is 0.2; threshold_quantile is 0.5; leave one of them out',
  ),
  ('fedu', 'replaced=none', 'replaced is none; it must be online, target or both, bec'),
  ('fedu2', 'unified=false,sketch_size=9', 'sketch_size is 9; leave it out with unif'),
  ('sgd', 'warmup_rounds=2', 'warmup_rounds is 2; it must be 0 with schedule=constant'),
  ('sgd', 'schedule=steps', 'schedule is steps; it needs rounds, as in steps=60/90'),
  ('sgd', 'steps=6/9', 'steps is 6/9; leave it out with schedule=constant, because i'),
  ('sgd', 'schedule=steps,steps=9/6', 'steps is 9/6; each must be larger than the'),
  ('adam', 'factor=0.5', 'factor is 0.5; leave it out with schedule=constant, because'),
  ('adam', 'accumulate=2', 'accumulate is 2; it needs a batch_size'),
  ('adam', 'drop_last_batch=always', 'drop_last_batch is always; it needs a batch_'),
  ('fedu2', 'tau=2,uniformity_weight=0', 'tau is 2; leave it out with uniformity_wei'),
  ('byol', 'target_trained=false', 'target_trained is false; it must be true with st'),
]


def _table_of(kind: str) -> tuple[str, type[Any]]:
  """Returns the flag and the class of a kind."""
  return next((flag, table[kind]) for flag, table in _TABLES.items() if kind in table)


@pytest.mark.parametrize(('kind', 'text', 'said'), _RULES)
def test_a_rule_between_fields_is_kept_by_python_json_and_command_lines(
  kind, text, said
):
  flag, cls = _table_of(kind)
  values = {
    name: kinds.checked_value(value, kinds.field_types(cls)[name])
    for name, value in (each.split('=') for each in text.split(','))
  }
  own = (
    {'kind': kind} if 'kind' in {each.name for each in dataclasses.fields(cls)} else {}
  )
  with pytest.raises(ValueError, match=f'^{said}'):
    cls(**own, **values)
  program, config = next(
    (program, config)
    for program, config in _rows()
    if kind in (config.method.kind, config.objective.kind)
    or kind in run_config.clients_of(config.method)
  )
  lists = {n: [*own] if isinstance(own, tuple) else own for n, own in values.items()}
  run = {**run_config.to_json(config), flag: {'kind': kind, **lists}}
  with pytest.raises(ValueError, match=f'^{said}'):
    run_config.from_json(run, _METHODS)
  # One field after the other: all are given before the rule is checked.
  line = [f'--method={config.method.kind}', f'--{flag}={kind}', '--run_dir=r']
  line += [f'--{flag}={each}' for each in text.split(',')]
  with pytest.raises(ValueError) as refused:
    command_line.parse_run(program, line)
  first, _, rest = said.partition(' is ')
  assert str(refused.value).startswith(f'{first} of --{flag} is {rest}')


def test_every_rule_has_a_row():
  rules = {rule for cls in _classes() for rule in getattr(cls, 'rules', ())}
  assert len({said for _, _, said in _RULES}) == len(rules)


def test_every_number_has_a_range():
  """A number without one accepts what its docstring excludes."""
  open_ends = {
    (cls.__name__, field)
    for cls in _classes()
    for field, type_ in kinds.field_types(cls).items()
    if kinds.without_none(type_)[1] in (int, float)
    and kinds.range_of(type_) == kinds.Range()
  }
  assert open_ends == {
    ('AdaptiveClip', 'initial'),  # `bounds` has its range.
  }


def _given(config: run_config.RunConfig, name: str) -> str:
  """Returns a flag that gives a setting of a run, or one field of it."""
  flag, _, field = name.partition('.')
  value = getattr(config, flag)
  if field or flag in run_config.PARTS:
    field = field or next(iter(kinds.field_types(type(value))))
    return f'--{flag}={field}={kinds.value_text(getattr(value, field))}'
  return f'--{flag}={kinds.kind_of(value) or kinds.value_text(value)}'


def test_flags_that_a_row_does_not_use_are_refused():
  for program, config in _rows():
    method, objective = config.method.kind, config.objective.kind
    line = [f'--method={method}', f'--objective={objective}', '--run_dir=r']
    for name in config.unused:
      flag, _, field = name.partition('.')
      if field and flag in config.unused:
        continue
      said = f'{field} of --{flag} is given' if field else f'--{flag} is given'
      with pytest.raises(ValueError, match=f'^{said} with --method={method} ') as error:
        command_line.parse_run(program, [*line, _given(config, name)])
      assert 'does not use it; leave it out.' in str(error.value)


@pytest.mark.parametrize('name', _WITH_OPTIONS)
def test_options_that_are_missing_unknown_or_outside_of_their_type_are_refused(name):
  cls = importlib.import_module(f'binaries.{name}').Options
  fields = [f for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING]
  types = kinds.field_types(cls)
  needed = {
    field.name: f'--{field.name}={_allowed(types[field.name])}' for field in fields
  }
  for field in needed:
    rest = [flag for other, flag in needed.items() if other != field]
    for line in (rest, [*rest, f'--{field}='] if types[field] is str else rest):
      with pytest.raises(ValueError, match=f'^--{field} is not given; it must name '):
        command_line.parse_options(cls, line)
  with pytest.raises(ValueError, match='flag --cheese; '):
    command_line.parse_options(cls, [*needed.values(), '--cheese=1'])
  for case in _wrong(cls):
    line = [*needed.values(), f'--{case.field}={case.text}']
    with pytest.raises(ValueError) as refused:
      command_line.parse_options(cls, line)
    _check(refused, case, f'--{case.field}={case.text} is given: it must be')


def test_numbers_of_one_name_have_one_range_but_for_these():
  found = collections.defaultdict(set)
  for cls in _classes():
    for field, type_ in kinds.field_types(cls).items():
      if kinds.without_none(type_)[1] in (int, float):
        found[field].add(kinds.range_of(type_).words)
  several = {name: words for name, words in found.items() if len(words) > 1}
  assert several == {
    'clients': {'above 0', 'at least 1'},
    'encoding_norm': {'above 0', 'in [1e-12, 1e+12]'},
    'epsilon': {'above 0', 'at least 0', 'in [1e-12, 1]'},
    'examples': {'above 0', 'at least 1'},
    'factor': {'above 0', 'in (0, 1)'},
    'initial': {'at least 0', 'finite'},
    'learning_rate': {'above 0', 'at least 0'},
    'queue_size': {'at least 0', 'at least 1'},
    'rate': {'above 0', 'at least 0'},
    'seed': {'at least 0', 'in [0, 9.22337e+18]'},
    'server_weight': {'above 0', 'at least 0'},
    'share': {'in (0, 1)', 'in (0, 1]'},
    'tau': {'above 0', 'in [0, 1]'},
    'threshold': {'at least 0', 'in [0, 1]'},
    'weight': {'above 0', 'at least 0'},
    'width': {'above 0', 'in [0.0625, 1000]'},
  }
