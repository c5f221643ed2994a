"""The boards and methods, read from boards.toml (README.md describes it)."""

from collections.abc import Iterator, Mapping
import dataclasses
import pathlib
import statistics
import string
import tomllib
from typing import Any

from binaries.config import command_line
from docs.claims import data
from docs.claims import figures

FOLDER = pathlib.Path(__file__).parent
BYTES = ('client_work/bytes_down', 'client_work/bytes_up')
CPU = 'cpu_seconds'
# Seeds of a result.
SEEDS = 3
# Most rates that are tried beyond a method's own on a side, while its last is the best.
FURTHER = 3
# Of a run that also evaluates an encoder that has learnt nothing.
UNTRAINED = 'random_encoder'


@dataclasses.dataclass(frozen=True)
class Board:
  """A data set and a partition: what all methods are compared on.

  Attributes:
    name: Such as 'digits_silo'; after the last '_' the kind of its clients.
    title: What the page calls it.
    task: Its data set.
    flags: Of the program: data, partition, encoder, evaluation.
    column: The accuracy that ranks methods, of `evaluation.json`.
    passes: How often each image is seen.
    rounds: In how many rounds.
    seconds: CPU seconds that a run takes, as the mean over methods.
  """

  name: str
  title: str
  task: str
  flags: str
  column: str
  passes: float
  rounds: int
  seconds: float

  @property
  def has_many_clients(self) -> bool:
    """Whether its clients are devices, not silos."""
    return self.name.endswith('_device')


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
class Benchmark:
  """What is in the file.

  Attributes:
    boards: By name.
    methods: By name.
    hours: CPU hours that all runs may take.
    tuning_seed: The seed with which rates are chosen.
    tuning_flags: The flags that hold out the validation split which chooses them.
  """

  boards: Mapping[str, Board]
  methods: Mapping[str, Method]
  hours: float
  tuning_seed: int
  tuning_flags: str

  def tuning_run(self, board: Board, method: Method, rate: float) -> data.Run:
    """Returns the run that says how good a rate is on a board."""
    return run(board, method, rate, self.tuning_flags, '_tuning')


def read(path: pathlib.Path = FOLDER / 'boards.toml') -> Benchmark:
  """Reads boards and methods.

  Args:
    path: The file.

  Raises:
    ValueError: If a table lacks a field, or has one that is not known.
  """
  content = tomllib.loads(path.read_text(encoding='utf-8'))
  try:
    methods = {
      name: Method(
        name,
        **{**own, 'plan': content['plan'][own['plan']], 'rates': tuple(own['rates'])},
      )
      for name, own in content['methods'].items()
    }
    boards = {name: Board(name, **own) for name, own in content['boards'].items()}
    fields = (content[name] for name in ('hours', 'tuning_seed', 'tuning_flags'))
    return Benchmark(boards, methods, *fields)
  except KeyError as error:
    raise ValueError(f'{path.name} has no {error}; it must have one.') from error
  except TypeError as error:
    raise ValueError(f'{path.name}: {error}') from error


def run(
  board: Board, method: Method, rate: float, more: str = '', name: str = ''
) -> data.Run:
  """Returns the run of a method on a board, without seed and folder.

  Args:
    board: The board.
    method: The method.
    rate: Of its clients or server.
    more: Further flags.
    name: The end of its name, if it has any.
  """
  device = method.device if board.has_many_clients else ''
  plan = string.Template(method.plan).substitute(rate=f'{rate:g}')
  text = f'{board.flags} {plan} {method.flags} {device} --rounds={board.rounds} {more}'
  full = f'{board.name}_{method.name}_{rate:g}{name}'
  return data.Run(full, method.program, tuple(text.split()))


def norm(board: Board, method: Method) -> str:
  """Returns the norm of a method's networks on a board.

  Args:
    board: The board.
    method: The method.
  """
  own = run(board, method, middle_rate(method))
  flags = (*own.flags, '--run_dir=RUN_DIR')
  encoder: Any = command_line.parse_run(own.program, flags).encoder
  return encoder.norm


