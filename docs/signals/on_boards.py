"""How signals rank the runs of the leaderboard, of which no threshold comes."""

from collections.abc import Iterator, Mapping, Sequence
import csv
import io
import math
import pathlib
import statistics

from scipy import stats

from docs.claims import data
from docs.claims import figures
from docs.leaderboard import boards as boards_lib
from tff_ssl.evaluation import signals
from tff_ssl.reporting import verdict
from tff_ssl.runs.privacy import disclosure
from tff_ssl.storage import files

# What is kept of each run, so that nobody needs its folder.
PATH = pathlib.Path(__file__).parent / 'boards.csv'
_KEPT = tuple(
  f'{before}signals/{name}'
  for before in ('', verdict.UNTRAINED)
  for name in signals.NAMES
)
_HEADER = ('run', 'hash', 'seed', *_KEPT)
# Numbers of evaluation.json.
_Numbers = Mapping[str, float]
# By the key of a run, and its seed.
Kept = Mapping[tuple[str, int], _Numbers]


def relative(numbers: _Numbers, signal: str) -> float:
  """Returns a signal relative to that of the encoder before training.

  Args:
    numbers: Those of evaluation.json.
    signal: One of `signals.NAMES`.
  """
  before = numbers[f'{verdict.UNTRAINED}signals/{signal}']
  return numbers[f'signals/{signal}'] / before if before else math.nan


def keep(
  benchmark: boards_lib.Benchmark, folder: pathlib.Path, path: pathlib.Path = PATH
) -> dict[tuple[str, int], _Numbers]:
  """Adds the signals of the runs in a folder to those that are kept; returns all.

  Args:
    benchmark: Boards and methods; what is of none of their runs is left out.
    folder: The leaderboard's run folders; it may have none.
    path: What is kept.

  Raises:
    ValueError: If a run was evaluated without signals.
  """
  text = path.read_text(encoding='utf-8') if path.exists() else ''
  kept: dict[tuple[str, int], _Numbers] = {
    (row['hash'], int(row['seed'])): {name: float(row[name]) for name in _KEPT}
    for row in csv.DictReader(text.splitlines())
  }
  found: dict[tuple[str, int], _Numbers] = {}
  lines = io.StringIO()
  writer = csv.writer(lines, lineterminator='\n')
  writer.writerow(_HEADER)
  for run, seed in _runs(benchmark):
    key = run.key, seed
    if numbers := _read(run, seed, folder) or kept.get(key):
      found[key] = {name: float(f'{numbers[name]:.4g}') for name in _KEPT}
      writer.writerow([run.name, *key, *(f'{k:g}' for k in found[key].values())])
  files.write(path, lines.getvalue())
  return found


def _runs(benchmark: boards_lib.Benchmark) -> Iterator[tuple[data.Run, int]]:
  """Yields all runs that a campaign may make, with their seeds."""
  for board in benchmark.boards.values():
    for method in benchmark.methods.values():
      for rate in method.grid:
        yield benchmark.tuning_run(board, method, rate), benchmark.tuning_seed
        for seed in range(boards_lib.SEEDS):
          yield boards_lib.run(board, method, rate), seed


def correlations(
  benchmark: boards_lib.Benchmark, kept: Kept, stored: figures.Stored, norm: str
) -> list[dict[str, object]]:
  """Returns Spearman's rank correlation of signals with accuracy, by board.

  Args:
    benchmark: Boards and methods.
    kept: What `keep` returns.
    stored: The leaderboard's figures: accuracies, and those that chose rates.
    norm: Of the methods. Signals are relative to before training, and cannot see that
      untrained encoders of two norms differ.

  Returns:
    A row for each signal, over the results of all methods with this norm.
  """
  found = [
    (each, _results(benchmark, each, kept, stored, norm))
    for each in benchmark.boards.values()
  ]
  rows = []
  for signal in signals.NAMES:
    row: dict[str, object] = {'signal': signal}
    for board, runs in found:
      if len(runs) > 2:
        accuracies = [numbers[board.column] for numbers in runs]
        own = [relative(numbers, signal) for numbers in runs]
        rank = stats.spearmanr(own, accuracies).correlation
        row[f'{board.name}, {len(runs)} runs'] = f'{rank:.2f}'
    rows.append(row)
  return rows


