"""The boards and methods, read from boards.toml (README.md describes it)."""

from collections.abc import Collection, Mapping
import dataclasses
import pathlib
import statistics
import string
import tomllib
from typing import Any

from binaries.config import command_line
from docs.campaigns import figures
from docs.campaigns import making

FOLDER = pathlib.Path(__file__).parent
# Seeds of a result.
SEEDS = 3
# Most rates that are tried beyond a method's own on a side, while its last is the best.
FURTHER = 3
# Of a run that also evaluates an encoder that has learnt nothing.
UNTRAINED = 'random_encoder'
# The seed with which rates are chosen, which no result has, and what is held out.
TUNING_SEED = 100
_TUNING_FLAGS = '--data=validation=0.2'


@dataclasses.dataclass(frozen=True)
class Board:
  """A data set and a partition: what all methods are compared on.

  Attributes:
    name: Such as 'digits_silo'; after the last '_' the kind of its clients.
    title: What the page calls it.
    flags: Of the program: data, partition, encoder, evaluation.
    column: The accuracy that ranks methods, of `evaluation.json`.
    passes: How often each image is seen.
    rounds: In how many rounds.
    seconds: CPU seconds that a run takes, as the mean over methods.
  """

  name: str
  title: str
  flags: str
  column: str
  passes: float
  rounds: int
  seconds: float


@dataclasses.dataclass(frozen=True)
class Method:
  """A method as it takes part.

  Attributes:
    name: Name in the file.
    title: What the page calls it.
    source: Its paper.
    program: Module of `binaries`.
    plan: Flags of how clients or server train, with $rate.
    flags: Its own flags.
    rates: Rates of which one is chosen for each board, in ascending order; further ones
      follow at the end that wins.
    device: Flags that are added on boards of many clients.
    untrained: Whether the untrained encoder of its runs stands on the board.
  """

  name: str
  title: str
  source: str
  program: str
  plan: str
  flags: str
  rates: tuple[float, ...]
  device: str = ''
  untrained: bool = False

  @property
  def grid(self) -> tuple[float, ...]:
    """All rates that may be tried, in ascending order: its own, two for each decade."""
    found = [*self.rates]
    for _ in range(FURTHER):
      found = [float(f'{found[1] / 10:g}'), *found, float(f'{found[-2] * 10:g}')]
    return tuple(found)


@dataclasses.dataclass(frozen=True)
class Cell:
  """A method on a board.

  Attributes:
    board: The board.
    method: The method.
  """

  board: Board
  method: Method

  def run(self, rate: float, more: str = '', name: str = '') -> figures.Run:
    """Returns its run, without seed and folder.

    Args:
      rate: Of its clients or server.
      more: Further flags.
      name: The end of its name, if it has any.
    """
    board, method = self.board, self.method
    device = method.device if board.name.endswith('_device') else ''
    plan = string.Template(method.plan).substitute(rate=f'{rate:g}')
    rounds = f'--rounds={board.rounds}'
    text = f'{board.flags} {plan} {method.flags} {device} {rounds} {more}'
    full = f'{board.name}_{method.name}_{rate:g}{name}'
    return figures.Run(full, method.program, tuple(text.split()))

  def tuning_run(self, rate: float) -> figures.Run:
    """Returns the run that says how good a rate is."""
    return self.run(rate, _TUNING_FLAGS, '_tuning')

  @property
  def norm(self) -> str:
    """The norm of its networks."""
    own = self.run(self.middle_rate)
    flags = (*own.flags, '--run_dir=RUN_DIR')
    encoder: Any = command_line.parse_run(own.program, flags).encoder
    return encoder.norm

  @property
  def columns(self) -> dict[figures.Run, list[str]]:
    """What is stored of each run that may be made."""
    names = [self.board.column, *making.BYTES, making.CPU]
    # Centralized training moves nothing.
    if '--method=centralized' in self.method.flags.split():
      names = [self.board.column, making.CPU]
    if self.method.untrained:
      names.append(f'{UNTRAINED}/{self.board.column}')
    tuning = [f'validation/{self.board.column}']
    return {self.run(rate): names for rate in self.method.grid} | {
      self.tuning_run(rate): tuning for rate in self.method.grid
    }

  @property
  def middle_rate(self) -> float:
    """The rate, if it is not tuned."""
    return statistics.median_low(self.method.rates)

  def missing_rates(self, stored: figures.Stored) -> list[float]:
    """Returns the rates that must be tried next.

    First the method's own; while the best is the first or the last of those tried, the
    next of its grid on that side.

    Args:
      stored: The stored figures.
    """
    tried, grid = self._tried(stored), self.method.grid
    if missing := [rate for rate in self.method.rates if rate not in tried]:
      return missing
    at = grid.index(_best(tried))
    return [rate for rate in grid[max(at - 1, 0) : at + 2] if rate not in tried]

  def chosen_rate(self, stored: figures.Stored) -> float | None:
    """Returns the rate; None: some are not tried yet."""
    return None if self.missing_rates(stored) else _best(self._tried(stored))

  def _tried(self, stored: figures.Stored) -> dict[float, float]:
    """Returns the validation accuracy of each rate that was tried."""
    column = f'validation/{self.board.column}'
    keys = {
      rate: (self.tuning_run(rate).key, TUNING_SEED, column)
      for rate in self.method.grid
    }
    return {rate: stored[key] for rate, key in keys.items() if key in stored}


def _best(tried: Mapping[float, float]) -> float:
  # NaN is no accuracy; of equals the smallest.
  return max(tried, key=lambda rate: (tried[rate] == tried[rate], tried[rate], -rate))


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """What is in the file.

  Attributes:
    boards: By name.
    methods: By name.
    hours: CPU hours that all runs may take.
  """

  boards: Mapping[str, Board]
  methods: Mapping[str, Method]
  hours: float

  def cells(
    self, boards: Collection[str] = (), methods: Collection[str] = ()
  ) -> list[Cell]:
    """Returns all methods on all boards, or those of these names."""
    return [
      Cell(self.boards[board], self.methods[method])
      for board in boards or self.boards
      for method in methods or self.methods
    ]


def read(path: pathlib.Path = FOLDER / 'boards.toml') -> Benchmark:
  """Reads boards and methods.

  Args:
    path: The file.

  Raises:
    ValueError: If a table lacks a field, or has one that is not known.
  """
  content = tomllib.loads(path.read_text(encoding='utf-8'))
  try:
    boards = {name: Board(name, **own) for name, own in content['boards'].items()}
    methods = {}
    for name, own in content['methods'].items():
      own |= {'plan': content['plan'][own['plan']], 'rates': tuple(own['rates'])}
      methods[name] = Method(name, **own)
    return Benchmark(boards, methods, content['hours'])
  except KeyError as error:
    raise ValueError(f'{path.name} has no {error}; it must have one.') from error
  except TypeError as error:
    raise ValueError(f'{path.name}: {error}') from error
