"""Makes the runs of claims that are not complete yet, and stores their figures."""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import pathlib
from typing import TextIO

from binaries.launching import complete
from binaries.launching import job_runner
from docs.claims import data
from docs.claims import figures as figures_lib
from tff_ssl.runs import state_store
from tff_ssl.storage import files

# Significant digits of a stored figure.
_DIGITS = 6


def paths(pairs: Sequence[str], tasks: Collection[str]) -> dict[str, str]:
  """Returns the path of the data, by task.

  Args:
    pairs: Each TASK=PATH.
    tasks: Those that there are.

  Raises:
    ValueError: If a task is another one, or a path does not exist.
  """
  found = {}
  for task, _, path in (pair.partition('=') for pair in pairs):
    found[task] = str(pathlib.Path(path).expanduser())
    if task not in tasks or not path or not pathlib.Path(found[task]).exists():
      raise ValueError(
        f'data has {task}={path}; it must be TASK=PATH, a task of '
        f'{", ".join(sorted(tasks))} and an existing path.'
      )
  return found


@dataclasses.dataclass(frozen=True)
class Job:
  """A run with its seed.

  Attributes:
    run: The run.
    seed: The seed.
    folder: The run folder; the output goes to a file of this name with `.log`.
  """

  run: data.Run
  seed: int
  folder: pathlib.Path

  @property
  def log(self) -> pathlib.Path:
    """The file for the run's output."""
    return self.folder.with_name(f'{self.folder.name}.log')

  def __str__(self) -> str:
    return f'{self.run.name}, seed {self.seed}'


class Runner(job_runner.Runner[Job]):
  """Runs jobs, a limited number at a time, and stores their figures."""

  def __init__(
    self,
    path: pathlib.Path,
    claims: Sequence[data.Claim],
    chosen: Sequence[data.Claim],
    at_a_time: int,
    paths: Mapping[str, str],
    start: job_runner.Start | None = None,
    stream: TextIO | None = None,
  ):
    """Reads the stored figures.

    Args:
      path: The file of the figures.
      claims: All claims of the budget.
      chosen: Claims to run: what only others need, such as an evaluation on another
        task, is not computed.
      at_a_time: Most jobs that run at a time.
      paths: Path of the data, by task.
      start: Starts a command; None: see `job_runner.starting`.
      stream: Where progress is shown; None: stderr.
    """
    super().__init__(at_a_time, start, stream)
    self._path, self._claims, self._paths = path, claims, paths
    self._columns = data.columns(chosen)
    self._seeds = dict.fromkeys(self._columns, 0)
    for claim in chosen:
      for title, figure in claim.figures.items():
        seeds = len(claim.seeds_of(title))
        self._seeds[figure.run] = max(self._seeds[figure.run], seeds)
    self._stored = figures_lib.read(path)

  def jobs(self, folder: pathlib.Path, seeds: int) -> list[Job]:
    """Lists the runs: all with the first seed before any with the second.

    Args:
      folder: The folder of the run folders.
      seeds: Most seeds of a run; it has no more than its claims need.
    """
    return [
      Job(run, seed, run.folder(folder, seed))
      for seed in range(seeds)
      for run in self._columns
      if seed < self._seeds[run]
    ]

  def is_done(self, job: Job) -> bool:
    """Returns whether a run's figures are stored; stores those of its folder.

    What clients keep, gigabytes where they are many, only serves to go on training: it
    is removed.
    """
    columns = self._columns[job.run]
    if all((job.run.key, job.seed, column) in self._stored for column in columns):
      return True
    known = _read(job.folder, columns)
    if len(known) < len(columns):
      return False
    own = {
      (job.run.key, job.seed, column): float(f'{value:.{_DIGITS}g}')
      for column, value in known.items()
    }
    # Another campaign may have written other figures, or later ones.
    self._stored = {**self._stored, **figures_lib.read(self._path), **own}
    files.write(self._path, figures_lib.text(self._stored, self._claims))
    (job.folder / state_store.NAME).unlink(missing_ok=True)
    return True

  def command(self, job: Job) -> list[str]:
    """Returns what follows `python`: the run, or then an evaluation."""
    known = _read(job.folder, self._columns[job.run])
    figures = [data.Figure(job.run, name) for name in self._columns[job.run]]
    targets = [each.transfer_task for each in figures if each.column not in known]
    where = self._flag('data_dir', job.run.task)
    if complete.read(job.folder) and all(targets) and targets:
      where += self._flag('transfer_dir', targets[0])
      own = [f'--run={job.folder}', f'--transfer={targets[0]}', *where]
      return ['-m', 'binaries.evaluate', *own]
    own = [*job.run.flags, f'--seed={job.seed}', f'--run_dir={job.folder}', *where]
    return ['-m', f'binaries.{job.run.program}', *own]

  def missing(self, job: Job) -> str:
    """Returns why a run that has succeeded is not done."""
    known = _read(job.folder, self._columns[job.run])
    missing = [name for name in self._columns[job.run] if name not in known]
    return f'{job.folder} has no {", ".join(missing)}, or is not complete'

  def _flag(self, name: str, task: str) -> list[str]:
    return [f'--{name}={self._paths[task]}'] if task in self._paths else []


def _read(folder: pathlib.Path, columns: Collection[str]) -> dict[str, float]:
  """Reads those of some figures that a run has; none unless the run is complete."""
  run = complete.read(folder)
  known = {**run.metrics.iloc[-1], **run.evaluation} if run else {}
  return {name: known[name] for name in columns if name in known}
