"""A sweep: methods over seeds, and over values of flags, each in its own run."""

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import io
import pathlib
import re
import sys

from binaries.config import changing
from binaries.config import command_line
from binaries.config import run_config
from binaries.experiment import sweep_methods
from binaries.experiment import vary_grammar
from binaries.launching import complete
from binaries.launching import job_runner
from tff_ssl.computing import kinds
from tff_ssl.runs import own_modules
from tff_ssl.settings import encoders

# Fields of the problem, of how clients train or of the evaluation, not of a method,
# whose defaults differ between programs and objectives.
_SAME_FOR_ALL = (
  'partition',
  'clients_per_round',
  'clients',
  'clients.epochs',
  'clients.batch_size',
  'clients.schedule',
  'encoder.norm',
  'objective.projector',
  'evaluation.methods',
)
# Clients that take one step have no other optimizer.
_ONE_STEP = 'steps'
# Flags whose kinds the names of methods say; their fields may be given.
_CHOOSERS = ('method', 'objective')


@dataclasses.dataclass(frozen=True)
class Job:
  """A method with a seed, and a value of what varies.

  Attributes:
    member: The method.
    seed: The seed.
    folder: The run folder; output goes to a file of this name with `.log`.
    changes: Flags of the run and their values, without those that follow from the
      other attributes.
    config: All of the run.
    point: The value of what varies; None: nothing varies.
  """

  member: sweep_methods.Member
  seed: int
  folder: pathlib.Path
  changes: tuple[changing.Change, ...]
  config: run_config.RunConfig
  point: vary_grammar.Point | None = None

  @property
  def log(self) -> pathlib.Path:
    """The file for the run's output."""
    return self.folder.with_name(f'{self.folder.name}.log')

  def __str__(self) -> str:
    where = f'{self.point}, ' if self.point else ''
    return f'{self.member.name}, {where}seed {self.seed}'


class Runner(job_runner.Runner[Job]):
  """Runs the jobs of a sweep, a limited number at a time."""

  def is_done(self, job: Job) -> bool:
    """Returns whether a run is complete, with the baselines if they are asked for."""
    run = complete.read(job.folder)
    if run is None or run.last_round != job.config.rounds:
      return False
    # Only here, as `complete` imports what it needs.
    from tff_ssl.evaluation import method_names
    from tff_ssl.reporting import run_numbers

    scores = [name for name in run.evaluation if method_names.way(name)]
    # Without labels nothing has a score.
    return not (scores and job.config.evaluation.baselines) or all(
      any(name.startswith(baseline) for name in scores)
      for baseline in run_numbers.ENCODERS
    )

  def command(self, job: Job) -> list[str]:
    """Returns the arguments after `python`."""
    return [
      '-m',
      f'binaries.{job.member.program.name}',
      *own_modules.flags(),
      *(f'--{flag}={value}' for flag, value in (*job.member.chosen, *job.changes)),
      f'--seed={job.seed}',
      f'--run_dir={job.folder}',
    ]

  def missing(self, job: Job) -> str:
    """Returns what a run failed to leave."""
    return f'{job.folder} has no evaluation after round {job.config.rounds}'


def jobs(
  found: Sequence[sweep_methods.Member],
  seeds: Sequence[int],
  out: pathlib.Path,
  changes: Sequence[changing.Change],
  points: Sequence[vary_grammar.Point] = (),
) -> tuple[list[Job], list[str]]:
  """Returns the runs of a sweep, after all checks of their values.

  Args:
    found: The methods.
    seeds: The seeds; all methods run with one seed before any runs with the next.
    out: The folder of the runs' folders.
    changes: Flags of the runs and their values, in their order.
    points: What each method goes through; none: nothing varies.

  Returns:
    The runs, and a sentence for each flag or field that not all methods use, or whose
    defaults differ between methods although a comparison should have a single value.

  Raises:
    ValueError: If no method uses a flag or a field, the sweep sets it itself, it has a
      value that is not allowed, or two runs would share a folder.
  """
  _check_not_set(changes)
  _check_varied(changes, points)
  used, left_out = _used(found, changes)
  result = [
    _job(member, seed, out, used[member.name], point)
    for seed in seeds
    for point in points or (None,)
    for member in found
  ]
  _check_folders(result)
  told = _tell_defaults(result[: len(found)], varied(points))
  return result, [*_tell(left_out), *told]


