"""Runs what claims need and what is not done yet."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import pathlib
from typing import TextIO

from binaries.evidence import claim as claim_lib
from binaries.evidence import store as store_lib
from binaries.launching import job_runner

_TASK = '--task='


@dataclasses.dataclass(frozen=True)
class Job:
  """A run with its seed.

  Attributes:
    run: The run.
    seed: The seed.
    folder: Of the run; its output goes to a file of this name with `.log`.
    data: Where the data of tasks are, by task, in pairs.
  """

  run: claim_lib.Run
  seed: int
  folder: pathlib.Path
  data: tuple[tuple[str, str], ...] = ()

  @property
  def log(self) -> pathlib.Path:
    """The file of what the run says."""
    return self.folder.with_name(f'{self.folder.name}.log')

  def __str__(self) -> str:
    return f'{self.run.name}, seed {self.seed}'

  def command(self, columns: Sequence[str]) -> list[str]:
    """Returns what follows `python`: the run, or an evaluation once that is complete.

    Args:
      columns: That claims need of it.
    """
    own = [name for name in columns if claim_lib.transfer_task(name) is None]
    where = dict(self.data)
    tasks = [flag.removeprefix(_TASK) for flag in self.run.flags if _TASK in flag]
    data = [f'--data_dir={where[task]}' for task in tasks if task in where]
    if len(own) == len(columns) or store_lib.read_folder(self.folder, own) is None:
      return [*self.run.arguments(self.seed, str(self.folder)), *data]
    missing = [
      name for name in columns if store_lib.read_folder(self.folder, [name]) is None
    ]
    task = claim_lib.transfer_task(missing[0]) if missing else None
    data += [f'--transfer_data_dir={where[task]}'] if task in where else []
    evaluate = ['-m', 'binaries.evaluate', f'--run={self.folder}']
    return [*evaluate, f'--transfer_task={task}', *data]


def job(
  runs: pathlib.Path, run: claim_lib.Run, seed: int, data: Mapping[str, str]
) -> Job:
  """Returns a run with its seed and folder, which other flags do not share.

  Args:
    runs: Folder of the budget.
    run: The run.
    seed: The seed.
    data: Where the data of tasks are, by task.
  """
  folder = runs / f'{run.name}-{run.key}' / f'seed_{seed}'
  return Job(run, seed, folder, tuple(data.items()))


class Runner(job_runner.Runner[Job]):
  """Runs jobs, so many at a time, and takes their figures."""

  def __init__(
    self,
    store: store_lib.Store,
    claims: Iterable[claim_lib.Claim],
    jobs: int,
    start: job_runner.Start | None = None,
    stream: TextIO | None = None,
  ):
    """Starts nothing yet.

    Args:
      store: Takes the figures of each run when it ends.
      claims: Those whose figures are wanted: what only others need, as an encoder's
        accuracies on another task, is not evaluated.
      jobs: How many run at a time.
      start: Starts a command; None: see `job_runner.starting`.
      stream: For the progress; None: stderr.
    """
    super().__init__(jobs, start, stream)
    self._store = store
    self._columns = claim_lib.columns(claims)

  def is_done(self, job: Job) -> bool:
    """Returns whether a run's figures are there, after a look into its folder."""
    columns = self._columns[job.run]
    if self._store.has(job.run, job.seed, columns):
      return True
    numbers = store_lib.read_folder(job.folder, columns)
    if numbers is None:
      return False
    self._store.add(job.run, job.seed, numbers)
    return True

  def command(self, job: Job) -> list[str]:
    """Returns what follows `python`."""
    return job.command(self._columns[job.run])

  def missing(self, job: Job) -> str:
    """Returns what figure a run did not leave."""
    return store_lib.describe_missing(job.folder, self._columns[job.run])
