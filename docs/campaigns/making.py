"""Makes the runs of a campaign that are not complete yet, and stores their figures."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
import dataclasses
import pathlib

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


def make(
  wanted: Callable[[figures.Stored], Iterable[tuple[figures.Run, int]]],
  path: pathlib.Path,
  folder: pathlib.Path,
  columns: figures.Columns,
  data: Mapping[str, str],
  at_a_time: int | None = None,
  start: job_runner.Start | None = None,
) -> None:
  """Makes the runs of a campaign that are not done, and stores their figures.

  Args:
    wanted: Stored figures -> runs with their seeds, in the order in which they begin;
      more may be wanted once these are done.
    path: The file of the figures.
    folder: The folder of the run folders.
    columns: All runs of the campaign, with the columns that are stored of each.
    data: Path of the data, by task.
    at_a_time: Most jobs that run at a time; None: one per core.
    start: Starts a command; None: see `job_runner.start`.

  Raises:
    ValueError: If a link leads out of the folder, the figures are none, or a run
      failed; the other runs are made all the same.
  """
  # Runs and their logs are written into it, and it may be a stranger's.
  if folder.is_dir():
    run_config.check_contained(folder)
  made: set[_Job] = set()
  failures: list[str] = []
  while True:
    stored = figures.read(path)
    jobs = [_Job(*each, each[0].folder(folder, each[1])) for each in wanted(stored)]
    if not (jobs := [each for each in jobs if each not in made]):
      break
    runner = _Runner(at_a_time or sessions.cores(), start)
    runner.path, runner.columns, runner.data = path, columns, data
    runner.stored = stored
    failures += runner.run(jobs)
    made.update(jobs)
  if failures:
    raise ValueError(f'{len(failures)} runs failed: {" ".join(failures)}')


@dataclasses.dataclass(frozen=True)
class _Job:
  """A run with its seed and folder; its output goes to a file of this name, `.log`."""

  run: figures.Run
  seed: int
  folder: pathlib.Path

  @property
  def log(self) -> pathlib.Path:
    return self.folder.with_name(f'{self.folder.name}.log')

  def __str__(self) -> str:
    return f'{self.run.name}, seed {self.seed}'


class _Runner(job_runner.Runner[_Job]):
  """Runs jobs, a limited number at a time, and stores their figures."""

  path: pathlib.Path
  columns: figures.Columns
  data: Mapping[str, str]
  stored: figures.Stored

  def is_done(self, job: _Job) -> bool:
    """Returns whether a run's figures are stored; stores those of its folder.

    What clients keep, gigabytes where they are many, only serves to go on training: it
    is removed.
    """
    columns = self.columns[job.run]
    if all((job.run.key, job.seed, column) in self.stored for column in columns):
      return True
    known = _read(job.folder, columns)
    if len(known) < len(columns):
      return False
    # Another campaign may have written other figures, or later ones.
    self.stored |= figures.read(self.path)
    for column, value in known.items():
      self.stored[job.run.key, job.seed, column] = float(f'{value:.{_DIGITS}g}')
    files.write(self.path, figures.text(self.stored, self.columns))
    (job.folder / state_store.NAME).unlink(missing_ok=True)
    return True

  def command(self, job: _Job) -> list[str]:
    own = [*job.run.flags, f'--seed={job.seed}', f'--run_dir={job.folder}']
    if job.run.task in self.data:
      own.append(f'--data_dir={self.data[job.run.task]}')
    return ['-m', f'binaries.{job.run.program}', *own]

  def missing(self, job: _Job) -> str:
    known = _read(job.folder, self.columns[job.run])
    missing = [name for name in self.columns[job.run] if name not in known]
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