def _job(
  member: sweep_methods.Member,
  seed: int,
  out: pathlib.Path,
  changes: Sequence[changing.Change],
  point: vary_grammar.Point | None,
) -> Job:
  """Returns a run; what varies must be used by its method."""
  folder = out / _file_name(member.name.replace(sweep_methods.SEPARATOR, '-'))
  if point:
    folder /= _file_name(str(point))
    changes = (*changes, *point.changes)
  folder /= f'seed_{seed}'
  try:
    config = _config(member, (*changes, ('seed', str(seed)), ('run_dir', str(folder))))
  except changing.UnusedError as error:
    raise ValueError(
      f'vary has {error.what}, which {member.name} does not use.'
    ) from error
  if config.encoder.precision == encoders.AUTO:
    raise ValueError(
      'precision of --encoder is auto in a sweep, whose runs must not differ by what '
      'each measures; it must be float32 or bfloat16, as a run alone with auto says.'
    )
  return Job(member, seed, folder, tuple(changes), config, point)


def _check_folders(wanted: Sequence[Job]) -> None:
  """Refuses runs that would share a folder."""
  by_folder: dict[pathlib.Path, Job] = {}
  for job in wanted:
    other = by_folder.setdefault(job.folder, job)
    if other is not job:
      raise ValueError(
        f'{other} and {job} would share the folder {job.folder}, in whose name a - '
        'stands for characters that a name may not have; give each --vary of its own.'
      )


def check(wanted: Sequence[Job]) -> None:
  """Checks what the values alone do not tell, such as the runs' folders.

  Raises:
    ValueError: If one cannot be run; the message names its method.
    OSError: If a folder cannot be made.
  """
  # Only here: they import NumPy, which --help does not need, and then TensorFlow.
  from binaries.config import checks

  for job in wanted:
    with _named(job):
      checks.check(job.config)
  from binaries.building import resolved
  from binaries.experiment import running

  amplified = collections.Counter(job.seed for job in wanted if job.config.is_amplified)
  if guessed := sorted(filter(resolved.is_guessed, amplified)):
    print(
      f'Warning: --seeds={",".join(map(str, guessed))} can be guessed, and tells who '
      'was in which cohort of a private run; epsilon holds only where nobody does: '
      'give random seeds above 2^48, or take --aggregation=cohorts=passes.',
      file=sys.stderr,
      flush=True,
    )
  if shared := {seed: runs for seed, runs in amplified.items() if runs > 1}:
    print(
      f'Warning: {sum(shared.values())} private runs share '
      f'--seeds={",".join(map(str, shared))}, and so their cohorts: together they cost '
      'more than the sum of their epsilons; give each method seeds of its own in a '
      'sweep of its own, or take --aggregation=cohorts=passes.',
      file=sys.stderr,
      flush=True,
    )
  for job in wanted:
    # What a run prints about its settings belongs in its own log.
    with _named(job), contextlib.redirect_stderr(io.StringIO()):
      running.check(resolved.resolve_defaults(job.config))


@contextlib.contextmanager
def _named(job: Job) -> Iterator[None]:
  """Puts the method of a run before an error."""
  try:
    yield
  except ValueError as error:
    raise ValueError(f'{job.member.name}: {error}') from error


def _check_not_set(changes: Sequence[changing.Change]) -> None:
  """Refuses flags that say what is run, which the sweep's own flags do."""
  for flag, text in changes:
    is_kind = flag in _CHOOSERS and '=' not in text.partition(':')[0]
    if flag in command_line.OF_ONE_RUN or is_kind:
      raise ValueError(
        f'--{flag}={text} is given; --methods, --seeds and --out say what is run, and '
        f'--method and --objective may have fields alone.'
      )


