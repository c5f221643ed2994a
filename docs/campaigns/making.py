"""Makes the runs of a campaign that are not complete yet, and stores their figures."""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import pathlib
from typing import TextIO

from binaries.launching import complete
from binaries.launching import job_runner
from docs.campaigns import figures
from tff_ssl.computing import sessions
from tff_ssl.runs import run_config
from tff_ssl.runs import state_store
from tff_ssl.storage import files

BYTES = ('client_work/bytes_down', 'client_work/bytes_up')
CPU = 'cpu_seconds'
# Significant digits of a stored figure.
_DIGITS = 6


def check_seeds(seeds: int, most: int) -> None:
  """Refuses more seeds than a campaign has."""
  if seeds > most:
    raise ValueError(f'seeds is {seeds}; it must be a whole number from 0 to {most}.')


def chosen(name: str, given: Sequence[str], known: Collection[str]) -> list[str]:
  """Returns the names that are given, or all, in the order of the known ones.

  Args:
    name: The option.
    given: Its value.
    known: What it may hold.

  Raises:
    ValueError: If a name is not known.
  """
  for each in given:
    if each not in known:
      raise ValueError(f'{name} has {each!r}; it must be one of {", ".join(known)}.')
  return [each for each in known if each in given or not given]


def paths(pairs: Sequence[str], runs: Collection[figures.Run]) -> dict[str, str]:
  """Returns the path of the data, by task.

  Args:
    pairs: Each TASK=PATH.
    runs: The runs of the campaign.

  Raises:
    ValueError: If no run has a task, or a path does not exist.
  """
  tasks, found = {run.task for run in runs}, {}
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

  run: figures.Run
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
    folder: pathlib.Path,
    columns: figures.Columns,
    data: Mapping[str, str],
    at_a_time: int | None = None,
    start: job_runner.Start | None = None,
    stream: TextIO | None = None,
  ):
    """Reads the stored figures.

    Args:
      path: The file of the figures.
      folder: The folder of the run folders.
      columns: All runs of the campaign, with the columns that are stored of each.
      data: Path of the data, by task.
      at_a_time: Most jobs that run at a time; None: one per core.
      start: Starts a command; None: see `job_runner.start`.
      stream: Where progress is shown; None: stderr.

    Raises:
      ValueError: If a link leads out of the folder, or the figures are none.
    """
    super().__init__(at_a_time or sessions.cores(), start, stream)
    # Runs and their logs are written into it, and it may be a stranger's.
    if folder.is_dir():
      run_config.check_contained(folder)
    self._path, self._folder, self._columns, self._data = path, folder, columns, data
    self.stored = figures.read(path)

  def job(self, run: figures.Run, seed: int) -> Job:
    """Returns a run with its seed, in its folder."""
    return Job(run, seed, run.folder(self._folder, seed))

  def is_done(self, job: Job) -> bool:
    """Returns whether a run's figures are stored; stores those of its folder.

    What clients keep, gigabytes where they are many, only serves to go on training: it
    is removed.
    """
    columns = self._columns[job.run]
    if all((job.run.key, job.seed, column) in self.stored for column in columns):
      return True
    known = _read(job.folder, columns)
    if len(known) < len(columns):
      return False
    own = {
      (job.run.key, job.seed, column): float(f'{value:.{_DIGITS}g}')
      for column, value in known.items()
    }
    # Another campaign may have written other figures, or later ones.
    self.stored = {**self.stored, **figures.read(self._path), **own}
    files.write(self._path, figures.text(self.stored, self._columns))
    (job.folder / state_store.NAME).unlink(missing_ok=True)
    return True

  def command(self, job: Job) -> list[str]:
    """Returns what follows `python`."""
    own = [*job.run.flags, f'--seed={job.seed}', f'--run_dir={job.folder}']
    if job.run.task in self._data:
      own.append(f'--data_dir={self._data[job.run.task]}')
    return ['-m', f'binaries.{job.run.program}', *own]

  def missing(self, job: Job) -> str:
    """Returns why a run that has succeeded is not done."""
    columns = self._columns[job.run]
    known = _read(job.folder, columns)
    missing = [name for name in columns if name not in known]
    return f'{job.folder} has no {", ".join(missing)}, or is not complete'


def _read(folder: pathlib.Path, columns: Collection[str]) -> dict[str, float]:
  """Reads those of some figures that a run has; none unless the run is complete.

  Bytes are the mean over rounds, because a round's may change (FedCA), and CPU seconds
  the sum; other columns of metrics.csv are those of the last round.
  """
  run = complete.read(folder)
  if run is None:
    return {}
  known = {**run.metrics.iloc[-1], **run.evaluation}
  known |= {name: run.metrics[name].mean() for name in BYTES if name in run.metrics}
  if CPU in run.system:
    known[CPU] = run.system[CPU].sum()
  return {name: known[name] for name in columns if name in known}
