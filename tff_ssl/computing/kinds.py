"""Frozen dataclasses as text, `kind:field=value,...`, and as JSON values.

  dirichlet:alpha=0,examples=4
  simclr:temperature=0.1,projector=256/256/128
  learning_rate=0.03,epochs=5      fields alone: the kind stays as it is

A kind is a dataclass with a name. Its fields are of type bool, int, float, str, a
Literal of texts, a tuple of numbers or texts (written with `/` between them), or one of
these or None (written `none`), or, in Python alone, another kind.
"""

import collections
from collections.abc import Hashable, Mapping
import dataclasses
import functools
import math
import numbers
import types
import typing
from typing import Annotated, Any, ClassVar, NamedTuple

from tff_ssl.computing import field_rules
from tff_ssl.computing import near_names


class Range(NamedTuple):
  """The numbers that a field may have.

  Attributes:
    least: The least number.
    most: The largest number.
    least_excluded: Whether the least number itself is not allowed.
    most_excluded: Whether the largest number itself is not allowed.
  """

  least: float = -math.inf
  most: float = math.inf
  least_excluded: bool = False
  most_excluded: bool = False

  def allows(self, value: float) -> bool:
    """Returns whether a number is finite and in the range."""
    return (
      math.isfinite(value)
      and self.least <= value <= self.most
      and not (self.least_excluded and value == self.least)
      and not (self.most_excluded and value == self.most)
    )

  @property
  def words(self) -> str:
    """The range in words, such as 'at least 1'."""
    if self.most < math.inf:
      begin, end = '[('[self.least_excluded], '])'[self.most_excluded]
      return f'in {begin}{self.least:g}, {self.most:g}{end}'
    if self.least == -math.inf:
      return 'finite'
    return f'{"above" if self.least_excluded else "at least"} {self.least:g}'


# What counts as a number of a type: NumPy's too.
_NUMBERS = {int: numbers.Integral, float: numbers.Real}

Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, least_excluded=True)]
NotNegative = Annotated[float, Range(0)]
Fraction = Annotated[float, Range(0, 1)]
Share = Annotated[float, Range(0, 1, least_excluded=True)]
BelowOne = Annotated[float, Range(0, 1, most_excluded=True)]
Inner = Annotated[float, Range(0, 1, True, True)]
# A text in which `none` is a word, so that None is only the default.
WithNone = Annotated[str, 'none']

KIND = 'kind'
BETWEEN = '/'
_NONE = 'none'
_TRUTH = {'true': True, 'false': False}
_CLASSES = {bool: bool, str: str}
_TITLES = {bool: 'true or false', int: 'a whole number', float: 'a number'}


class MisfitError(ValueError):
  """The second half of an error: what a value must be, by the type of its field."""

  def __init__(self, type_: Any, more: str = ''):
    """Says the type in words, and what more is asked for."""
    super().__init__(f'it must be {type_text(type_)}{more}.')
    self.more = more


class Kind:
  """A base of dataclasses whose fields are checked against types and rules."""

  rules: ClassVar[tuple[field_rules.Rule, ...]] = ()

  def __post_init__(self) -> None:
    """Raises ValueError if a type or a rule does not allow a field's value."""
    for name, type_ in _types_of(typing.cast(Hashable, type(self))).items():
      check(name, getattr(self, name), type_)
    if not field_rules.are_waiting():
      self.check_rules()

  def check_rules(self, where: str = '') -> None:
    """Checks the rules between fields.

    Args:
      where: Follows a field's name in an error, as in ' of --clients'.

    Raises:
      ValueError: If a value breaks a rule.
    """
    own: Any = self
    defaults = {field.name: field.default for field in dataclasses.fields(own)}
    for rule in self.rules:
      value = getattr(self, rule.field)
      if value != defaults[rule.field] and rule.when(self):
        texts = {name: value_text(getattr(self, name)) for name in defaults}
        raise ValueError(
          f'{rule.field}{where} is {texts[rule.field]}; {rule.sentence.format(**texts)}'
        )


def field_types(cls: type[Any]) -> dict[str, Any]:
  """Returns the types of a kind's fields by name, without the kind's own name."""
  types = _types_of(typing.cast(Hashable, cls))
  return {name: type_ for name, type_ in types.items() if name != KIND}


@functools.cache
def _types_of(cls: Any) -> dict[str, Any]:
  hints = typing.get_type_hints(cls, include_extras=True)
  return {
    field.name: hints[field.name] for field in dataclasses.fields(cls) if field.init
  }


