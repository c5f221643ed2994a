"""The flags that repeat a run: its configuration as a command line."""

from collections.abc import Iterable, Iterator
import dataclasses
from typing import Any

from binaries.config import changing
from binaries.config import programs
from binaries.config import run_config
from tff_ssl.computing import kinds

_OF_DATA = ('task', *changing.SHORT, 'data')


def flags(
  program: programs.Program, config: run_config.RunConfig
) -> list[changing.Change]:
  """Returns the flags from which `changing.configure` makes a run.

  Args:
    program: The program that offers the run's method.
    config: The run. A seed on which a guarantee relies is left out.
  """
  method, objective = config.method.kind, config.objective.kind
  chosen = [('method', method), ('objective', objective)]
  # Encoder, views and partition follow from the data.
  chosen += _changes(config, program.row(method, objective), _OF_DATA)
  base = changing.configure(program, chosen)
  names = kinds.field_types(run_config.RunConfig)
  return [*chosen, *_changes(config, base, (n for n in names if n not in _OF_DATA))]


def _changes(
  config: run_config.RunConfig, base: run_config.RunConfig, names: Iterable[str]
) -> Iterator[changing.Change]:
  """Yields the flags whose values in a run are not those of another."""
  for name in names:
    if not config.uses(changing.SHORT.get(name, name)):
      continue
    own, before = _value(config, name), _value(base, name)
    if dataclasses.is_dataclass(own):
      if fields := _fields(config, name, own, before):
        yield name, fields
    elif name == 'clients_per_round':
      # A cohort has one size, and all_if_fewer is no flag.
      is_given = own != before or not config.all_if_fewer or base.participation
      if is_given and config.participation is None:
        yield name, text(own)
    elif own != before and not _is_left_out(config, name):
      yield name, text(own)


def _is_left_out(config: run_config.RunConfig, name: str) -> bool:
  is_secret = name == 'seed' and config.is_amplified
  of_other_size = name == 'participation' and config.participation is None
  return is_secret or of_other_size or name == 'all_if_fewer'


def _value(config: run_config.RunConfig, name: str) -> Any:
  part, _, field = changing.SHORT.get(name, name).partition('.')
  own = getattr(config, part)
  return getattr(own, field) if field else own


def _fields(config: run_config.RunConfig, name: str, own: Any, before: Any) -> str:
  """Returns what differs in a part, as `kind:field=value,...`; '' if nothing does."""
  kind = kinds.kind_of(own)
  is_other = kind != kinds.kind_of(before)
  if is_other:
    # Fields that both kinds have stay as they are.
    before = kinds.parse(kind, {kind: type(own)}, before)
  texts = [
    f'{field}={kinds.value_text(value)}'
    for field in kinds.field_types(type(own))
    if (value := getattr(own, field)) != getattr(before, field)
    and (path := f'{name}.{field}') not in changing.SHORT.values()
    and config.uses(path)
  ]
  parts = [kind, ','.join(texts)] if is_other else [','.join(texts)]
  return ':'.join(filter(None, parts))


def text(value: Any) -> str:
  """Returns the value of a one-field flag as `changing.parse_scalar` reads it."""
  if isinstance(value, tuple):
    return ','.join(map(kinds.value_text, value))
  return kinds.value_text(value)
