"""How signals rank the runs of the leaderboard, of which no threshold comes."""

from collections.abc import Iterator, Mapping, Sequence
import math
import pathlib
import statistics

from scipy import stats

from docs.claims import data
from docs.claims import figures
from docs.leaderboard import boards as boards_lib
from tff_ssl.evaluation import signals
from tff_ssl.reporting import verdict
from tff_ssl.storage import files

# Numbers of evaluation.json.
_Numbers = Mapping[str, float]


def relative(numbers: _Numbers, signal: str) -> float:
  """Returns a signal relative to that of the encoder before training.

  Args:
    numbers: Those of evaluation.json.
    signal: One of `signals.NAMES`.
  """
  before = numbers[f'{verdict.UNTRAINED}signals/{signal}']
  return numbers[f'signals/{signal}'] / before if before else math.nan


def correlations(
  benchmark: boards_lib.Benchmark, folder: pathlib.Path, stored: figures.Stored
) -> list[dict[str, object]]:
  """Returns Spearman's rank correlation of signals with accuracy, by board.

  Args:
    benchmark: Boards and methods.
    folder: The leaderboard's run folders.
    stored: Its figures, by which a method's rate was chosen.

  Returns:
    A row for each signal, in which it is relative to before training, over the results
    of all methods.

  Raises:
    ValueError: If there is no result.
  """
  found = [
    (each, _results(benchmark, each, folder, stored))
    for each in benchmark.boards.values()
  ]
  if not any(runs for _, runs in found):
    raise ValueError(
      f'{folder} has no results of the leaderboard; it must be the folder of its runs.'
    )
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
  benchmark: boards_lib.Benchmark, folder: pathlib.Path
) -> list[dict[str, object]]:
  """Returns what is lost if each method's rate is chosen without labels.

  Args:
    benchmark: Boards and methods.
    folder: The leaderboard's run folders.

  Returns:
    A row for each board: how far the validation accuracy is below that of the best
    rate, in points, as the mean over methods, if the rate is that with the largest
    ratio of variances among those whose light is not red; or any; or the worst.
  """
  rows: list[dict[str, object]] = []
  for board in benchmark.boards.values():
    column = boards_lib.tuning_column(board)
    losses = [_losses(tried, column) for tried in _tuning(benchmark, board, folder)]
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
  benchmark: boards_lib.Benchmark, board: boards_lib.Board, folder: pathlib.Path
) -> Iterator[list[_Numbers]]:
  """Yields the numbers of the rates of each method of which its own were tried."""
  for method in benchmark.methods.values():
    runs = [benchmark.tuning_run(board, method, rate) for rate in method.grid]
    found = [_read(run, benchmark.tuning_seed, folder) for run in runs]
    tried = [numbers for numbers in found if numbers]
    if len(tried) >= len(method.rates):
      yield tried


def _results(
  benchmark: boards_lib.Benchmark,
  board: boards_lib.Board,
  folder: pathlib.Path,
  stored: figures.Stored,
) -> list[_Numbers]:
  """Returns the numbers of all methods' results on a board."""
  found = [
    _read(boards_lib.run(board, method, rate), seed, folder)
    for method in benchmark.methods.values()
    if (rate := boards_lib.chosen_rate(benchmark, board, method, stored)) is not None
    for seed in range(boards_lib.SEEDS)
  ]
  return [numbers for numbers in found if numbers]


def _read(run: data.Run, seed: int, folder: pathlib.Path) -> _Numbers:
  """Returns the numbers of a run; none if it was not evaluated."""
  path = run.folder(folder, seed) / 'evaluation.json'
  if not path.exists():
    return {}
  numbers: _Numbers = files.read_json(path)
  if verdict.light(numbers) is None:
    raise ValueError(
      f'{path.parent} has no signals; `python -m binaries.evaluate --run=...` adds '
      'them.'
    )
  return numbers
