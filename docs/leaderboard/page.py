"""docs/leaderboard.md, written from boards.toml and the stored figures alone."""

import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import itertools
import pathlib
import statistics
from typing import NamedTuple

from docs.campaigns import figures
from docs.campaigns import making
from docs.campaigns import pages
from docs.claims import verdicts
from docs.leaderboard import boards as boards_lib

# What rows are from that are no paper's.
FLOOR, BOUND = 'the floor', 'the bound'


class Row(NamedTuple):
  """A method on a board, or what has learnt nothing.

  Attributes:
    title: Its name.
    source: Its paper, `BOUND` or `FLOOR`.
    norm: Of its networks.
    accuracies: The accuracy that ranks, and that with more labels, of each seed.
    rate: That chosen for it, and whether it is from rates on both sides.
    steps: That a network takes one after another; None: it takes none.
    megabytes: Down and up; none: nothing is sent.
    cpu: Seconds, mean over seeds; None: unknown.
  """

  title: str
  source: str
  norm: str
  accuracies: Sequence[Mapping[int, float]]
  rate: str = ''
  steps: int | None = None
  megabytes: Sequence[float] = ()
  cpu: float | None = None

  @property
  def is_complete(self) -> bool:
    """Whether it has all seeds."""
    return len(self.accuracies[0]) == boards_lib.SEEDS

  @property
  def mean(self) -> float:
    """The mean over seeds of the accuracy that ranks."""
    return statistics.fmean(self.accuracies[0].values())


def rows(cells: Iterable[boards_lib.Cell], stored: figures.Stored) -> list[Row]:
  """Returns the methods that have run on a board, and the floors, the best first.

  Args:
    cells: Those of the board.
    stored: The stored figures.
  """
  by_run: dict[str, dict[str, dict[int, float]]] = collections.defaultdict(
    lambda: collections.defaultdict(dict)
  )
  for (key, seed, column), value in sorted(stored.items()):
    by_run[key][column][seed] = value
  # A floor that depends on no norm has several runs.
  found = {
    (row.title, row.norm): row for cell in cells for row in _rows(cell, stored, by_run)
  }
  return sorted(found.values(), key=lambda row: (not row.is_complete, -row.mean))


def ranks(complete: Sequence[Row]) -> list[str]:
  """Returns the ranks that rows may have, from the best to the worst.

  The best is behind all rows that are told to be better, the worst before all that are
  told to be worse. Two are told apart by a paired t-test over seeds, of both sides, of
  which Benjamini and Hochberg's correction is over all pairs.

  Args:
    complete: Rows with the same seeds, the best first.
  """
  values = [[*row.accuracies[0].values()] for row in complete]
  pairs = {}
  for j, k in itertools.combinations(range(len(values)), 2):
    of_seeds = [one - other for one, other in zip(values[j], values[k], strict=True)]
    pairs[j, k] = min(2 * verdicts.compare(verdicts.PLAIN, of_seeds).p, 1.0)
  most = verdicts.discovered(pairs.values())
  told = [pair for pair, p in pairs.items() if p <= most]
  better = collections.Counter(k for _, k in told)
  worse = collections.Counter(j for j, _ in told)
  ends = [(1 + better[k], len(values) - worse[k]) for k in range(len(values))]
  return [' to '.join(map(str, dict.fromkeys(each))) for each in ends]


def text(every: Sequence[boards_lib.Cell], path: pathlib.Path) -> str:
  """Returns the page.

  Args:
    every: All methods on all boards, board by board.
    path: The file of stored figures.
  """
  stored = figures.read(path)
  by_board = itertools.groupby(every, key=lambda cell: cell.board)
  boards = [(board, rows(cells, stored)) for board, cells in by_board]
  own = [row for _, found in boards for row in found if row.source != FLOOR]
  return pages.rendered(
    pathlib.Path(__file__).with_name('page.md.jinja'),
    boards=boards,
    bound=BOUND,
    floor=FLOOR,
    ranks=ranks,
    accuracy=verdicts.interval,
    cells=len(every),
    done=sum(row.is_complete for row in own),
    seeds=boards_lib.SEEDS,
    tuning_seeds=len(boards_lib.TUNING_SEEDS),
    least=verdicts.LEAST_RANGE,
  )


def _rows(
  cell: boards_lib.Cell,
  stored: figures.Stored,
  by_run: Mapping[str, Mapping[str, Mapping[int, float]]],
) -> Iterator[Row]:
  """Yields the row of a method, if it has run, and what its runs say of the floors."""
  board, method = cell.board, cell.method
  rate = cell.chosen_rate(stored)
  if rate is None or not (columns := by_run[cell.run(rate).key]):
    return
  means = {name: statistics.fmean(own.values()) for name, own in columns.items()}
  yield Row(
    title=method.title,
    source=method.source,
    norm=method.norm,
    accuracies=[columns[name] for name in cell.accuracies],
    rate=f'{rate:g}' + ', the last' * (rate in (method.grid[0], method.grid[-1])),
    steps=cell.steps,
    megabytes=[means[k] * board.rounds / 1e6 for k in making.BYTES if k in means],
    cpu=means.get(making.CPU),
  )
  for title, prefix in cell.floors.items():
    norm = method.norm if title in boards_lib.OF_NORM else ''
    names = prefix + board.column, prefix + board.beside
    yield Row(title, FLOOR, norm, [columns[name] for name in names])
