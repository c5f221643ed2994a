"""Makes the runs of the leaderboard, and writes docs/leaderboard.md.

  python -m docs.leaderboard --data=ham10000=/data/ham10000_200x150.tar
  python -m docs.leaderboard --boards=digits_silo --seeds=1 --tune=false
  python -m docs.leaderboard --boards=digits_silo --methods=fedu2,ssd
  python -m docs.leaderboard --seeds=0

First the rate of each method is chosen on each board, then all methods run on all
boards. What this takes is said, and refused above the bound of boards.toml, before the
first run. Each run is a separate process; its figures go to
docs/leaderboard/figures.csv, and it is not repeated if they are there or its folder is
complete. After Ctrl-C or a kill the same command resumes. With --seeds=0 it writes the
page alone.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
import dataclasses
import pathlib
import sys

from binaries.config import command_line
from binaries.launching import complete
from binaries.launching import job_runner
from binaries.launching import program
from docs.claims import data
from docs.claims import figures
from docs.claims import running
from docs.leaderboard import boards as boards_lib
from docs.leaderboard import page
from tff_ssl.computing import kinds
from tff_ssl.computing import sessions
from tff_ssl.runs import run_config
from tff_ssl.storage import files


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
  if options.seeds > boards_lib.SEEDS:
    raise ValueError(
      f'seeds is {options.seeds}; it must be a whole number from 0 to '
      f'{boards_lib.SEEDS}.'
    )
  board_names = _chosen('boards', options.boards, [*benchmark.boards])
  method_names = _chosen('methods', options.methods, [*benchmark.methods])
  cells = [
    (benchmark.boards[board], benchmark.methods[method])
    for board in board_names
    for method in method_names
  ]
  runs, stored = pathlib.Path(options.runs), folder / 'figures.csv'
  # Runs and their logs are written into it, and it may be a stranger's.
  if runs.is_dir():
    run_config.check_contained(runs)
  tasks = {board.task for board in benchmark.boards.values()}
  paths = running.paths(options.data, tasks)

  def run(jobs: Iterable[running.Job]) -> list[str]:
    own = [*jobs]
    runner = running.Runner(
      stored,
      [*boards_lib.claims(benchmark, with_cpu=True)],
      [*boards_lib.claims(benchmark, with_cpu=False)],
      options.jobs or sessions.cores(),
      paths,
      start,
    )
    try:
      return runner.run(own)
    finally:
      _store_of_folders(benchmark, stored, own)

  failures = []
  try:
    if options.seeds:
      _say_cost(benchmark, cells, options, figures.read(stored))
      made: list[running.Job] = []
      # The best rate may be the last one on a side; then the next one is tried too.
      while tuning := [*_tuning(benchmark, cells, options, figures.read(stored), made)]:
        failures += run(tuning)
        made += tuning
      rated = figures.read(stored)
      failures += run(_results(benchmark, cells, options, rated))
  finally:
    files.write(folder.with_suffix('.md'), page.text(benchmark, stored))
  if failures:
    raise ValueError(f'{len(failures)} runs failed: {" ".join(failures)}')


Cells = Sequence[tuple[boards_lib.Board, boards_lib.Method]]


def _tuning(
  benchmark: boards_lib.Benchmark,
  cells: Cells,
  options: Options,
  stored: figures.Stored,
  made: Collection[running.Job],
) -> Iterator[running.Job]:
  """Yields the runs by which rates are chosen next, but for those that have failed."""
  for board, method in cells if options.tune else ():
    for rate in boards_lib.missing_rates(benchmark, board, method, stored):
      run = benchmark.tuning_run(board, method, rate)
      job = _job(run, benchmark.tuning_seed, options)
      if job not in made:
        yield job


def _results(
  benchmark: boards_lib.Benchmark,
  cells: Cells,
  options: Options,
  stored: figures.Stored,
) -> Iterator[running.Job]:
  """Yields the runs of methods on boards: all with the first seed before any other.

  A method whose rates could not all be tried has no results yet.
  """
  for seed in range(options.seeds):
    for board, method in cells:
      rate: float | None = boards_lib.middle_rate(method)
      if options.tune:
        rate = boards_lib.chosen_rate(benchmark, board, method, stored)
      if rate is not None:
        yield _job(boards_lib.run(board, method, rate), seed, options)


def _job(run: data.Run, seed: int, options: Options) -> running.Job:
  return running.Job(run, seed, run.folder(pathlib.Path(options.runs), seed))


def _say_cost(
  benchmark: boards_lib.Benchmark,
  cells: Cells,
  options: Options,
  stored: figures.Stored,
) -> None:
  """Says what the runs take; refuses more than the file allows."""
  taken = 0.0
  for board, method in cells:
    if options.tune:
      left = boards_lib.missing_rates(benchmark, board, method, stored)
      further = boards_lib.FURTHER if left else 0
      taken += (len(left) + further) * board.seconds
    rate = boards_lib.chosen_rate(benchmark, board, method, stored)
    if not options.tune:
      rate = boards_lib.middle_rate(method)
    key = None if rate is None else boards_lib.run(board, method, rate).key
    seeds = range(options.seeds)
    wanted = [k for k in seeds if (key, k, board.column) not in stored]
    taken += len(wanted) * board.seconds
  hours = taken / 3600
  if hours > benchmark.hours:
    raise ValueError(
      f'The runs take about {hours:.1f} CPU hours; it must be at most '
      f'{benchmark.hours:g}, the bound of boards.toml.'
    )
  print(f'About {hours:.2f} CPU hours at most', file=sys.stderr, flush=True)


def _store_of_folders(
  benchmark: boards_lib.Benchmark, path: pathlib.Path, jobs: Sequence[running.Job]
) -> None:
  """Stores bytes and CPU seconds, which are of all rounds, of runs with a folder."""
  measured: figures.Stored = {}
  for job in jobs:
    found = complete.read(job.folder)
    if found is not None and boards_lib.CPU in found.system:
      taken = float(found.system[boards_lib.CPU].sum())
      measured[job.run.key, job.seed, boards_lib.CPU] = float(f'{taken:.6g}')
      # The engine takes the last round's; a round's bytes may change (FedCA).
      for name in boards_lib.BYTES:
        if name in found.metrics:
          mean = float(found.metrics[name].mean())
          measured[job.run.key, job.seed, name] = float(f'{mean:.6g}')
  claims = [*boards_lib.claims(benchmark, with_cpu=True)]
  # Another campaign may have written figures meanwhile.
  files.write(path, figures.text({**figures.read(path), **measured}, claims))


def _chosen(name: str, given: Sequence[str], known: Sequence[str]) -> Sequence[str]:
  """Returns the names that are given, or all; refuses one that is not known."""
  for each in given:
    if each not in known:
      raise ValueError(f'{name} has {each!r}; it must be one of {", ".join(known)}.')
  return [each for each in known if each in given or not given]


if __name__ == '__main__':
  program.run_module('docs.leaderboard.__main__')
