"""Parts by name: what a run is built of, each registered by one decorator.

An objective, as in a file of one's own::

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

from collections.abc import Callable, Collection, Iterator
import dataclasses
import re
import typing
from typing import Any, Literal, TypeVar

from tff_ssl.computing import kinds
from tff_ssl.settings import aggregations
from tff_ssl.settings import encoders
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import personal

Built = TypeVar('Built')
Of = Literal['model', 'statistics', 'encoder', 'classes']
# How a score of a metric is read: a share of 1, shown in per cent, of which more is
# better; or another number, of which more, or less, is better.
SHARE, MORE, LESS = WAYS = ('share', 'more', 'less')
_CHECKOUT = ('tff_ssl', 'tasks', 'binaries')
_SCALARS = (bool, int, float, str)


@dataclasses.dataclass(frozen=True)
class Part:
  """What builds a part of a run.

  Attributes:
    build: The class or the function that builds it, or the part itself.
    settings: The dataclass of its settings; None for a part that has a name alone.
    options: What else its decorator was given, by name.
  """

  build: Any
  settings: Any = None
  options: dict[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def is_own(self) -> bool:
    """Whether it is from outside the checkout."""
    return is_own(self.settings or self.build)


OBJECTIVES: dict[str, Part] = {}
METHODS: dict[str, Part] = {}
METRICS: dict[str, Part] = {}
ENCODERS: dict[str, Part] = {}
AGGREGATIONS: dict[str, Part] = {}
AUGMENTATIONS: dict[str, Part] = {}
TASKS: dict[str, Part] = {}
_TABLES = (
  *(OBJECTIVES, METHODS, METRICS, ENCODERS, AGGREGATIONS, AUGMENTATIONS, TASKS),
)


def objective(settings: type[Any], of: Of = 'model') -> Callable[[Built], Built]:
  """Registers an objective, which any method that averages can train.

  Args:
    settings: Its settings, a frozen dataclass that inherits from
      `settings.objectives.Objective`, or from `Projected` if it has a projector.
    of: What it is built of. model: called with a `dual_encoder.DualEncoder`; encoder:
      with a network and views; classes: with a network, a classifier, and weak and
      strong views; each with `settings=` too. statistics: called with the settings
      alone, for a `statistics_loss.StatisticsLoss`, which DCCO minimises too.

  Returns:
    The decorator of what builds the objective, a class or a function.

  Raises:
    ValueError: If the settings cannot be flags, or the name is another part's.
  """
  is_projected = of in ('model', 'statistics')
  base = objectives.Projected if is_projected else objectives.Objective
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
  number too. In the checkout it is called with a `building.algorithms.Algorithm`.

  Args:
    settings: Its settings, a frozen dataclass that inherits from
      `settings.methods.Method`.
    numbered: Whether examples name the number of their client.
    keeps_states: Whether clients keep a state.

  Raises:
    ValueError: If the settings cannot be flags, or the name is another part's.
  """
  check_settings(settings, methods.Method)
  _check_name('method', settings.kind, settings, _settings_of_methods())
  options = {'numbered': numbered, 'keeps_states': keeps_states}

  def register(build: Built) -> Built:
    # Those of the checkout say how they are built of a run.
    by_epochs = settings.federated and settings.has_clients and not settings.steps
    if callable(build) and not by_epochs:
      raise ValueError(
        f'{module_of(settings)}.{settings.__name__} has steps, or no clients; a method '
        'of your own must have clients that train for epochs.'
      )
    METHODS[settings.kind] = Part(build, settings, options)
    return build

  return register


def metric(build: Built) -> Built:
  """Registers a way to evaluate a frozen encoder, of --evaluation=methods=.

  Args:
    build: A class that inherits from `evaluation.methods.Method`, and takes no
      arguments. Its numbers are in evaluation.json under its `name`; tables, curves and
      cards show accuracies, and those that its `scores` name.

  Raises:
    ValueError: If it has no name, or another's, or a score is read in no known way.
  """
  name: Any = getattr(build, 'name', None)
  _check_word(f'name of {module_of(build)}', name)
  _check_name('metric', name, build, METRICS)
  scores: dict[str, str] = {**getattr(build, 'scores', {})}
  for score, way in scores.items():
    _check_word(f'A score of {name}', score)
    if way not in WAYS:
      raise ValueError(
        f'The score {score} of {name} is {way!r}; it must be one of {", ".join(WAYS)}.'
      )
  METRICS[name] = Part(build, options={'scores': scores})
  return build