def parse(text: str, kinds: Mapping[str, type[Any]], base: Any = None) -> Any:
  """Reads a value.

  Args:
    text: `kind`, `kind:field=value,...` or `field=value,...`.
    kinds: The kinds that are allowed, by name.
    base: The value whose fields stay where the text says nothing: all of them if the
      kind is the same, and otherwise those that both kinds have. None: the defaults of
      the kind, which the text must name.

  Raises:
    ValueError: If a kind, a field or a value is not allowed, or a field is missing or
      given twice; the message, the second half of a sentence about the text, says what
      is allowed, and which name is near.
  """
  text = text.strip()
  name, rest = _split(text)
  if name is None and base is None:
    raise ValueError(f'it names no kind; it must be one of {", ".join(kinds)}.')
  if name is None:
    name = kind_of(base)
  if name not in kinds and '' in kinds:
    raise ValueError('it has no fields; it must be field=value,...')
  if name not in kinds:
    raise ValueError(f'it has the unknown kind {name!r}; {_choice(name, kinds)}')
  cls = kinds[name]
  values = _values(rest, name, field_types(cls))
  known = {} if base is None else _shared(base, cls)
  return build(cls, name, {**known, **values}, 'it')


def build(cls: type[Any], name: str, values: Mapping[str, Any], where: str) -> Any:
  """Builds a value of a kind, and refuses missing fields by name.

  Args:
    cls: The dataclass.
    name: The name of the kind.
    values: Value by field.
    where: What is built, for the error.
  """
  for field in dataclasses.fields(cls):
    default = field.default, field.default_factory
    if default == (dataclasses.MISSING,) * 2 and field.name not in (*values, KIND):
      raise ValueError(f'{where} lacks the field {field.name}; it must be given.')
  own = {KIND: name} if KIND in {f.name for f in dataclasses.fields(cls)} else {}
  return cls(**own, **values)


def kind_of(value: Any) -> str:
  """Returns the name of a value's kind: its attribute `kind`; '' without one."""
  return str(getattr(value, KIND, ''))


def _split(text: str) -> tuple[str | None, str]:
  """Returns the kind that a text names, if it names one, and its fields."""
  begin, _, rest = text.partition(':')
  return (None, text) if '=' in begin else (begin.strip(), rest)


def _shared(base: Any, cls: type[Any]) -> dict[str, Any]:
  names = field_types(cls).keys() & field_types(type(base)).keys()
  return {name: getattr(base, name) for name in names}


def _values(rest: str, kind: str, allowed: Mapping[str, Any]) -> dict[str, Any]:
  values: dict[str, Any] = {}
  for item in rest.split(',') if rest.strip() else []:
    name, equals, value = (part.strip() for part in item.partition('='))
    if name not in allowed or not equals:
      if values and not equals:
        raise ValueError(
          f'it has {item!r}, which is no field=value; lists have '
          f'{BETWEEN} between their values.'
        )
      if not allowed:
        raise ValueError(f'it has {item!r}; {kind} has no fields.')
      raise ValueError(f'it has {item!r}; {_choice(name, allowed, "fields")}')
    if name in values:
      raise ValueError(f'it gives {name!r} twice.')
    try:
      values[name] = checked_value(value, allowed[name])
    except ValueError as error:
      raise ValueError(f'it has {name}={value!r}; {error}') from None
  return values


def _choice(name: str, allowed: Mapping[str, Any], what: str = '') -> str:
  begin = f'the {what} are' if what else 'it must be one of'
  return f'{begin} {", ".join(allowed)}.{near_names.question(name, allowed)}'


def parse_value(text: str, type_: Any) -> Any:
  """Reads the value of a field.

  Args:
    text: The value as text.
    type_: The field's type.

  Raises:
    ValueError: If it is not of the type; the message says what it must be.
  """
  optional, inner = without_none(type_)
  if optional and text == _NONE and not _has_word_none(type_):
    return None
  if typing.get_origin(inner) is typing.Literal:
    choices = typing.get_args(inner)
    if text not in choices:
      raise MisfitError(type_)
    return text
  if typing.get_origin(inner) is tuple:
    item = typing.get_args(inner)[0]
    return tuple(parse_value(part, item) for part in text.split(BETWEEN) if text)
  if inner is str:
    return text
  try:
    return _TRUTH[text] if inner is bool else inner(text)
  except (KeyError, ValueError):
    raise MisfitError(type_) from None


def without_none(type_: Any) -> tuple[bool, Any]:
  """Returns whether a type allows None, and the type without it and its range."""
  optional = False
  if isinstance(type_, types.UnionType) or typing.get_origin(type_) is typing.Union:
    others = [arg for arg in typing.get_args(type_) if arg is not types.NoneType]
    optional, type_ = len(others) < len(typing.get_args(type_)), others[0]
  if typing.get_origin(type_) is Annotated:
    type_ = typing.get_args(type_)[0]
  return optional, type_


def _has_word_none(type_: Any) -> bool:
  """Returns whether `none` is a value of a type, and not None."""
  return WithNone in typing.get_args(type_) or _NONE in typing.get_args(
    without_none(type_)[1]
  )


