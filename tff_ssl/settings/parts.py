"""Parts by name: what a run is built of, each registered by one decorator.

  @dataclasses.dataclass(frozen=True)
  class Mine(objectives.Projected):
    kind: ClassVar[str] = 'mine'
    temperature: kinds.Positive = 0.5

  @parts.objective(Mine)
  @dataclasses.dataclass(frozen=True)
  class MineObjective(dual_encoder.PairObjective):
    model: dual_encoder.DualEncoder
    settings: Mine

Flags, help, config.json and checks follow from the dataclass of settings; what it
decorates builds the part. The checkout's parts are registered in the same way as those
of a module of one's own (`runs.own_modules`, --import).
"""

from collections.abc import Callable, Iterator
import dataclasses
import re
import typing
from typing import Any, Literal, TypeVar

from tff_ssl.computing import kinds
from tff_ssl.settings import objectives

Built = TypeVar('Built', bound=Callable[..., Any])
Of = Literal['model', 'encoder', 'classes']
_CHECKOUT = ('tff_ssl', 'tasks', 'binaries')
_SCALARS = (bool, int, float, str)


@dataclasses.dataclass(frozen=True)
class Part:
  """What builds a part of a run.

  Attributes:
    settings: The dataclass of its settings, or what else it is registered under.
    build: The class or the function that builds it.
    options: What else its decorator was given, by name.
  """

  settings: Any
  build: Callable[..., Any]
  options: dict[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def is_own(self) -> bool:
    """Whether it is from outside the checkout."""
    return module_of(self.settings).partition('.')[0] not in _CHECKOUT


OBJECTIVES: dict[str, Part] = {}
_TABLES = (OBJECTIVES,)


def objective(settings: type[Any], of: Of = 'model') -> Callable[[Built], Built]:
  """Registers an objective, which any method that averages can train.

  Args:
    settings: Its settings, a frozen dataclass that inherits from
      `settings.objectives.Objective`, or from `Projected` if it is of a model.
    of: What it is built of. model: called with a `dual_encoder.DualEncoder`; encoder:
      with a network and views; classes: with a network, a classifier, and weak and
      strong views; each with `settings=` too.

  Returns:
    The decorator of what builds the objective, a class or a function.

  Raises:
    ValueError: If the settings cannot be flags, or the name is another part's.
  """
  base = objectives.Projected if of == 'model' else objectives.Objective
  check_settings(settings, base)
  check_name('objective', settings, objectives.OBJECTIVES)

  def register(build: Built) -> Built:
    objectives.OBJECTIVES[settings.kind] = settings
    OBJECTIVES[settings.kind] = Part(settings, build, {'of': of})
    return build

  return register


def own(table: dict[str, Part]) -> Iterator[Part]:
  """Yields the parts of a table that are from outside the checkout."""
  return (part for part in table.values() if part.is_own)


def count() -> int:
  """Returns the number of all registered parts."""
  return sum(map(len, _TABLES))


def module_of(value: Any) -> str:
  """Returns the name of the module that defines a class, a function or a value."""
  return str(getattr(value, '__module__', type(value).__module__))


def check_name(what: str, settings: Any, table: dict[str, Any]) -> None:
  """Refuses settings whose name is taken in a table by those of another module.

  A module that is executed again, as in a notebook, replaces its own.

  Raises:
    ValueError: If the name is another part's.
  """
  name, other = settings.kind, table.get(settings.kind)
  if other is not None and _place(other) != _place(settings):
    raise ValueError(
      f'The {what} {name!r} is in {module_of(other)} and in {module_of(settings)}; a '
      'name must be that of one.'
    )


def _place(value: Any) -> tuple[str, str]:
  return module_of(value), getattr(value, '__qualname__', '')


def check_settings(settings: Any, base: type[Any]) -> None:
  """Refuses settings that could not be flags and entries of config.json.

  Args:
    settings: The class of the settings.
    base: What it must inherit from.

  Raises:
    ValueError: If it is no frozen dataclass with a name, or a field has no default, or
      a type that is no kind's.
  """
  name = f'{module_of(settings)}.{getattr(settings, "__name__", settings)}'
  params = getattr(settings, '__dict__', {}).get('__dataclass_params__')
  if params is None or not params.frozen or not issubclass(settings, base):
    raise ValueError(
      f'{name} has the settings of a part; it must be a frozen dataclass that inherits '
      f'from {base.__module__}.{base.__name__}.'
    )
  if not re.fullmatch(r'[A-Za-z]\w*', settings.kind, re.ASCII):
    raise ValueError(
      f'kind of {name} is {settings.kind!r}; it must be a name of letters, digits and '
      '_, as in my_part.'
    )
  try:
    types = kinds.field_types(settings)
  except (NameError, TypeError) as error:
    raise ValueError(f'The types of the fields of {name} are unknown: {error}.') from (
      error
    )
  for field in dataclasses.fields(settings):
    if field.name in types and not _is_readable(types[field.name]):
      raise ValueError(
        f'The field {field.name} of {name} has the type {_type_name(field.type)}; it '
        'must be bool, int, float, str, a Literal of texts, a tuple of these, or one '
        'of these or None.'
      )
    if (field.default, field.default_factory) == (dataclasses.MISSING,) * 2:
      raise ValueError(f'The field {field.name} of {name} has no default; it must.')
  settings()


def _type_name(type_: Any) -> str:
  return type_.__name__ if isinstance(type_, type) else str(type_)


def _is_readable(type_: Any) -> bool:
  """Returns whether the value of a field of a type can be read from a text."""
  others = [arg for arg in typing.get_args(type_) if arg is not type(None)]
  optional, inner = kinds.without_none(type_)
  if optional and len(others) > 1:
    return False
  origin, args = typing.get_origin(inner), typing.get_args(inner)
  if origin is Literal:
    return all(isinstance(arg, str) for arg in args)
  if origin is tuple:
    return all(arg is ... or _is_readable(arg) for arg in args) and bool(args)
  return inner in _SCALARS
