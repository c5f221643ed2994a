"""Changes of a run: flags and their values, as text, that another run follows from.

A value that the run's method does not use is refused: it would change no number.
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import importlib
import os
import typing
from typing import Any

from binaries.config import programs
from binaries.config import run_config
from binaries.config import runtimes
from tff_ssl.computing import field_rules
from tff_ssl.computing import inert
from tff_ssl.computing import kinds
from tff_ssl.computing import near_names
from tff_ssl.runs import own_modules
from tff_ssl.runs import removed
from tff_ssl.settings import roles

# Flags that stand for one field of a part, by name.
SHORT: Mapping[str, str] = {
  'data_dir': 'data.dir',
  'columns': 'data.columns',
  'image_size': 'data.image_size',
}
CONFIG = 'config'
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


def configure(
  program: programs.Program,
  changes: Sequence[Change],
  base: run_config.RunConfig | None = None,
) -> run_config.RunConfig:
  """Returns a run: a program's row or another run, with changes.

  Args:
    program: The program that offers the method.
    changes: Flags and their values, in their order.
    base: The run that is changed; None: that of --config, without its paths and
      executed by this process, and without a seed if one of both relies on secret
      cohorts, or else the row of the program that the changes name,
      with its paper's settings.

  Raises:
    UnusedError: If the method does not use what is changed.
    ValueError: If a value is malformed or not allowed.
  """
  last = dict(changes)
  if CONFIG in last:
    # It may be a stranger's, and a worker opens a port.
    base = read(last[CONFIG], keep_paths=False)
    here = runtimes.InProcess(packs=base.runtime.packs, parts=base.runtime.parts)
    base = dataclasses.replace(base, runtime=here)
  config = _row(program, changes, base)
  if base is None:
    for name in ('task', *SHORT, 'data'):
      config = _changed(config, [change for change in changes if change[0] == name])
    config = _suited(config)
  config = _changed(config, [change for change in changes if change[0] != CONFIG])
  if 'clients_per_round' in last:
    if 'participation' in last:
      raise ValueError(
        '--participation and --clients_per_round are both given; a cohort has one size.'
      )
    config = dataclasses.replace(config, all_if_fewer=False, participation=None)
  if CONFIG in last:
    given = {name for name, _ in changes}
    given |= {f'{name}.{each}' for name, text in changes for each in kinds.given(text)}
    check_given_again(last[CONFIG], config, given)
    # A seed tells who was in which cohort: each private run has one of its own, which
    # no other run and no card of one may show.
    is_secret = config.is_amplified or (base is not None and base.is_amplified)
    if is_secret and 'seed' not in last:
      config = dataclasses.replace(config, seed=None)
  return config


def check_given_again(
  path: str | os.PathLike[str],
  config: run_config.RunConfig,
  given: Collection[str] = (),
  of_data: bool = False,
) -> None:
  """Refuses a run that lacks a path of another run, on which what it does depends.

  Args:
    path: The folder of the other run, or its config.json.
    config: The run, without the paths of that one.
    given: Names of fields that were given; a path that is given as `none` is meant so.
    of_data: Whether only what the data need counts, the place of the data too.

  Raises:
    ValueError: If there is such a path.
  """
  own = roles.flat(config)
  flags = {name: flag for flag, name in SHORT.items()}
  for name, value, field in roles.fields(read(path, keep_paths=True)):
    counts = roles.is_path(field) and not roles.is_free(field)
    if of_data:
      counts = name == SHORT['data_dir'] or (counts and name.startswith('data.'))
    is_lost = value and name not in given and own.get(name, value) == field.default
    if counts and is_lost and config.uses(name):
      flag = flags.get(name, name).replace('.', '=')
      raise ValueError(
        f'The run in {path} has --{flag}={value}, which is not taken from another run: '
        f'give --{flag}= on the command line.'
      )


def of_folder(
  folder: str | os.PathLike[str], given: Mapping[str, Sequence[str] | str | None]
) -> run_config.RunConfig:
  """Returns the configuration of a run, without its paths, for work on its encoder.

  The folder may be a stranger's. Neither the run's baselines nor what executed its
  rounds are part of it.

  Args:
    folder: The run folder.
    given: Changes; see `changed`.

  Raises:
    ValueError: If it is not the folder of a run, or a change is not allowed: of what
      the data are, only paths may be given.
  """
  own = read(folder, keep_paths=False)
  here = runtimes.InProcess(packs=own.runtime.packs)
  config = roles.replace(own, {'evaluation.baselines': False, 'runtime': here})
  config = changed(config, given)
  for name, value, field in roles.fields(config.data):
    if not roles.is_path(field) and value != getattr(own.data, name):
      raise ValueError(
        f'--data={name}={value} is given, but the run has '
        f'{name}={getattr(own.data, name)}; only paths may differ.'
      )
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
  own = stored.read(folder)
  own_modules.check_opened(folder, own)
  return run_config.from_json(own['config'], programs.all_methods(), keep_paths)


def _row(
  program: programs.Program,
  changes: Sequence[Change],
  base: run_config.RunConfig | None,
) -> run_config.RunConfig:
  """Returns the row that the changes name, or another run with its method.

  What one of the two methods, or objectives, does not use is as in the row: the other
  run neither has it in its config.json, nor would this one.
  """
  method, objective = (_kind(changes, flag) for flag in ('method', 'objective'))
  if base is None:
    return program.row(method, objective)
  own = program.row(method or base.method.kind, objective or base.objective.kind)
  own = _suited(dataclasses.replace(own, task=base.task, data=base.data))
  same_method = own.method.kind == base.method.kind
  same_objective = own.objective.kind == base.objective.kind
  same_clients = base.clients.kind in run_config.clients_of(own.method)
  config = dataclasses.replace(
    base,
    method=base.method if same_method else own.method,
    objective=base.objective if same_objective else own.objective,
    clients=base.clients if same_clients else own.clients,
  )
  unused: dict[str, Any] = {}
  for name in (*base.unused, *own.unused):
    part, _, field = name.partition('.')
    value = getattr(own, part)
    # Other kinds of clients may lack the field.
    if not field or (hasattr(value, field) and hasattr(getattr(config, part), field)):
      unused[name] = getattr(value, field) if field else value
  return roles.replace(config, unused)


def _suited(row: run_config.RunConfig) -> run_config.RunConfig:
  """Returns a row with what suits its task."""
  # Only here: it imports NumPy, which --help does not need.
  task_defaults = importlib.import_module('binaries.config.task_defaults')
  return task_defaults.to_task(row)


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
      with field_rules.waiting():
        config = change(config, name, text)
    except UnusedError:
      raise
    except ValueError as error:
      raise ValueError(refused(name, text, error)) from error
  config.check_parts()
  return config


def refused(name: str, text: str, error: ValueError) -> str:
  """Returns why the value `text` of a flag is refused, in one line."""
  return inert.line(f'--{name}={text} is given: {error}')


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
    value = dataclasses.replace(own, **{field: parse_scalar(text, type_)})
    return dataclasses.replace(config, **{part: value})
  if name in run_config.PARTS or name in run_config.KINDS or name == 'method':
    return dataclasses.replace(config, **{name: _part(config, name, text)})
  type_ = kinds.field_types(run_config.RunConfig)[name]
  return dataclasses.replace(config, **{name: parse_scalar(text, type_)})


def _part(config: run_config.RunConfig, name: str, text: str) -> Any:
  """Returns the changed value of a field that is a dataclass."""
  before = getattr(config, name)
  removed.check(name, kinds.given(text))
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
    value = kinds.parse(text, table, before)
  except ValueError as error:
    sentence = refused(name, text, error)
    _check_not_of_others(name, text, before, table, sentence)
    near = near_names.nearest(_kind([(name, text)], name) or '', _every(name))
    if near is None or near in table:
      raise
    raise ValueError(
      f'{error} Did you mean {near}, which other methods take?'
    ) from None
  for field in kinds.given(text):
    if not config.uses(f'{name}.{field}'):
      what = f'{field} of --{name}'
      rest = kinds.without(text, field)
      raise UnusedError(_refusal(config, what), what, (name, text), rest)
  return expand_home(value)


def expand_home(value: Any) -> Any:
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
  every = _every(name)
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


def _every(name: str) -> Mapping[str, type[Any]]:
  """Returns the kinds that a flag takes with any method."""
  return programs.all_methods() if name == 'method' else run_config.KINDS.get(name, {})


def _refusal(config: run_config.RunConfig, what: str) -> str:
  return (
    f'{what} is given with --method={config.method.kind} --objective='
    f'{config.objective.kind}, which does not use it; leave it out.'
  )


def parse_scalar(text: str, type_: Any) -> Any:
  """Reads the value of a flag that is one field: lists have commas, `~` is a home."""
  inner = kinds.without_none(type_)[1]
  if typing.get_origin(inner) is tuple:
    item = typing.get_args(inner)[0]
    parts = (part.strip() for part in text.split(','))
    return tuple(parse_scalar(part, item) for part in parts if part)
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
