"""docs/leaderboard.md, written from boards.toml and the stored figures alone."""

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

_INTRODUCTION = """# The leaderboard of federated self-supervision

All methods on the same data, partitions, networks and passes over the images, each at a
rate chosen for it. `make leaderboard` makes the missing runs and writes this page; it
resumes, and says beforehand what it costs. No figure is typed by hand: they are in
[figures.csv](leaderboard/figures.csv), boards and methods in
[boards.toml](leaderboard/boards.toml); `docs/leaderboard/README.md` says how to add a
method.

Clients train for one epoch of batches of 32 in each round; with a loss of statistics
(DCCO, FedSC, FedAvg with CCO) they take one step on all their images, at the rate of
the server's Adam. All networks are ResNet-8 of half the width.

- *norm*: of the encoder and what follows it, as the method's program has it by default;
  group norm has at most 32 groups. An untrained encoder is much better with batch norm
  than with such a group norm, so compare methods of one norm, each with its floor.
- *accuracy*: of a logistic regression on the frozen features, with 10 % of the labels
  (HAM10000: the mean over classes of the recall), in per cent: the mean over seeds, and
  an interval that holds the true mean nine times in ten, by Student's t.
- *rate*: the best on a validation split, by one run with a seed that no result has.
  Three are tried, and up to three more on a side while the best is the last one there;
  *the last*: it still is. *untuned*: the middle one of the first three.
- *down*, *up*: MB of the whole run to and from all clients, in float32; where clients
  fill a table at the server, each counts the rows of its own.
- *CPU*: seconds of a run with its evaluation. They depend on the machine.

FedSup and the other methods with labels at the server are no part of it, because they
have labels.
"""
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
  found = []
  for cell in benchmark.cells([board.name]):
    method, tuned = cell.method, cell.chosen_rate(stored)
    rate = cell.middle_rate if tuned is None else tuned
    is_last = tuned in (method.grid[0], method.grid[-1])
    how = _UNTUNED if tuned is None else _LAST * is_last
    key = cell.run(rate).key

    def values(column: str, key: str = key) -> list[float]:
      return [
        stored[key, seed, column]
        for seed in range(data.MOST_SEEDS)
        if (key, seed, column) in stored
      ]

    if not (accuracies := values(board.column)):
      continue
    sent = [each for name in making.BYTES if (each := values(name))]
    cpu = values(making.CPU)
    found.append(
      Row(
        method.title,
        method.source,
        cell.norm,
        accuracies,
        f'{rate:g}{how}',
        [statistics.fmean(each) * board.rounds / 1e6 for each in sent],
        statistics.fmean(cpu) if cpu else None,
      )
    )
    if untrained := values(f'{boards_lib.UNTRAINED}/{board.column}'):
      floor = Row('untrained encoder', 'the floor', cell.norm, untrained, '', (), None)
      found.append(floor)
  return sorted(found, key=lambda row: -statistics.fmean(row.accuracies))


def text(benchmark: boards_lib.Benchmark, path: pathlib.Path) -> str:
  """Returns the page.

  Args:
    benchmark: Boards and methods.
    path: The file of stored figures.
  """
  stored = figures.read(path)
  boards = benchmark.boards.values()
  found = [rows(benchmark, board, stored) for board in boards]
  sections = map(_section, boards, found)
  return ''.join([_INTRODUCTION, _state(benchmark, found), *sections])


def _state(benchmark: boards_lib.Benchmark, found: Sequence[Sequence[Row]]) -> str:
  """Returns how much of the campaign is missing; '' if nothing is."""
  cells = len(benchmark.boards) * len(benchmark.methods)
  done = sum(row.is_result for each in found for row in each)
  if done == cells:
    return ''
  return (
    f'\n**The campaign is not complete.** Of {cells} cells, a method on a board, '
    f'{done} have\n{boards_lib.SEEDS} seeds at a rate chosen for the method. Any other '
    'figure shows that a run works,\nand ranks nothing.\n'
  )


def _section(board: boards_lib.Board, found: Sequence[Row]) -> str:
  head = f'\n## {board.title}\n\n{board.passes:g} passes, {board.rounds} rounds.'
  if not found:
    return f'{head} Not run yet.\n'
  numbers = ('accuracy', 'seeds', 'rate', 'down', 'up', 'CPU')
  header = ('method', 'from', 'norm', *numbers)
  return f'{head}\n\n{pages.table(header, map(_cells, found))}'


def _cells(row: Row) -> Sequence[str]:
  sent = [f'{each:,.1f}' for each in row.megabytes] or ['', '']
  cpu = '' if row.cpu is None else f'{row.cpu:,.0f}'
  seeds = str(len(row.accuracies))
  numbers = (_accuracy(row), seeds, row.rate, *sent, cpu)
  return (row.title, row.source, row.norm, *numbers)


def _accuracy(row: Row) -> str:
  """Returns mean and half the width of its interval; the mean alone of one seed."""
  mean = f'{100 * statistics.fmean(row.accuracies):.1f}'
  if len(row.accuracies) < 2:
    return mean
  plain = data.Comparison({}, None, level=False)
  return f'{mean} ± {100 * verdicts.compare(plain, row.accuracies, 1.0).reach:.1f}'
