"""Makes the runs that the papers' claims need, and writes docs/claims.md.

  python -m docs.claims --budget=digits
  python -m docs.claims --budget=digits --claims dcco-centralized --seeds=1
  python -m docs.claims --budget=digits --seeds=0

Each run is a separate process. Its figures go to docs/claims/BUDGET.csv, and it is not
repeated if they are there or its folder is complete. After Ctrl-C or a kill the same
command resumes. With --seeds=0 it writes the page alone.
"""

import argparse
from collections.abc import Sequence
import os
import pathlib
import sys

from binaries.launching import job_runner
from binaries.launching import program
from binaries.launching import stopping
from binaries.launching import streams
from docs.claims import data
from docs.claims import page
from docs.claims import running
from tff_ssl.runs import run_config
from tff_ssl.storage import files


def main(
  arguments: Sequence[str],
  folder: pathlib.Path = data.FOLDER,
  start: job_runner.Start | None = None,
) -> None:
  """Runs claims and writes what they say.

  Args:
    arguments: The command line, without the program.
    folder: Folder of the stored figures; the page is next to it.
    start: Starts a command; None: in a separate process.

  Raises:
    ValueError: If an option has a wrong value, or a run failed.
  """
  options = _options(arguments)
  claims = data.read(options.budget)
  chosen = [
    claim for claim in claims if claim.id in options.claims or not options.claims
  ]
  for name in {*options.claims} - {claim.id for claim in chosen}:
    ids = ', '.join(claim.id for claim in claims)
    raise ValueError(f'claims has {name!r}; it must be one of {ids}.')
  most = data.SEEDS[options.budget]
  seeds = most if options.seeds is None else options.seeds
  if not 0 <= seeds <= most:
    raise ValueError(f'seeds is {seeds}; it must be a whole number from 0 to {most}.')
  if options.jobs < 1:
    raise ValueError(f'jobs is {options.jobs}; it must be at least 1.')
  paths = _paths(options.data, claims)
  runs = options.runs.expanduser() / options.budget
  # Runs and their logs are written into it, and it may be a stranger's.
  if runs.is_dir():
    run_config.check_contained(runs)
  stored = folder / f'{options.budget}.csv'
  runner = running.Runner(stored, claims, chosen, options.jobs, paths, start)
  failures = []
  try:
    if seeds:
      failures = runner.run(runner.jobs(runs, seeds))
  finally:
    with files.atomic(folder.with_suffix('.md')) as aside:
      aside.write_text(page.summary(folder), encoding='utf-8')
  if failures:
    raise ValueError(f'{len(failures)} runs failed: {" ".join(failures)}')


def _options(arguments: Sequence[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    prog='python -m docs.claims',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add(
    '--budget',
    choices=data.SEEDS,
    default='digits',
    help='digits: minutes per run; cifar: minutes to hours per run',
  )
  add('--claims', nargs='*', default=[], metavar='ID', help='by default all')
  add('--seeds', type=int, help='number of seeds; by default as many as decide a claim')
  cores = len(os.sched_getaffinity(0))
  add('--jobs', type=int, default=cores, help='runs at a time; by default one per core')
  add('--runs', type=pathlib.Path, default='runs/claims', help='folder of run folders')
  add(
    '--data',
    nargs='*',
    default=[],
    metavar='TASK=PATH',
    help='data of tasks, as in cifar10=/data/tfds ham10000=/data/ham.tar',
  )
  return parser.parse_args(arguments)


def _paths(pairs: Sequence[str], claims: Sequence[data.Claim]) -> dict[str, str]:
  """Returns the path of the data, by task."""
  figures = [figure for claim in claims for figure in claim.figures.values()]
  tasks = {name for each in figures for name in (each.run.task, each.transfer_task)}
  paths = {}
  for task, _, path in (pair.partition('=') for pair in pairs):
    paths[task] = str(pathlib.Path(path).expanduser())
    if task not in tasks or not path or not pathlib.Path(paths[task]).exists():
      raise ValueError(
        f'data has {task}={path}; it must be TASK=PATH, a task of '
        f'{", ".join(sorted(filter(None, tasks)))} and an existing path.'
      )
  return paths


if __name__ == '__main__':
  stopping.while_it_imports()
  stopping.as_it_begins()
  streams.make_inert()
  program.run_checked(lambda: main(sys.argv[1:]))
