"""The training programs: which methods each offers, with which defaults."""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import importlib

from binaries.config import run_config
from tff_ssl.computing import near_names
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

# In the order in which a method of several programs is looked for.
NAMES = ('dcco', 'fedavg_ssl', 'fedema', 'ssfl', 'dec_ssl', 'fedsup')


@dataclasses.dataclass(frozen=True)
class Program:
  """What a training program offers.

  Attributes:
    name: Name of the program in `binaries`.
    checkout: The runs with their papers' settings, by method and objective; the first
      of a method is its own objective, and the first method the program's default.
    own: Returns the runs of parts that are registered from outside the checkout.
  """

  name: str
  checkout: Mapping[str, Mapping[str, run_config.RunConfig]]
  own: Callable[[], Iterable[run_config.RunConfig]] = tuple

  @property
  def rows(self) -> Mapping[str, Mapping[str, run_config.RunConfig]]:
    """The runs of the checkout, and those of parts of one's own."""
    own = rows(*self.own())
    return {
      method: {**self.checkout.get(method, {}), **own.get(method, {})}
      for method in dict.fromkeys((*self.checkout, *own))
    }

  @property
  def methods(self) -> dict[str, type[methods.Method]]:
    """The methods by name."""
    return {
      name: type(next(iter(row.values())).method) for name, row in self.rows.items()
    }

  @property
  def objectives(self) -> dict[str, type[objectives.Objective]]:
    """The objectives of all methods, by name."""
    return {
      name: type(config.objective)
      for row in self.rows.values()
      for name, config in row.items()
    }

  def row(self, method: str | None, objective: str | None) -> run_config.RunConfig:
    """Returns the run of a method and an objective, with the settings of its paper.

    Args:
      method: Name of the method; None: the first that has the objective.
      objective: Name of the objective; None: the first of the method.

    Raises:
      ValueError: If the program does not offer them together.
    """
    if method is None:
      fitting = [m for m, row in self.rows.items() if objective in (None, *row)]
      if not fitting:
        raise ValueError(
          f'objective is {objective!r}; binaries.{self.name} has '
          f'{", ".join(self.objectives)}.{_where(str(objective), "objectives", self)}'
        )
      method = fitting[0]
    if method not in self.rows:
      raise ValueError(
        f'method is {method!r}; binaries.{self.name} has {", ".join(self.rows)}.'
        f'{_where(method, "rows", self)}'
      )
    row = self.rows[method]
    if objective is None:
      return next(iter(row.values()))
    if objective not in row:
      raise ValueError(
        f'objective is {objective!r}; {method} in binaries.{self.name} has '
        f'{", ".join(row)}.{near_names.question(objective, row)}'
      )
    return row[objective]


def _where(name: str, kind: str, program: Program) -> str:
  """Returns where else a method or an objective is, or what may have been meant."""
  others = [other for other in NAMES if name in getattr(load(other), kind)]
  if others:
    return f' It is in binaries.{others[0]}.'
  return near_names.question(name, getattr(program, kind), may_be_own=True)


def rows(*configs: run_config.RunConfig) -> dict[str, dict[str, run_config.RunConfig]]:
  """Returns runs by the names of their methods and objectives, in their order."""
  by_method: dict[str, dict[str, run_config.RunConfig]] = {}
  for config in configs:
    by_method.setdefault(config.method.kind, {})[config.objective.kind] = config
  return by_method


def load(name: str) -> Program:
  """Imports a training program; returns what it offers."""
  return importlib.import_module(f'binaries.{name}').PROGRAM


def check(config: run_config.RunConfig) -> None:
  """Refuses an objective that no program offers with the method of a run.

  A method that is in no program is the caller's own, and is not judged.

  Raises:
    ValueError: If they do not fit; the message says which objectives do.
  """
  fitting: dict[str, None] = {}
  for name in NAMES:
    row = load(name).rows.get(config.method.kind, {})
    if config.objective.kind in row:
      # No program is imported without need.
      return
    fitting |= dict.fromkeys(row)
  if fitting:
    raise ValueError(
      f'objective is {config.objective.kind!r}; with the method {config.method.kind} '
      f'it must be one of {", ".join(fitting)}.'
    )


def all_methods() -> dict[str, type[methods.Method]]:
  """Returns the methods of all programs, by name."""
  return {name: cls for each in NAMES for name, cls in load(each).methods.items()}
