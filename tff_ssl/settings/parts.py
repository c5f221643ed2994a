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
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import personal

Built = TypeVar('Built', bound=Callable[..., Any])
Of = Literal['model', 'encoder', 'classes']
_CHECKOUT = ('tff_ssl', 'tasks', 'binaries')
_SCALARS = (bool, int, float, str)


@dataclasses.dataclass(frozen=True)
class Part:
  """What builds a part of a run.

  Attributes:
    build: The class or the function that builds it.
    settings: The dataclass of its settings; None for a part that has a name alone.
    options: What else its decorator was given, by name.
  """

  build: Callable[..., Any]
  settings: Any = None
  options: dict[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def is_own(self) -> bool:
    """Whether it is from outside the checkout."""
    return _is_own(self.settings or self.build)


OBJECTIVES: dict[str, Part] = {}
METHODS: dict[str, Part] = {}
METRICS: dict[str, Part] = {}
_TABLES = (OBJECTIVES, METHODS, METRICS)


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
  _check_name('objective', settings.kind, settings, objectives.OBJECTIVES)

  def register(build: Built) -> Built:
    objectives.OBJECTIVES[settings.kind] = settings
    OBJECTIVES[settings.kind] = Part(build, settings, {'of': of})
    return build

  return register


def method(
  settings: type[Any], numbered: bool = False, keeps_states: bool = False
) -> Callable[[Built], Built]:
  """Registers an algorithm, with which clients train any objective.

  It decorates a function from (objective, server's optimizer, settings,
  `fedavg.Training`) to `phases.Algorithm`; if clients are numbered, it takes their
  number too.

  Args:
    settings: Its settings, a frozen dataclass that inherits from
      `settings.methods.Method`.
    numbered: Whether examples name the number of their client.
    keeps_states: Whether clients keep a state.

  Raises:
    ValueError: If the settings cannot be flags, or the name is another part's.
  """
  check_settings(settings, methods.Method)
  if settings.steps or not (settings.federated and settings.has_clients):
    raise ValueError(
      f'{module_of(settings)}.{settings.__name__} has steps, or no clients; a method '
      'of your own must have clients that train for epochs.'
    )
  _check_name('method', settings.kind, settings, _settings_of_methods())
  options = {'numbered': numbered, 'keeps_states': keeps_states}

  def register(build: Built) -> Built:
    METHODS[settings.kind] = Part(build, settings, options)
    return build

  return register


def metric(build: Built) -> Built:
  """Registers a way to evaluate a frozen encoder, of --evaluation=methods=.

  Args:
    build: A class that inherits from `evaluation.methods.Method`, and takes no
      arguments. Its numbers are in evaluation.json under its `name`.

  Raises:
    ValueError: If it has no name, or another's.
  """
  name = getattr(build, 'name', None)
  _check_word(f'name of {module_of(build)}', name)
  _check_name('metric', name, build, METRICS)
  METRICS[name] = Part(build)
  return build


def _settings_of_methods() -> dict[str, Any]:
  """Returns the settings of all methods: the checkout's, and those registered."""
  found = {name: part.settings for name, part in METHODS.items()}
  waiting: list[type[methods.Method]] = [methods.Method, personal.Personal]
  while waiting:
    cls = waiting.pop()
    waiting += cls.__subclasses__()
    if cls.kind and not _is_own(cls):
      found[cls.kind] = cls
  return found


def own(table: dict[str, Part]) -> Iterator[Part]:
  """Yields the parts of a table that are from outside the checkout."""
  return (part for part in table.values() if part.is_own)


def count() -> int:
  """Returns the number of all registered parts."""
  return sum(map(len, _TABLES))


def module_of(value: Any) -> str:
  """Returns the name of the module that defines a class, a function or a value."""
  return str(getattr(value, '__module__', type(value).__module__))


def _is_own(value: Any) -> bool:
  return module_of(value).partition('.')[0] not in _CHECKOUT


def _check_name(what: str, name: str, own: Any, table: dict[str, Any]) -> None:
  """Refuses a name that a part of another module has in a table.

  A module that is executed again, as in a notebook, replaces its own.
  """
  other = table.get(name)
  other = other.build if isinstance(other, Part) else other
  if other is not None and _place(other) != _place(own):
    raise ValueError(
      f'The {what} {name!r} is in {module_of(other)} and in {module_of(own)}; a name '
      'must be that of one.'
    )


def _check_word(what: str, name: Any) -> None:
  if not isinstance(name, str) or not re.fullmatch(r'[A-Za-z]\w*', name, re.ASCII):
    raise ValueError(
      f'{what} is {name!r}; it must be a word of letters, digits and _, as in my_part.'
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
  _check_word(f'kind of {name}', settings.kind)
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
