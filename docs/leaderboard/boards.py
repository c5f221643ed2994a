"""The boards and methods, read from boards.toml (README.md describes it)."""

from collections.abc import Iterator, Mapping
import dataclasses
import pathlib
import statistics
import string
import tomllib

from docs.campaigns import figures
from docs.campaigns import making

FOLDER = pathlib.Path(__file__).parent
# Seeds of a result.
SEEDS = 5
# Most rates that are tried beyond a method's own on a side, while its last is the best.
FURTHER = 3
# The norm of networks that have one of their own.
OWN = 'own'
# What has learnt nothing, and the prefix of its numbers in a run; some have a norm.
OF_NORM = {'untrained encoder': 'random_encoder/'}
FLOORS = {'pixels': 'pixels/', 'pixels, PCA': 'pixels_pca/', **OF_NORM}
# The seeds with which rates are chosen, which no result has.
TUNING_SEEDS = (100, 101, 102)
_BATCH = 32


@dataclasses.dataclass(frozen=True)
class Board:
  """A data set and a partition: what all methods are compared on.

  Attributes:
    name: Such as 'digits_silo'.
    title: What the page calls it.
    flags: Of the program: data, partition, encoder, evaluation.
    column: The accuracy that ranks methods, of `evaluation.json`.
    beside: The accuracy with more labels, which is shown too, and chooses rates.
    images: Training images.
    cohort: Clients of a round.
    passes: How often each image is seen.
    rounds: In how many rounds.
    backbone: What the weights are called from which the methods of norm `OWN` begin,
      which alone take part; '': the others do.
    says: What to conclude of it; '': nothing yet.
  """

  name: str
  title: str
  flags: str
  column: str
  beside: str
  images: int
  cohort: int
  passes: float
  rounds: int
  backbone: str = ''
  says: str = ''


@dataclasses.dataclass(frozen=True)
class Method:
  """A method as it takes part.

  Attributes:
    name: Name in the file, and the norm.
    title: What the page calls it.
    source: Its paper.
    program: Module of `binaries`.
    plan: Who takes steps: 'clients', 'server' or 'centralized'.
    training: The plan's flags, with $rate and $batch.
    flags: Its own flags.
    norm: The norm of its networks.
    rates: Rates of which one is chosen for each board, in ascending order; further ones
      follow at the end that wins.
    floors: Whether what has learnt nothing stands on the board, from its runs.
    prefix: Of the numbers that count in place of the global encoder's, as in personal/.
    imports: A file or module of its own.
  """

  name: str
  title: str
  source: str
  program: str
  plan: str
  training: str
  flags: str
  norm: str
  rates: tuple[float, ...]
  floors: bool = False
  prefix: str = ''
  imports: str = ''

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
    numbers = {'rate': f'{rate:g}', 'batch': _BATCH}
    training = string.Template(method.training).substitute(numbers)
    own = f'--rounds={board.rounds}'
    own += f' --encoder=norm={method.norm}' if method.norm != OWN else ''
    own += f' --import={method.imports}' if method.imports else ''
    text = f'{board.flags} {training} {method.flags} {more} {own}'
    full = f'{board.name}_{method.name}_{rate:g}{name}'
    return figures.Run(full, method.program, tuple(text.split()))

  def tuning_run(self, rate: float) -> figures.Run:
    """Returns the run that says how good a rate is."""
    return self.run(rate, '--data=validation=0.2', '_tuning')

  @property
  def steps(self) -> int:
    """How many steps a network takes one after another: of a client, the mean."""
    batches = self.board.images * self.board.passes / _BATCH
    of_client = max(self.board.rounds, batches / self.board.cohort)
    by_plan = {'server': self.board.rounds, 'centralized': batches}
    return round(by_plan.get(self.method.plan, of_client))

  @property
  def accuracies(self) -> list[str]:
    """The columns of the accuracy that ranks it, and of that with more labels."""
    board = self.board
    return [self.method.prefix + each for each in (board.column, board.beside)]

  @property
  def floors(self) -> dict[str, str]:
    """Prefixes of what has learnt nothing here, by title, if its runs store that."""
    own = {self.board.backbone: 'initial_encoder/'} if self.board.backbone else {}
    return {**FLOORS, **own} if self.method.floors else {}

  @property
  def columns(self) -> dict[figures.Run, list[str]]:
    """What is stored of each run that may be made."""
    board = self.board
    names = [*self.accuracies, making.CPU]
    # Centralized training moves nothing.
    names += making.BYTES if self.method.plan != 'centralized' else ()
    for prefix in self.floors.values():
      names += [prefix + board.column, prefix + board.beside]
    tuning = [f'validation/{board.beside}']
    return {self.run(rate): names for rate in self.method.grid} | {
      self.tuning_run(rate): tuning for rate in self.method.grid
    }

  def tuning(self, stored: figures.Stored) -> Iterator[tuple[figures.Run, int]]:
    """Yields the runs, with their seeds, of the rates that must be tried next.

    First the method's own; while the best is the first or the last of those tried, the
    next of its grid on that side.

    Args:
      stored: The stored figures.
    """
    tried, grid = self._tried(stored), self.method.grid
    missing = [rate for rate in self.method.rates if rate not in tried]
    if not missing:
      at = grid.index(_best(tried))
      missing = [rate for rate in grid[max(at - 1, 0) : at + 2] if rate not in tried]
    for rate in missing:
      for seed in TUNING_SEEDS:
        yield self.tuning_run(rate), seed

  def chosen_rate(self, stored: figures.Stored) -> float | None:
    """Returns the rate; None: some are not tried yet."""
    return None if [*self.tuning(stored)] else _best(self._tried(stored))

  def _tried(self, stored: figures.Stored) -> dict[float, float]:
    """Returns the validation accuracy of each rate, the mean over all its seeds."""
    column, found = f'validation/{self.board.beside}', {}
    for rate in self.method.grid:
      run = self.tuning_run(rate).key
      keys = [(run, seed, column) for seed in TUNING_SEEDS]
      if all(key in stored for key in keys):
        found[rate] = statistics.fmean(stored[key] for key in keys)
    return found


def _best(tried: Mapping[float, float]) -> float:
  # NaN is no accuracy; of equals the smallest.
  return max(tried, key=lambda rate: (tried[rate] == tried[rate], tried[rate], -rate))


def read(path: pathlib.Path = FOLDER / 'boards.toml') -> list[Cell]:
  """Reads boards and methods: returns each method on each board.

  Args:
    path: The file.

  Raises:
    ValueError: If a table lacks a field, or has one that is not known.
  """
  content = tomllib.loads(path.read_text(encoding='utf-8'))
  try:
    boards = [Board(name, **own) for name, own in content['boards'].items()]
    cells: list[Cell] = []
    for name, own in content['methods'].items():
      # A plan may begin with another's flags.
      plan = string.Template(content['plans'][own['plan']])
      training = plan.safe_substitute(content['plans'])
      own |= {'training': training, 'rates': tuple(own['rates'])}
      for norm in own.pop('norms'):
        method = Method(f'{name}_{norm}', norm=norm, **own)
        cells += [Cell(b, method) for b in boards if bool(b.backbone) == (norm == OWN)]
    return sorted(cells, key=lambda cell: boards.index(cell.board))
  except KeyError as error:
    raise ValueError(f'{path.name} has no {error}; it must have one.') from error
  except TypeError as error:
    raise ValueError(f'{path.name}: {error}') from error
