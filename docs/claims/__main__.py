"""Makes the runs that the papers' claims need, and writes docs/claims.md.

  python -m docs.claims --budget=digits
  python -m docs.claims --budget=digits --claims=dcco-centralized --seeds=1
  python -m docs.claims --budget=digits --seeds=0

Each run is a separate process. Its figures go to docs/claims/BUDGET.csv, and it is not
repeated if they are there or its folder is complete. After Ctrl-C or a kill the same
command resumes. With --seeds=0 it writes the page alone.
"""

import dataclasses
import pathlib
from typing import Literal

from binaries.config import command_line
from binaries.launching import job_runner
from binaries.launching import program
from docs.claims import data
from docs.claims import page
from docs.claims import running
from tff_ssl.computing import kinds
from tff_ssl.computing import sessions
from tff_ssl.runs import run_config
from tff_ssl.storage import files


@dataclasses.dataclass(frozen=True)
class Options:
  """Which claims are tested, and how.

  Attributes:
    budget: Minutes a run (digits), or minutes to hours (cifar).
    claims: Ids of the claims; none: all.
    seeds: Most seeds of a run; none: as many as decide its claims.
    jobs: Runs at a time; none: one per core.
    runs: Folder of the run folders.
    data: Data of tasks, as in cifar10=/data/tfds,cifar100=/data/tfds.
  """

  budget: Literal['digits', 'cifar'] = 'digits'
  claims: tuple[str, ...] = ()
  seeds: kinds.Natural | None = None
  jobs: kinds.Count | None = None
  runs: command_line.Path = 'runs/claims'
  data: tuple[str, ...] = ()


def main(
  options: Options,
  folder: pathlib.Path = data.FOLDER,
  start: job_runner.Start | None = None,
) -> None:
  """Runs claims and writes what they say.

  Args:
    options: Which, and how.
    folder: Folder of the stored figures; the page is next to it.
    start: Starts a command; None: in a separate process.

  Raises:
    ValueError: If an option has a wrong value, or a run failed.
  """
  claims = data.read(options.budget)
  chosen = [
    claim for claim in claims if claim.id in options.claims or not options.claims
  ]
  for name in {*options.claims} - {claim.id for claim in chosen}:
    ids = ', '.join(claim.id for claim in claims)
    raise ValueError(f'claims has {name!r}; it must be one of {ids}.')
  most = data.MOST_SEEDS
  seeds = most if options.seeds is None else options.seeds
  if seeds > most:
    raise ValueError(f'seeds is {seeds}; it must be a whole number from 0 to {most}.')
  figures = [figure for claim in claims for figure in claim.figures.values()]
  tasks = {name for each in figures for name in (each.run.task, each.transfer_task)}
  paths = running.paths(options.data, {*filter(None, tasks)})
  runs = pathlib.Path(options.runs) / options.budget
  # Runs and their logs are written into it, and it may be a stranger's.
  if runs.is_dir():
    run_config.check_contained(runs)
  stored = folder / f'{options.budget}.csv'
  jobs = options.jobs or sessions.cores()
  runner = running.Runner(stored, claims, chosen, jobs, paths, start)
  failures = []
  try:
    if seeds:
      failures = runner.run(runner.jobs(runs, seeds))
  finally:
    files.write(folder.with_suffix('.md'), page.summary(folder))
  if failures:
    raise ValueError(f'{len(failures)} runs failed: {" ".join(failures)}')


if __name__ == '__main__':
  program.run_module('docs.claims.__main__')
