"""Makes the runs of the leaderboard, and writes docs/leaderboard.md.

  python -m docs.leaderboard --data=ham10000=/data/ham10000_200x150.tar
  python -m docs.leaderboard --boards=digits_silo --seeds=1 --tune=false
  python -m docs.leaderboard --boards=digits_silo --methods=fedu2,ssd
  python -m docs.leaderboard --seeds=0

The rate of each method is chosen on each board, then the method runs there. What this
takes is said, and refused above the bound of boards.toml, before the first run. Each
run is a separate process; its figures go to docs/leaderboard/figures.csv, and it is not
repeated if they are there or its folder is complete. After Ctrl-C or a kill the same
command resumes. With --seeds=0 it writes the page alone.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import pathlib
import sys

from binaries.config import command_line
from binaries.launching import job_runner
from binaries.launching import program
from docs.campaigns import figures
from docs.campaigns import making
from docs.leaderboard import boards as boards_lib
from docs.leaderboard import page
from tff_ssl.computing import checks
from tff_ssl.computing import kinds
from tff_ssl.storage import files

# A run and its seed.
Wanted = tuple[figures.Run, int]


@dataclasses.dataclass(frozen=True)
class Options:
  """What is run, and how.

  Attributes:
    boards: Names of boards; none: all.
    methods: Names of methods; none: all.
    seeds: Seeds of each method on each board; 0: the page alone.
    tune: Whether rates are chosen first; otherwise the middle ones are taken.
    jobs: Runs at a time; none: one per core.
    runs: Folder of the run folders.
    data: Data of tasks, as in cifar10=/data/tfds,ham10000=/data/ham10000.tar.
  """

  boards: tuple[str, ...] = ()
  methods: tuple[str, ...] = ()
  seeds: kinds.Natural = boards_lib.SEEDS
  tune: bool = True
  jobs: kinds.Count | None = None
  runs: command_line.Path = 'runs/leaderboard'
  data: tuple[str, ...] = ()


def main(
  options: Options,
  benchmark: boards_lib.Benchmark | None = None,
  folder: pathlib.Path = boards_lib.FOLDER,
  start: job_runner.Start | None = None,
) -> None:
  """Runs methods on boards and writes the page.

  Args:
    options: Which, and how.
    benchmark: Boards and methods; None: those of boards.toml.
    folder: Folder of the stored figures; the page is next to it.
    start: Starts a command; None: in a separate process.

  Raises:
    ValueError: If an option has a wrong value, the runs would take too long, or a run
      failed.
  """
  benchmark = benchmark or boards_lib.read()
  checks.between(0, boards_lib.SEEDS, seeds=options.seeds)
  cells = benchmark.cells(
    making.chosen('boards', options.boards, benchmark.boards),
    making.chosen('methods', options.methods, benchmark.methods),
  )
  columns: dict[figures.Run, list[str]] = {}
  for cell in benchmark.cells():
    columns |= cell.columns
  path, runs = folder / 'figures.csv', pathlib.Path(options.runs)
  paths = making.paths(options.data, columns)

  def wanted(stored: figures.Stored) -> Iterator[Wanted]:
    yield from _tuning(cells, options, stored)
    yield from _results(cells, options, stored)

  try:
    if options.seeds:
      _check_cost(benchmark.hours, cells, options, figures.read(path))
      making.make(wanted, path, runs, columns, paths, options.jobs, start)
  finally:
    files.write(folder.with_suffix('.md'), page.text(benchmark, path))


def _tuning(
  cells: Iterable[boards_lib.Cell], options: Options, stored: figures.Stored
) -> Iterator[Wanted]:
  """Yields the runs by which rates are chosen next.

  The best rate may be the last one on a side; then the next one is tried too.
  """
  for cell in cells if options.tune else ():
    for rate in cell.missing_rates(stored):
      yield cell.tuning_run(rate), boards_lib.TUNING_SEED


def _results(
  cells: Iterable[boards_lib.Cell], options: Options, stored: figures.Stored
) -> Iterator[Wanted]:
  """Yields the runs of methods on boards: all with the first seed before any other.

  A method whose rates could not all be tried has no results yet.
  """
  for seed in range(options.seeds):
    for cell in cells:
      rate = cell.chosen_rate(stored) if options.tune else cell.middle_rate
      if rate is not None:
        yield cell.run(rate), seed


def _check_cost(
  most_hours: float,
  cells: Iterable[boards_lib.Cell],
  options: Options,
  stored: figures.Stored,
) -> None:
  """Prints what the runs take; refuses more than the file allows."""
  seconds = 0.0
  for cell in cells:
    tuning = len([*_tuning([cell], options, stored)])
    results = _results([cell], options, stored)
    done = sum((run.key, k, cell.board.column) in stored for run, k in results)
    further = boards_lib.FURTHER if tuning else 0
    seconds += (options.seeds - done + tuning + further) * cell.board.seconds
  hours = seconds / 3600
  if hours > most_hours:
    raise ValueError(
      f'The runs take about {hours:.1f} CPU hours; it must be at most '
      f'{most_hours:g}, the bound of boards.toml.'
    )
  print(f'About {hours:.2f} CPU hours at most', file=sys.stderr, flush=True)


if __name__ == '__main__':
  program.run_module('docs.leaderboard.__main__')