def _used(
  found: Sequence[sweep_methods.Member], changes: Sequence[changing.Change]
) -> tuple[dict[str, list[changing.Change]], dict[str, list[str]]]:
  """Leaves out what a method does not use.

  Returns:
    The changes of each method's runs by its name; and by what is left out, as in 'tau
    of --method', the names of the methods that do not use it.

  Raises:
    ValueError: If none of the methods uses something, or a value is not allowed.
  """
  used, left_out = {}, dict[str, list[str]]()
  for member in found:
    own = [*changes]
    while (error := _unused(member, own)) is not None:
      those = left_out.setdefault(error.what, [])
      if member.name not in those:
        those.append(member.name)
      if len(those) == len(found):
        raise ValueError(f'{error.what} is given, which none of the methods uses.')
      place = own.index(error.change)
      own[place : place + 1] = [error.rest] if error.rest else []
    used[member.name] = own
  return used, left_out


def _unused(
  member: sweep_methods.Member, changes: Sequence[changing.Change]
) -> changing.UnusedError | None:
  """Returns what says that a method does not use one of some changes, if one does."""
  try:
    _config(member, changes)
  except changing.UnusedError as error:
    return error
  return None


def _config(
  member: sweep_methods.Member, changes: Sequence[changing.Change]
) -> run_config.RunConfig:
  """Returns the run of a method with changes; its errors name the method."""
  try:
    return changing.configure(member.program, (*member.chosen, *changes))
  except changing.UnusedError:
    raise
  except ValueError as error:
    raise ValueError(f'{member.name}: {error}') from error


def _check_varied(
  changes: Sequence[changing.Change], points: Sequence[vary_grammar.Point]
) -> None:
  """Refuses to vary what the sweep sets or what is given too."""
  known = command_line.of_runs()
  for flag, _ in points[0].changes if points else ():
    if flag not in known:
      raise ValueError(f'vary has {flag!r}: {command_line.unknown(flag, known)}')
  given = [name for change in changes for name in _names(*change)]
  for name in varied(points):
    if name in (*command_line.OF_ONE_RUN, *_CHOOSERS):
      raise ValueError(f'vary has {name!r}, which --methods and --seeds set.')
    if name in given:
      raise ValueError(
        f'{_flag(name)} is given, but --vary varies it; leave one of them out.'
      )


def varied(points: Sequence[vary_grammar.Point]) -> tuple[str, ...]:
  """Returns the names of what varies, such as 'clients.epochs'; the axis's first."""
  changes = (change for point in points for change in point.changes)
  return tuple(dict.fromkeys(name for change in changes for name in _names(*change)))


def _names(flag: str, text: str) -> list[str]:
  """Returns the names of the fields that a change sets, such as 'clients.epochs'."""
  flag = changing.SHORT.get(flag, flag)
  if flag not in command_line.REPEATED:
    return [flag]
  fields = [f'{flag}.{field}' for field in kinds.given(text)]
  return fields if '=' in text.partition(':')[0] else [flag, *fields]


def _flag(name: str) -> str:
  """Returns the flag of a field by its name, as in 'epochs of --clients'."""
  part, _, field = name.partition('.')
  return f'{field} of --{part}' if field else f'--{part}'


def _file_name(text: str) -> str:
  """Returns a text as a folder name that is valid on any system and in any shell."""
  return re.sub(r'[^\w.=,+-]', '-', text)


def _tell(left_out: Mapping[str, Sequence[str]]) -> list[str]:
  """Returns a sentence for each flag or field that not all methods use."""
  return [
    f'{what} is left out of {", ".join(those)}: not used there.'
    for what, those in left_out.items()
  ]


def _tell_defaults(wanted: Sequence[Job], varied: Collection[str]) -> list[str]:
  """Returns a sentence for each field whose defaults make a comparison unfair.

  Args:
    wanted: A run of each method.
    varied: Names of fields that vary, which have no default.
  """
  told = []
  for name in (each for each in _SAME_FOR_ALL if each not in varied):
    by_value: dict[str, list[str]] = {}
    for job in wanted:
      settings = job.config.settings()
      if name in settings:
        text = kinds.value_text(settings[name])
        # A schedule of steps is another thing.
        if (name, text) != ('clients', _ONE_STEP):
          by_value.setdefault(text, []).append(job.member.name)
    if len(by_value) > 1:
      values = (f'{value} in {", ".join(those)}' for value, those in by_value.items())
      told.append(
        f'{_flag(name)} defaults to {"; ".join(values)}: give it, to compare only the '
        'methods.'
      )
  return told
