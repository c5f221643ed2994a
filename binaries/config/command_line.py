"""The command line of programs: the only module that defines or reads a flag.

Flags follow from dataclasses: those of a training program from `RunConfig`, those of
another program from its `Options`. A field with kinds, or that is a dataclass itself,
is a flag that may be repeated, each time with some of its fields:

  --clients=adam:learning_rate=0.001 --clients=epochs=5
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import difflib
import importlib
import os
import typing
from typing import Annotated, Any, TypeVar

from absl import flags

from binaries.config import methods
from binaries.config import programs
from binaries.config import roles
from binaries.config import run_config
from tff_ssl.computing import kinds

Options = TypeVar('Options')


class Changes(tuple[str, ...]):
  """The values of a repeated flag of an `Options`, as text, for `changed`."""


UNCHANGED = Changes()


class RunChanges(tuple[tuple[str, str], ...]):
  """The flags of training programs and their values, for `configure`.

  A program whose `Options` has such a field takes these flags in addition to its own.
  """


NO_CHANGES = RunChanges()


# A field of an `Options` that is a path: `~` is expanded, which shells do not do.
Path = Annotated[str, 'path']
# Flags that stand for one field of a part, by name.
SHORT: Mapping[str, str] = {
  'data_dir': 'data.dir',
  'columns': 'data.columns',
  'image_size': 'data.image_size',
}
CONFIG = 'config'
_ABOUT = {
  CONFIG: 'config.json of a run from which this one begins; other flags change it.',
  'method': 'The method, as in fedema or fedema:tau=0.7.',
}
_NOT_FLAGS = ('all_if_fewer',)
# Flags of runs that may be repeated.
REPEATED = ('method', *run_config.PARTS, *run_config.KINDS)
# A flag and its value, as on the command line.
Change = tuple[str, str]


class UnusedError(ValueError):
  """A flag, or one of its fields, is given that the method does not use.

  Attributes:
    what: The flag or the field, as in 'tau of --method'.
    change: The flag with its value.
    rest: The change without it; None: nothing is left.
  """

  def __init__(self, sentence: str, what: str, change: Change, rest: str = ''):
    """Says what is not used.

    Args:
      sentence: The error's message.
      what: See the class.
      change: See the class.
      rest: The value without it, '' if nothing is left.
    """
    super().__init__(sentence)
    self.what, self.change = what, change
    self.rest: Change | None = (change[0], rest) if rest else None


def of_runs() -> dict[str, str]:
  """Returns the flags of training programs, with what each is."""
  about = kinds.attributes(run_config.RunConfig)
  own = {name: text for name, text in about.items() if name not in _NOT_FLAGS}
  for name, path in SHORT.items():
    part, field = path.split('.')
    own[name] = kinds.attributes(run_config.PARTS[part])[field]
  return {**own, **_ABOUT}


def parse_run(program: str, arguments: Sequence[str]) -> run_config.RunConfig:
  """Reads the command line of a training program.

  Args:
    program: Name of the program.
    arguments: The command line after the program's name.

  Raises:
    ValueError: If it is malformed; one sentence that names the flag and what is
      allowed.
  """
  changes = _changes(of_runs(), arguments)
  config = configure(programs.load(program), changes)
  if not config.run_dir:
    raise ValueError(missing('run_dir', 'a folder, new or of this run'))
  return config


def missing(name: str, what: str) -> str:
  """Returns the sentence about a flag that a program needs but was not given."""
  return f'--{name} is not given; it must name {what}.'


def configure(
  program: programs.Program,
  changes: Sequence[Change],
  base: run_config.RunConfig | None = None,
) -> run_config.RunConfig:
  """Returns a run: a program's row or another run, with changes.

  Args:
    program: The program that offers the method.
    changes: Flags and their values, in their order.
    base: The run that is changed; None: that of --config, or else the row of the
      program that the changes name, with its paper's settings.

  Raises:
    UnusedError: If the method does not use what is changed.
    ValueError: If a value is malformed or not allowed.
  """
  last = dict(changes)
  if CONFIG in last:
    base = read(last[CONFIG], keep_paths=True)
  config = _row(program, changes, base)
  if base is None:
    for name in ('task', *SHORT, 'data'):
      config = _changed(config, [change for change in changes if change[0] == name])
    # Only here: it imports NumPy, which --help does not need.
    suited = importlib.import_module('binaries.config.suited')
    config = suited.to_task(config)
  config = _changed(config, [change for change in changes if change[0] != CONFIG])
  if 'clients_per_round' in last:
    if 'participation' in last:
      raise ValueError(
        '--participation and --clients_per_round are both given; a cohort has one size.'
      )
    config = dataclasses.replace(config, all_if_fewer=False)
  return config


def read(path: str | os.PathLike[str], keep_paths: bool) -> run_config.RunConfig:
  """Returns the configuration of a run from its folder or its config.json.

  Args:
    path: The folder or the file.
    keep_paths: Whether its paths and addresses are taken; a stranger's must not be.

  Raises:
    ValueError: If it is not that of a run.
  """
  # Only here: most command lines name no other run.
  stored = importlib.import_module('tff_ssl.runs.run_config')
  folder = os.path.expanduser(path)  # noqa: PTH111
  if os.path.basename(folder) == stored.NAME:  # noqa: PTH119
    folder = os.path.dirname(folder) or '.'  # noqa: PTH120
  own = stored.read(folder)['config']
  return run_config.from_json(own, programs.all_methods(), keep_paths)


def _row(
  program: programs.Program,
  changes: Sequence[Change],
  base: run_config.RunConfig | None,
) -> run_config.RunConfig:
  """Returns the row that the changes name, or another run with its method."""
  method, objective = (_kind(changes, flag) for flag in ('method', 'objective'))
  if base is None:
    return program.row(method, objective)
  own = program.row(method or base.method.kind, objective or base.objective.kind)
  same_method = own.method.kind == base.method.kind
  same_objective = own.objective.kind == base.objective.kind
  same_clients = base.clients.kind in run_config.clients_of(own.method)
  return dataclasses.replace(
    base,
    method=base.method if same_method else own.method,
    objective=base.objective if same_objective else own.objective,
    clients=base.clients if same_clients else own.clients,
  )


def _kind(changes: Sequence[Change], flag: str) -> str | None:
  """Returns the last kind that a flag names, if any."""
  named = [text.partition(':')[0].strip() for name, text in changes if name == flag]
  return next((kind for kind in reversed(named) if '=' not in kind), None)


def _changed(
  config: run_config.RunConfig, changes: Sequence[Change]
) -> run_config.RunConfig:
  """Returns a run with changes, each of which its method must use."""
  for name, text in changes:
    try:
      config = change(config, name, text)
    except UnusedError:
      raise
    except ValueError as error:
      raise ValueError(f'--{name}={text} is given: {error}') from error
  return config


def change(config: run_config.RunConfig, name: str, text: str) -> run_config.RunConfig:
  """Returns a run with another value of a flag.

  Args:
    config: The run.
    name: Name of the flag.
    text: Its value, as on the command line.

  Raises:
    UnusedError: If the method does not use it.
    ValueError: If the value is not allowed.
  """
  if not config.uses(SHORT.get(name, name)):
    raise UnusedError(_refusal(config, f'--{name}'), f'--{name}', (name, text))
  if name in SHORT:
    part, _, field = SHORT[name].partition('.')
    own = getattr(config, part)
    type_ = kinds.field_types(type(own))[field]
    value = dataclasses.replace(own, **{field: _simple(text, type_)})
    return dataclasses.replace(config, **{part: value})
  if name in run_config.PARTS or name in run_config.KINDS or name == 'method':
    return dataclasses.replace(config, **{name: _part(config, name, text)})
  type_ = kinds.field_types(run_config.RunConfig)[name]
  return dataclasses.replace(config, **{name: _simple(text, type_)})


def _part(config: run_config.RunConfig, name: str, text: str) -> Any:
  """Returns the changed value of a field that is a dataclass."""
  before = getattr(config, name)
  table: Mapping[str, type[Any]]
  if name in run_config.PARTS:
    # One kind, without a name.
    table = {'': run_config.PARTS[name]}
  elif name == 'clients':
    table = run_config.clients_of(config.method)
  elif name in ('method', 'objective'):
    # The row has the kind already.
    table = {before.kind: type(before)}
  else:
    table = run_config.KINDS[name]
  try:
    value = kinds.parse(text, table, name, before)
  except ValueError as error:
    sentence = f'--{name}={text} is given: {error}'
    _check_not_of_others(name, text, before, table, sentence)
    raise
  for field in kinds.given(text):
    if not config.uses(f'{name}.{field}'):
      what = f'{field} of --{name}'
      rest = kinds.without(text, field)
      raise UnusedError(_refusal(config, what), what, (name, text), rest)
  return _at_home(value)


def _at_home(value: Any) -> Any:
  """Returns a dataclass with `~` expanded in its paths."""
  paths = {
    field.name: expanded(own)
    for field in dataclasses.fields(value)
    if roles.is_path(field) and isinstance(own := getattr(value, field.name), str)
  }
  return dataclasses.replace(value, **paths) if paths else value


def _check_not_of_others(
  name: str, text: str, before: Any, table: Mapping[str, type[Any]], sentence: str
) -> None:
  """Raises UnusedError if a kind or a field is one that only other methods have."""
  every = programs.all_methods() if name == 'method' else run_config.KINDS.get(name, {})
  kind = _kind([(name, text)], name) or kinds.kind_of(before)
  if kind not in table:
    if kind in every:
      raise UnusedError(sentence, f'--{name}={kind}', (name, text))
    return
  for field in kinds.given(text):
    others = [cls for cls in every.values() if field in kinds.field_types(cls)]
    if others and field not in kinds.field_types(table[kind]):
      rest = kinds.without(text, field)
      raise UnusedError(sentence, f'{field} of --{name}', (name, text), rest)


def _refusal(config: run_config.RunConfig, what: str) -> str:
  return (
    f'{what} is given with --method={config.method.kind} --objective='
    f'{config.objective.kind}, which does not use it; leave it out.'
  )


def _simple(text: str, type_: Any) -> Any:
  """Reads the value of a flag that is one field: lists have commas, `~` is a home."""
  inner = kinds.without_none(type_)[1]
  if typing.get_origin(inner) is tuple:
    item = typing.get_args(inner)[0]
    parts = (part.strip() for part in text.split(','))
    return tuple(_simple(part, item) for part in parts if part)
  if inner is str and text.startswith('~'):
    text = expanded(text)
  return kinds.checked_value(text, type_)


def expanded(path: str) -> str:
  """Returns a path with `~` and `~user` expanded.

  Raises:
    ValueError: If there is no such user.
  """
  # Not with pathlib, which would also change `./` and `//`.
  known = os.path.expanduser(path)  # noqa: PTH111
  if known.startswith('~'):
    user = path.partition('/')[0]
    raise ValueError(
      f'{user} is not a home folder; write ./{path} for a file of this name.'
    )
  return known


def changed(
  config: run_config.RunConfig, given: Mapping[str, Sequence[str] | str | None]
) -> run_config.RunConfig:
  """Returns a run with the changes that the options of another program ask for.

  Args:
    config: The run.
    given: Value or values by flag, as text; None: the flag is not given.
  """
  changes = [
    (name, text)
    for name, texts in given.items()
    if texts is not None
    for text in ([texts] if isinstance(texts, str) else texts)
  ]
  return _changed(config, changes)


def parse_options(cls: type[Options], arguments: Sequence[str]) -> Options:
  """Reads the command line of a program that trains nothing.

  Args:
    cls: A dataclass whose fields are the flags; one without a default must be given.
    arguments: The command line after the program's name.

  Raises:
    ValueError: If it is malformed; one sentence that names the flag and what is
      allowed.
  """
  may_repeat = (*repeated(cls), *REPEATED)
  return options_of(
    cls, _changes(of_options(cls), arguments, may_repeat, switches(cls))
  )


def of_options(cls: type[Any]) -> dict[str, str]:
  """Returns the flags that are the fields of options, with what each is."""
  own = kinds.attributes(cls)
  for name in _of_all_runs(cls):
    del own[name]
    own.update(of_runs())
  return own


def _of_all_runs(cls: type[Any]) -> tuple[str, ...]:
  """Returns the field of options that has the flags of training programs, if any."""
  return tuple(n for n, type_ in kinds.field_types(cls).items() if type_ is RunChanges)


def options_of(cls: type[Options], changes: Sequence[Change]) -> Options:
  """Returns options from flags and their values; see `parse_options`."""
  types, own = kinds.field_types(cls), dict[str, Any]()
  for name in _of_all_runs(cls):
    own[name] = RunChanges(change for change in changes if change[0] not in types)
  for name, text in changes:
    if name not in types:
      continue
    type_ = types[name]
    if type_ is Changes:
      own[name] = Changes((*own.get(name, ()), text))
      continue
    try:
      if dataclasses.is_dataclass(type_):
        before = own.get(name, type_())
        own[name] = _at_home(kinds.parse(text, {'': type_}, name, before))
      else:
        own[name] = _simple(text, type_)
    except ValueError as error:
      raise ValueError(f'--{name}={text} is given: {error}') from error
  required: Any = cls
  for each in dataclasses.fields(required):
    if each.default is dataclasses.MISSING and not own.get(each.name):
      about = kinds.attributes(cls)[each.name]
      raise ValueError(missing(each.name, about[:1].lower() + about[1:].rstrip('.')))
  return cls(**own)


def repeated(cls: type[Any]) -> tuple[str, ...]:
  """Returns the fields of options whose flags may be repeated."""
  return tuple(
    name
    for name, type_ in kinds.field_types(cls).items()
    if type_ is Changes or dataclasses.is_dataclass(type_)
  )


def switches(cls: type[Any]) -> tuple[str, ...]:
  """Returns the fields of options that are true or false, as in --NAME or --noNAME."""
  return tuple(n for n, type_ in kinds.field_types(cls).items() if type_ is bool)


def _changes(
  about: Mapping[str, str],
  arguments: Sequence[str],
  may_repeat: Collection[str] | None = None,
  booleans: Collection[str] = (),
) -> list[Change]:
  """Parses a command line by absl, without its global flags.

  Returns:
    The flags that are given and their values, in their order.
  """
  known, order = flags.FlagValues(), list[Change]()
  for name in about:
    parser = _Recorder(name, order, name in booleans)
    flag = flags.Flag(parser, None, name, None, '', boolean=name in booleans)
    known[name] = flag
  for name in ('verbosity',):
    if name in flags.FLAGS:
      known[name] = flags.FLAGS[name]
  try:
    rest = known(['', *arguments])
  except flags.UnrecognizedFlagError as error:
    raise ValueError(unknown(error.flagname, about)) from error
  except (flags.Error, ValueError) as error:
    raise ValueError(_sentence(error)) from error
  if not flags.FLAGS.is_parsed():
    flags.FLAGS.mark_as_parsed()
  if len(rest) > 1:
    raise ValueError(
      f'Unexpected argument {rest[1]!r}; all arguments must be --flag=value.'
    )
  return _last_of_simple(order, may_repeat)


def _last_of_simple(
  order: Sequence[Change], may_repeat: Collection[str] | None
) -> list[Change]:
  """Leaves out values of flags that are given again and cannot be repeated."""
  if may_repeat is None:
    may_repeat = REPEATED
  last = {name: k for k, (name, _) in enumerate(order)}
  return [
    change
    for k, change in enumerate(order)
    if change[0] in may_repeat or last[change[0]] == k
  ]


class _Recorder(flags.ArgumentParser):
  """A parser that records what is given, in the order of the command line."""

  syntactic_help = ''

  def __init__(self, name: str, order: list[Change], is_switch: bool):
    self._name, self._order, self._is_switch = name, order, is_switch

  def parse(self, argument: Any) -> Any:
    """Records the text of a value."""
    text = str(argument).lower() if self._is_switch else str(argument)
    self._order.append((self._name, text))
    return argument


def unknown(name: str, about: Mapping[str, str]) -> str:
  """Returns the sentence about a flag that is none of those described."""
  stem = name if name in about else name.removeprefix('no')
  near = difflib.get_close_matches(stem, about, 1, 0.6)
  if not near:
    near = [_part_with(name)] if _part_with(name) else []
  meant = f'; did you mean --{near[0]}?' if near else '; --help lists all flags.'
  return f'There is no flag --{name}{meant}'


def _part_with(name: str) -> str:
  """Returns the flag of a part that has a field of this name; '' if none has."""
  for flag, cls in run_config.PARTS.items():
    if name in kinds.field_types(cls):
      return f'{flag}={name}='
  for flag, table in run_config.KINDS.items():
    for cls in table.values():
      if name in kinds.field_types(cls):
        return f'{flag}={name}='
  return ''


def _sentence(error: Exception) -> str:
  text = ' '.join(str(error).split())
  if text.startswith('Missing value for flag '):
    name = text.rpartition('-')[2]
    text = f'--{name} has no value; it must be given as --{name}=VALUE'
  return text if text.endswith('.') else f'{text}.'


def method_of(text: str) -> type[methods.Method] | None:
  """Returns a method of any program by name, for --help; None: there is none."""
  return programs.all_methods().get(text)
