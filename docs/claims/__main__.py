"""Makes the runs that the papers' claims need, and writes docs/claims.md.

  python -m docs.claims --budget=digits
  python -m docs.claims --budget=digits --claims=dcco-cohort --seeds=1
  python -m docs.claims --budget=digits --seeds=0

Each run is a separate process. Its figures go to docs/claims/BUDGET.csv, and it is not
repeated if they are there or its folder is complete. After Ctrl-C or a kill the same
command resumes. With --seeds=0 it writes the page alone.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import pathlib
from typing import Literal

from binaries.config import command_line
from binaries.launching import job_runner
from binaries.launching import program
from docs.campaigns import figures
from docs.campaigns import making
from docs.claims import data
from docs.claims import page
from tff_ssl.computing import checks
from tff_ssl.computing import kinds
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
  claims = {claim.id: claim for claim in data.read(options.budget)}
  ids = making.chosen('claims', options.claims, claims)
  most = data.MOST_SEEDS if options.seeds is None else options.seeds
  checks.between(0, data.MOST_SEEDS, seeds=most)
  columns = data.columns(claims.values())
  paths = making.paths(options.data, columns)
  path = folder / f'{options.budget}.csv'
  base = pathlib.Path(options.runs) / options.budget
  own = [*runs([claims[name] for name in ids], most)]
  try:
    making.make(lambda _: own, path, base, columns, paths, options.jobs, start)
  finally:
    files.write(folder.with_suffix('.md'), page.text(full=False, folder=folder))


def runs(claims: Iterable[data.Claim], most: int) -> Iterator[tuple[figures.Run, int]]:
  """Yields runs with their seeds: all with the first seed before any with the second.

  Args:
    claims: The claims, which say how many seeds they need.
    most: Most seeds of a run.
  """
  seeds: dict[figures.Run, int] = {}
  for claim in claims:
    for title, figure in claim.figures.items():
      needed = len(claim.seeds_of(title))
      seeds[figure.run] = max(seeds.get(figure.run, 0), needed)
  for seed in range(most):
    for run, needed in seeds.items():
      if seed < needed:
        yield run, seed


if __name__ == '__main__':
  program.run_module('docs.claims.__main__')
