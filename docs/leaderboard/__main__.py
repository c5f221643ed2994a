"""Makes the runs of the leaderboard, and writes docs/leaderboard.md.

  python -m docs.leaderboard --boards=digits_silo --methods=fedu2,ssd --seeds=1
  python -m docs.leaderboard --seeds=0

The rate of each method is chosen on each board, then the method runs there. Each run is
a separate process; its figures go to docs/leaderboard/figures.csv, and it is not
repeated if they are there or its folder is complete. After Ctrl-C or a kill the same
command resumes. With --seeds=0 it writes the page alone.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import pathlib

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


@dataclasses.dataclass(frozen=True)
class Options:
  """What is run, and how.

  Attributes:
    boards: Names of boards; none: all.
    methods: Names of methods; none: all.
    seeds: Seeds of each method on each board; 0: the page alone.
    jobs: Runs at a time; none: one per core.
    runs: Folder of the run folders.
    data: Data of tasks, as in cifar10=/data/tfds,ham10000=/data/ham10000.tar.
  """

  boards: tuple[str, ...] = ()
  methods: tuple[str, ...] = ()
  seeds: kinds.Natural = boards_lib.SEEDS
  jobs: kinds.Count | None = None
  runs: command_line.Path = 'runs/leaderboard'
  data: tuple[str, ...] = ()


def main(
  options: Options,
  every: Sequence[boards_lib.Cell] = (),
  folder: pathlib.Path = boards_lib.FOLDER,
  start: job_runner.Start | None = None,
) -> None:
  """Runs methods on boards and writes the page.

  Args:
    options: Which, and how.
    every: Methods on boards; none: those of boards.toml.
    folder: Folder of the stored figures; the page is next to it.
    start: Starts a command; None: in a separate process.

  Raises:
    ValueError: If an option has a wrong value, or a run failed.
  """
  every = every or boards_lib.read()
  checks.between(0, boards_lib.SEEDS, seeds=options.seeds)
  boards = making.chosen('boards', options.boards, {c.board.name: c for c in every})
  methods = making.chosen('methods', options.methods, {c.method.name: c for c in every})
  cells = [c for c in every if c.board.name in boards and c.method.name in methods]
  columns = {run: own for cell in every for run, own in cell.columns.items()}
  path, runs = folder / 'figures.csv', pathlib.Path(options.runs)
  paths = making.paths(options.data, columns)

  def wanted(stored: figures.Stored) -> Iterator[tuple[figures.Run, int]]:
    for cell in cells if options.seeds else ():
      yield from cell.tuning(stored)
    rates = {cell: cell.chosen_rate(stored) for cell in cells}
    # All with the first seed before any other.
    for seed in range(options.seeds):
      for cell, rate in rates.items():
        if rate is not None:
          yield cell.run(rate), seed

  try:
    making.make(wanted, path, runs, columns, paths, options.jobs, start)
  finally:
    files.write(folder.with_suffix('.md'), page.text(every, path))


if __name__ == '__main__':
  program.run_module('docs.leaderboard.__main__')