def rates(
  benchmark: boards_lib.Benchmark, kept: Kept, stored: figures.Stored
) -> list[dict[str, object]]:
  """Returns what is lost if each method's rate is chosen without labels.

  Args:
    benchmark: Boards and methods.
    kept: What `keep` returns.
    stored: The leaderboard's figures.

  Returns:
    A row for each board: how far the validation accuracy is below that of the best
    rate, in points, as the mean over methods, if the rate is that with the largest
    ratio of variances among those whose light is not red; or any; or the worst.
  """
  rows: list[dict[str, object]] = []
  for board in benchmark.boards.values():
    column = boards_lib.tuning_column(board)
    losses = [
      _losses(tried, column) for tried in _tuning(benchmark, board, kept, stored)
    ]
    if losses:
      names = ('largest view_ratio', 'any', 'worst')
      means = map(statistics.fmean, zip(*losses, strict=True))
      shown = {n: f'{100 * m:.1f}' for n, m in zip(names, means, strict=True)}
      rows.append({'board': board.name, 'methods': len(losses), **shown})
  return rows


def _losses(tried: Sequence[_Numbers], column: str) -> tuple[float, float, float]:
  usable = [
    numbers
    for numbers in tried
    if (light := verdict.light(numbers)) and light.color != verdict.RED
  ]
  chosen = max(usable or tried, key=lambda numbers: numbers[verdict.RATIO])[column]
  accuracies = [numbers[column] for numbers in tried]
  best, mean = max(accuracies), statistics.fmean(accuracies)
  return best - chosen, best - mean, best - min(accuracies)


def _tuning(
  benchmark: boards_lib.Benchmark,
  board: boards_lib.Board,
  kept: Kept,
  stored: figures.Stored,
) -> Iterator[list[_Numbers]]:
  """Yields the numbers of the rates of each method of which its own were tried."""
  column = boards_lib.tuning_column(board)
  for method in benchmark.methods.values():
    runs = [benchmark.tuning_run(board, method, rate) for rate in method.grid]
    found = [_numbers(r, benchmark.tuning_seed, column, kept, stored) for r in runs]
    tried = [numbers for numbers in found if numbers]
    if len(tried) >= len(method.rates):
      yield tried


def _results(
  benchmark: boards_lib.Benchmark,
  board: boards_lib.Board,
  kept: Kept,
  stored: figures.Stored,
  norm: str,
) -> list[_Numbers]:
  """Returns the numbers of the results on a board of the methods with a norm."""
  found = [
    _numbers(boards_lib.run(board, method, rate), seed, board.column, kept, stored)
    for method in benchmark.methods.values()
    if boards_lib.norm(board, method) == norm
    if (rate := boards_lib.chosen_rate(benchmark, board, method, stored)) is not None
    for seed in range(boards_lib.SEEDS)
  ]
  return [numbers for numbers in found if numbers]


def _numbers(
  run: data.Run, seed: int, column: str, kept: Kept, stored: figures.Stored
) -> _Numbers:
  """Returns the signals of a run and its accuracy; none if one of them is unknown."""
  key = run.key, seed
  if key not in kept or (*key, column) not in stored:
    return {}
  return {**kept[key], column: stored[*key, column]}


def _read(run: data.Run, seed: int, folder: pathlib.Path) -> _Numbers:
  """Returns the numbers of a run's evaluation; none if it has not ended."""
  path = run.folder(folder, seed) / 'evaluation.json'
  if not path.exists():
    return {}
  numbers: _Numbers = files.read_json(path)
  if verdict.light(numbers) is None:
    # They come after accuracies, and the card last.
    if not (path.parent / disclosure.TEXT).exists():
      return {}
    raise ValueError(
      f'{path.parent} has no signals; `python -m binaries.evaluate --run=...` adds '
      'them.'
    )
  return numbers