def encoder(settings: type[Any]) -> Callable[[Built], Built]:
  """Registers an encoder of images.

  It decorates a function from (settings, `network_ops.Operations`, images [n, H, W, C])
  to features [n, d]; see docs/add_an_encoder.md.

  Args:
    settings: Its settings, a frozen dataclass that inherits from
      `settings.encoders.Encoder`, with its name as the default of `kind`.

  Raises:
    ValueError: If the settings cannot be flags, or the name is another part's.
  """
  check_settings(settings, encoders.Encoder)
  return _with_settings('encoder', settings, encoders.ENCODERS, ENCODERS)


def aggregation(settings: type[Any]) -> Callable[[Built], Built]:
  """Registers a way to combine clients' values in the clear.

  It decorates a function from settings to `aggregators.aggregations.Aggregation`, as
  `aggregations.of` returns it.

  Args:
    settings: Its settings, a frozen dataclass that inherits from
      `settings.aggregations.Plain`.

  Raises:
    ValueError: If the settings cannot be flags, or the name is another part's.
  """
  check_settings(settings, aggregations.Plain)
  known = aggregations.AGGREGATIONS
  return _with_settings('aggregation', settings, known, AGGREGATIONS)


def _with_settings(
  what: str, settings: type[Any], known: dict[str, Any], table: dict[str, Part]
) -> Callable[[Built], Built]:
  """Returns the decorator that registers settings, and what it decorates."""
  _check_name(what, settings.kind, settings, known)

  def register(build: Built) -> Built:
    known[settings.kind] = settings
    table[settings.kind] = Part(build, settings)
    return build

  return register


def augmentation(name: str, after: Any = None) -> Callable[[Built], Built]:
  """Registers a way to make views, of --augmentation=.

  It is called with an `augment.configs.AugmentConfig`, or decorates a function from
  (images, draws) to images, both float32 [n, H, W, C] in [0, 1]. `draws(k)` gives k
  random numbers in [0, 1) for each image, float32 [n, k], which are others for each
  view and round; a function calls it once.

  Args:
    name: Its name.
    after: Views that the function changes: a name of `augment.configs.CONFIGS`, or a
      configuration; None: the images themselves.

  Raises:
    ValueError: If the name cannot be one, or is another's.
  """
  return _named('augmentation', name, AUGMENTATIONS, {'after': after})


def task(name: str, views: str | None = None) -> Callable[[Built], Built]:
  """Registers a data set of images, of --task=.

  It decorates a function that returns a `tasks.task_types.Task` (`tasks.array_tasks`
  helps to make one). Its parameters are the options that it takes, by their names:
  `data_dir`, `image_size`, `seed`.

  Args:
    name: Its name.
    views: Its augmentation by default; None: the method's.

  Raises:
    ValueError: If the name cannot be one, or is another's.
  """
  return _named('task', name, TASKS, {'views': views})


def _named(
  what: str, name: str, table: dict[str, Part], options: dict[str, Any]
) -> Callable[[Built], Built]:
  """Returns the decorator that registers something under a name alone."""
  _check_word(f'The {what}', name)

  def register(build: Built) -> Built:
    _check_name(what, name, build, table)
    table[name] = Part(build, options=options)
    return build

  return register


def _settings_of_methods() -> dict[str, Any]:
  """Returns the settings of all methods: the checkout's, and those registered."""
  found = {name: part.settings for name, part in METHODS.items()}
  # The subclasses are those of the modules that are imported here.
  waiting: list[type[methods.Method]] = [methods.Method, personal.Personal]
  while waiting:
    cls = waiting.pop()
    waiting += cls.__subclasses__()
    if cls.kind and not is_own(cls):
      found[cls.kind] = cls
  return found


def own(table: dict[str, Part]) -> Iterator[Part]:
  """Yields the parts of a table that are from outside the checkout."""
  return (part for part in table.values() if part.is_own)


def modules(only_own: bool = False, named: Collection[str] | None = None) -> set[str]:
  """Returns the names of the modules that have registered a part.

  Args:
    only_own: Whether those of the checkout are left out.
    named: Names that their parts have; None: any.
  """
  every = (item for table in _TABLES for item in table.items())
  kept = [part for name, part in every if named is None or name in named]
  return {
    module_of(part.settings or part.build)
    for part in kept
    if part.is_own or not only_own
  }


def module_of(value: Any) -> str:
  """Returns the name of the module that defines a class, a function or a value."""
  # A function with some of its arguments is where the function is.
  return str(getattr(value, 'func', value).__module__)


def is_own(value: Any) -> bool:
  """Returns whether a class or a function is from outside the checkout."""
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
  _check_word(f'kind of {name}', getattr(settings, 'kind', None))
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
      raise ValueError(
        f'The field {field.name} of {name} has no default; it must have one.'
      )
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