def range_of(type_: Any) -> Range:
  """Returns the range of a type's numbers."""
  for each in (type_, *typing.get_args(type_)):
    for arg in getattr(each, '__metadata__', ()):
      if isinstance(arg, Range):
        return arg
  return Range()


def check(name: str, value: Any, type_: Any) -> None:
  """Raises ValueError if a value, by its name, is not of a type or of its range."""
  try:
    _check(value, type_)
  except ValueError as error:
    raise ValueError(f'{name} is {value!r}; {error}') from None


def _check(value: Any, type_: Any) -> None:
  """Raises ValueError if a value is of another type, or out of its type's range."""
  optional, inner = without_none(type_)
  if value is None and optional:
    return
  if typing.get_origin(inner) is tuple:
    if not isinstance(value, tuple | list):
      raise MisfitError(type_)
    for each in value:
      _check(each, typing.get_args(inner)[0])
  elif typing.get_origin(inner) is typing.Literal:
    if value not in typing.get_args(inner):
      raise MisfitError(type_)
  elif inner in _NUMBERS:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS[inner]):
      raise MisfitError(type_)
    if not range_of(type_).allows(value):
      raise MisfitError(type_, '' if math.isfinite(value) else ', and finite')
  elif not isinstance(value, _kinds_of(type_) or _CLASSES.get(inner, object)):
    raise MisfitError(type_)


def _kinds_of(type_: Any) -> tuple[type[Kind], ...]:
  """Returns the kinds that a type allows: itself, or those of a union."""
  types_ = (type_, *typing.get_args(type_))
  return tuple(t for t in types_ if isinstance(t, type) and issubclass(t, Kind))


def checked_value(text: str, type_: Any) -> Any:
  """Reads the value of a field, and checks its range; see `parse_value`."""
  try:
    value = parse_value(text, type_)
    _check(value, type_)
  except MisfitError as error:
    # Not that of one number of several.
    raise MisfitError(type_, error.more) from None
  return value


def given(text: str) -> list[str]:
  """Returns the names of the fields that a text gives."""
  rest = _split(text)[1]
  return [item.partition('=')[0].strip() for item in rest.split(',') if item.strip()]


def without(text: str, field: str) -> str:
  """Returns a text without a field; '' if it says nothing else."""
  kind, rest = _split(text)
  items = (item for item in rest.split(',') if item.partition('=')[0].strip() != field)
  fields = ','.join(items)
  return fields if kind is None else f'{kind}:{fields}'.rstrip(':')


def value_text(value: Any) -> str:
  """Returns the value of a field as `parse` reads it."""
  if value is None:
    return _NONE
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, tuple | list):
    return BETWEEN.join(map(value_text, value))
  if isinstance(value, float) and float(f'{value:g}') == value:
    return f'{value:g}'
  return str(value)


def to_text(value: Any) -> str:
  """Returns a value as `parse` reads it, with the fields that are not the default's."""
  defaults = {field.name: field.default for field in dataclasses.fields(value)}
  items = [
    f'{name}={value_text(own)}'
    for name in field_types(type(value))
    if (own := getattr(value, name)) != defaults[name]
  ]
  kind = kind_of(value) if hasattr(value, KIND) else ''
  between = ':' if kind and items else ''
  return f'{kind}{between}{",".join(items)}'


def to_json(value: Any) -> Any:
  """Returns a value as JSON: an object for a dataclass, with its kind, and lists."""
  if dataclasses.is_dataclass(value) and not isinstance(value, type):
    kind = {KIND: kind_of(value)} if hasattr(value, KIND) else {}
    own = {name: to_json(getattr(value, name)) for name in field_types(type(value))}
    return collections.OrderedDict(**kind, **own)
  return [*map(to_json, value)] if isinstance(value, tuple | list) else value


def type_text(type_: Any) -> str:
  """Returns a type in words, such as 'a number, or none'."""
  optional, inner = without_none(type_)
  if typing.get_origin(inner) is typing.Literal:
    words = f'one of {", ".join(map(str, typing.get_args(inner)))}'
  elif typing.get_origin(inner) is tuple:
    item = typing.get_args(inner)[0]
    words = {int: 'whole numbers', float: 'numbers'}.get(without_none(item)[1], 'texts')
    words += f' with {BETWEEN} between them'
    if (allowed := range_of(type_)) != Range():
      words += f', each {allowed.words}'
  elif kinds := _kinds_of(type_):
    words = 'a ' + ' or '.join(f'{each.__module__}.{each.__name__}' for each in kinds)
  else:
    is_object = typing.get_origin(inner) is Mapping
    words = 'an object of numbers' if is_object else _TITLES.get(inner, 'a text')
    if (allowed := range_of(type_)) != Range():
      words += f' {allowed.words}'
  says_none = optional and not _has_word_none(type_)
  return f'{words}, or {_NONE}' if says_none else words