def tuning_column(board: Board) -> str:
  """Returns the accuracy that chooses rates."""
  return f'validation/{board.column}'


def columns(board: Board, method: Method) -> list[str]:
  """Returns what is stored of a run, but for its CPU seconds."""
  names = [board.column, *BYTES]
  # Centralized training moves nothing.
  if '--method=centralized' in method.flags.split():
    names = [board.column]
  if method.untrained:
    names.append(f'{UNTRAINED}/{board.column}')
  return names


def claims(benchmark: Benchmark, with_cpu: bool) -> Iterator[data.Claim]:
  """Yields all runs in the form in which the engine of claims takes them.

  Args:
    benchmark: Boards and methods.
    with_cpu: Whether with the figure that no run leaves in its folder's tables of
      metrics: the engine stores it, but does not wait for it.
  """
  for board in benchmark.boards.values():
    for method in benchmark.methods.values():
      names = columns(board, method) + [CPU] * with_cpu
      made = {}
      for rate in method.grid:
        own = run(board, method, rate)
        made.update({f'{rate:g} {name}': data.Figure(own, name) for name in names})
        tuning = benchmark.tuning_run(board, method, rate)
        figure = data.Figure(tuning, tuning_column(board))
        made[f'{rate:g} {figure.column}'] = figure
      yield _claim(f'{board.name}_{method.name}', board, made)


def _claim(name: str, board: Board, made: Mapping[str, data.Figure]) -> data.Claim:
  """Returns figures as a claim that claims nothing."""
  texts: dict[str, Any] = dict.fromkeys(('paper', 'title', 'source', 'sentence'), name)
  return data.Claim(
    id=name,
    **texts,
    budget=board.name,
    figures=made,
    comparisons=(),
    bounds=('', ''),
    protocol='',
    seeds=range(data.MOST_SEEDS),
  )


def missing_rates(
  benchmark: Benchmark, board: Board, method: Method, stored: figures.Stored
) -> list[float]:
  """Returns the rates of a method that must be tried next on a board.

  First its own; while the best is the first or the last of those tried, the next of its
  grid on that side.

  Args:
    benchmark: Boards and methods.
    board: The board.
    method: The method.
    stored: The stored figures.
  """
  tried = _tried(benchmark, board, method, stored)
  if missing := [rate for rate in method.rates if rate not in tried]:
    return missing
  at = method.grid.index(_best(tried))
  around = method.grid[max(at - 1, 0) : at + 2]
  return [rate for rate in around if rate not in tried]


def chosen_rate(
  benchmark: Benchmark, board: Board, method: Method, stored: figures.Stored
) -> float | None:
  """Returns the rate of a method on a board; None: some are not tried yet.

  Args:
    benchmark: Boards and methods.
    board: The board.
    method: The method.
    stored: The stored figures.
  """
  if missing_rates(benchmark, board, method, stored):
    return None
  return _best(_tried(benchmark, board, method, stored))


def _tried(
  benchmark: Benchmark, board: Board, method: Method, stored: figures.Stored
) -> dict[float, float]:
  """Returns the validation accuracy of each rate that was tried."""
  seed, column = benchmark.tuning_seed, tuning_column(board)
  keys = {rate: benchmark.tuning_run(board, method, rate).key for rate in method.grid}
  return {
    rate: stored[key, seed, column]
    for rate, key in keys.items()
    if (key, seed, column) in stored
  }


def _best(tried: Mapping[float, float]) -> float:
  # NaN is no accuracy; of equals the smallest.
  return max(tried, key=lambda rate: (tried[rate] == tried[rate], tried[rate], -rate))


def middle_rate(method: Method) -> float:
  """Returns the rate of a method that is not tuned."""
  return statistics.median_low(method.rates)
