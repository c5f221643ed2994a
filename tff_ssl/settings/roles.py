"""What a field of a configuration means for a run's numbers, said at the field."""

from collections.abc import Iterator, Mapping
import dataclasses
from typing import Any

from tff_ssl.computing import kinds

_ROLE, _PATH = 'role', 'path'
# It may have any value when a run resumes, because no number depends on it.
FREE = 'free'
# Two runs that differ in it are the same method on the same data: only the layout of
# the work differs, or what is evaluated.
NEUTRAL = 'neutral'


def free(default: Any, path: bool = False) -> Any:
  """Returns a field on which no number of a run depends.

  Args:
    default: The field's default.
    path: Whether it is a path or an address of this machine.
  """
  return dataclasses.field(default=default, metadata={_ROLE: FREE, _PATH: path})


def neutral(default: Any) -> Any:
  """Returns a field that does not tell two methods apart; it is fixed in a run."""
  return dataclasses.field(default=default, metadata={_ROLE: NEUTRAL})


def path(default: Any = None) -> Any:
  """Returns a field that is a path: it is never taken from another's run folder."""
  return dataclasses.field(default=default, metadata={_PATH: True})


def fields(
  value: Any, prefix: str = ''
) -> Iterator[tuple[str, Any, dataclasses.Field]]:
  """Yields every field of a configuration: its name, value and definition.

  Args:
    value: A dataclass; its fields that are dataclasses are opened.
    prefix: Put before each name, with a dot.
  """
  for field in dataclasses.fields(value):
    own = getattr(value, field.name)
    name = f'{prefix}{field.name}'
    if field.name == kinds.KIND:
      continue
    if dataclasses.is_dataclass(own):
      if hasattr(own, kinds.KIND):
        yield name, kinds.kind_of(own), field
      yield from fields(own, f'{name}.')
    else:
      yield name, own, field


def flat(value: Any) -> dict[str, Any]:
  """Returns the values of all fields by name, such as 'clients.learning_rate'."""
  return {name: own for name, own, _ in fields(value)}


def is_free(field: dataclasses.Field) -> bool:
  """Returns whether no number of a run depends on a field."""
  return field.metadata.get(_ROLE) == FREE


def is_neutral(field: dataclasses.Field) -> bool:
  """Returns whether two runs may differ in a field and still be one method."""
  return field.metadata.get(_ROLE) in (FREE, NEUTRAL)


def is_path(field: dataclasses.Field) -> bool:
  """Returns whether a field is a path or an address."""
  return bool(field.metadata.get(_PATH))


def names_of(value: Any, role: Any) -> tuple[str, ...]:
  """Returns the names of the fields whose definition has a role."""
  return tuple(name for name, _, field in fields(value) if role(field))


def replace(value: Any, changes: Mapping[str, Any]) -> Any:
  """Returns a configuration with other values.

  Args:
    value: A dataclass.
    changes: Value by name, such as 'clients.learning_rate'.
  """
  own: dict[str, Any] = {}
  nested: dict[str, dict[str, Any]] = {}
  for name, new in changes.items():
    first, dot, rest = name.partition('.')
    if dot:
      nested.setdefault(first, {})[rest] = new
    else:
      own[first] = new
  for first, inner in nested.items():
    own[first] = replace(own.get(first, getattr(value, first)), inner)
  return dataclasses.replace(value, **own)
