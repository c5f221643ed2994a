"""Dataclasses of JSON that may be a stranger's: each field is of its type, or named."""

from collections.abc import Mapping
import typing
from typing import Any

from tff_ssl.computing import kinds

# What an integer of a file must be below, in bits, and how much an error shows of one.
_BITS, _SHOWN = 64, 60


def from_json(cls: type[Any], values: Any, where: str) -> Any:
  """Builds a dataclass from JSON that may be a stranger's.

  Args:
    cls: The dataclass, without a kind.
    values: Value by field, as JSON.
    where: Where the values are, for errors.

  Raises:
    ValueError: If a field is missing or unknown, or has a value that its type does not
      allow.
  """
  if not isinstance(values, Mapping):
    raise ValueError(f'{where} is {repr(values)[:60]}; it must be an object.')
  types, own = kinds.field_types(cls), dict[str, Any]()
  for name, value in values.items():
    if name not in types:
      raise ValueError(
        f'{where} has {name[:_SHOWN]!r}; the fields are {", ".join(types)}.'
      )
    own[name] = field_from_json(value, types[name], where, name)
  return kinds.build(cls, '', own, where)


def field_from_json(value: Any, type_: Any, where: str, name: str) -> Any:
  """Returns the value of a field of its type from JSON; its dataclass checks the range.

  Args:
    value: The JSON value.
    type_: The field's type.
    where: What has the field, for errors.
    name: Its name.

  Raises:
    ValueError: If its type does not allow the value.
  """
  try:
    return value_from_json(value, type_)
  except kinds.MisfitError as error:
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f'{shown[:_SHOWN]}...'
    raise ValueError(f'{where} has {name}={shown}; {error}') from error


def value_from_json(value: Any, type_: Any) -> Any:
  """Returns the value of a field from JSON.

  Raises:
    ValueError: If it is not of the field's type.
  """
  optional, inner = kinds.without_none(type_)
  if value is None and optional:
    return None
  if typing.get_origin(inner) is tuple and isinstance(value, list):
    item = typing.get_args(inner)[0]
    return tuple(value_from_json(each, item) for each in value)
  if typing.get_origin(inner) is Mapping and isinstance(value, Mapping):
    item = typing.get_args(inner)[1]
    return {name: value_from_json(each, item) for name, each in value.items()}
  if isinstance(value, int) and value.bit_length() > _BITS:
    raise kinds.MisfitError(type_, f', below 2^{_BITS}')
  if inner is float and isinstance(value, int) and not isinstance(value, bool):
    return float(value)
  if typing.get_origin(inner) is typing.Literal:
    if value in typing.get_args(inner):
      return value
  elif typing.get_origin(inner) is None and type(value) is inner:
    return value
  raise kinds.MisfitError(type_)
