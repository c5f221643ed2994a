"""docs/leaderboard.md, written from boards.toml and the stored figures alone."""

import collections
from collections.abc import Sequence
import pathlib
import statistics
from typing import NamedTuple

from docs.campaigns import figures
from docs.campaigns import making
from docs.campaigns import pages
from docs.claims import data
from docs.claims import verdicts
from docs.leaderboard import boards as boards_lib

_UNTUNED = ', untuned'
_LAST = ', the last'


class Row(NamedTuple):
  """A method on a board.

  Attributes:
    title: Its name.
    source: Its paper.
    norm: Of its networks.
    accuracies: Of each seed.
    rate: What it was run with, whether that was chosen, and from rates on both sides.
    megabytes: Down and up; none: nothing is sent.
    cpu: Seconds, mean over seeds; None: unknown.
  """

  title: str
  source: str
  norm: str
  accuracies: Sequence[float]
  rate: str
  megabytes: Sequence[float]
  cpu: float | None

  @property
  def is_result(self) -> bool:
    """Whether it is a method at a rate chosen for it, with all seeds."""
    is_tuned = self.rate != '' and not self.rate.endswith(_UNTUNED)
    return is_tuned and len(self.accuracies) >= boards_lib.SEEDS


def rows(
  benchmark: boards_lib.Benchmark, board: boards_lib.Board, stored: figures.Stored
) -> list[Row]:
  """Returns the methods that have run on a board, the best first.

  Args:
    benchmark: Boards and methods.
    board: The board.
    stored: The stored figures.
  """
  by_run: dict[str, dict[str, list[float]]] = collections.defaultdict(
    lambda: collections.defaultdict(list)
  )
  for (key, _, column), value in sorted(stored.items()):
    by_run[key][column].append(value)
  found = []
  for cell in benchmark.cells([board.name]):
    tuned, grid = cell.chosen_rate(stored), cell.method.grid
    rate = cell.middle_rate if tuned is None else tuned
    how = _UNTUNED if tuned is None else _LAST * (tuned in (grid[0], grid[-1]))
    columns = by_run[cell.run(rate).key]
    if not (accuracies := columns[board.column]):
      continue
    means = {name: statistics.fmean(own) for name, own in columns.items() if own}
    sent = [means[name] * board.rounds / 1e6 for name in making.BYTES if name in means]
    method, norm, cpu = cell.method, cell.norm, means.get(making.CPU)
    names = method.title, method.source, norm
    found.append(Row(*names, accuracies, f'{rate:g}{how}', sent, cpu))
    if untrained := columns[f'{boards_lib.UNTRAINED}/{board.column}']:
      found.append(Row('untrained encoder', 'the floor', norm, untrained, '', (), None))
  return sorted(found, key=lambda row: -statistics.fmean(row.accuracies))


def text(benchmark: boards_lib.Benchmark, path: pathlib.Path) -> str:
  """Returns the page.

  Args:
    benchmark: Boards and methods.
    path: The file of stored figures.
  """
  stored = figures.read(path)
  found = [(each, rows(benchmark, each, stored)) for each in benchmark.boards.values()]
  return pages.rendered(
    pathlib.Path(__file__).with_name('page.md.jinja'),
    boards=found,
    cells=len(benchmark.cells()),
    done=sum(row.is_result for _, own in found for row in own),
    seeds=boards_lib.SEEDS,
    accuracy=_accuracy,
  )


def _accuracy(row: Row) -> str:
  """Returns mean and half the width of its interval; the mean alone of one seed."""
  mean = f'{100 * statistics.fmean(row.accuracies):.1f}'
  if len(row.accuracies) < 2:
    return mean
  plain = data.Comparison({}, None, level=False)
  return f'{mean} ± {100 * verdicts.compare(plain, row.accuracies).reach:.1f}'
