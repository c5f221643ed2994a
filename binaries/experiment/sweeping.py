"""A sweep: methods over seeds, and over values of a flag, each in its own run."""

from collections.abc import Collection, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import io
import pathlib
import re
from typing import TextIO

from absl import flags

from binaries.experiment import running
from binaries.flags import common
from binaries.flags import methods
from binaries.flags import varying
from binaries.launching import complete
from binaries.launching import job_runner
from binaries.methods import choice
from binaries.methods import table
from tff_ssl.reporting import run_reader

# Separates a program and a row's parts, as in fedavg_ssl:fedprox:byol.
SEPARATOR = ':'
# Flags of the problem, not of a method, whose defaults differ between programs.
_SAME_FOR_ALL = ('partition', 'clients_per_round', 'local_epochs', 'encoder_norm')
# Flags that the sweep sets for each run.
_SET_BY_SWEEP = (
  *methods.CHOOSERS,
  methods.UNUSED_FLAGS.name,
  common.SEED.name,
  common.RUN_DIR.name,
)


# Compared by identity, because a program holds mappings, which have no hash.
@dataclasses.dataclass(frozen=True, eq=False)
class Member:
  """A method of a sweep.

  Attributes:
    name: The name on the command line, after which the folder of its runs is named.
    program: The program that offers it.
    row: Its row among the program's methods.
    others: Other programs that offer something under this name.
  """

  name: str
  program: table.Program
  row: str
  others: tuple[str, ...] = ()

  @property
  def chooser_flags(self) -> list[str]:
    """The flags that name the method."""
    pairs = zip(self.program.choosers, self.row.split(), strict=True)
    return [f'--{chooser}={part}' for chooser, part in pairs]

  @property
  def folder(self) -> str:
    """Name of the folder with its runs."""
    return _file_name(self.name.replace(SEPARATOR, '-'))

  def describe(self) -> str:
    """Returns the method as a command line, and the other methods of its name."""
    text = f'{self.name} is binaries.{self.program.name} {" ".join(self.chooser_flags)}'
    if not self.others:
      return text
    first = self.name.split(SEPARATOR)[0]
    also = ', '.join(f'{other}{SEPARATOR}{first}' for other in self.others)
    return f'{text} (there is also {also})'


@dataclasses.dataclass(frozen=True)
class Job:
  """A method with a seed, and a value of what varies.

  Attributes:
    member: The method.
    seed: The seed.
    point: The value of what varies; None: nothing varies.
    what: What varies; empty if nothing does.
    folder: The run folder; output goes to a file of this name with `.log`.
    flags: Flags of the run, without those that follow from the other attributes.
    rounds: Rounds of the run when it is complete.
    values: Values of the flags that it uses, given or default.
  """

  member: Member
  seed: int
  folder: pathlib.Path
  flags: tuple[str, ...]
  rounds: int
  values: Mapping[str, object] = dataclasses.field(compare=False, hash=False)
  point: varying.Point | None = dataclasses.field(default=None, hash=False)
  what: str = ''

  @property
  def log(self) -> pathlib.Path:
    """The file for the run's output."""
    return self.folder.with_name(f'{self.folder.name}.log')

  def __str__(self) -> str:
    where = f'{self.what}={self.point.name}, ' if self.point else ''
    return f'{self.member.name}, {where}seed {self.seed}'


class Runner(job_runner.Runner[Job]):
  """Runs the jobs of a sweep, a limited number at a time."""

  def is_done(self, job: Job) -> bool:
    """Returns whether a run has all its rounds and their evaluation."""
    run = complete.read(job.folder)
    return run is not None and run.rounds == job.rounds

  def command(self, job: Job) -> list[str]:
    """Returns the arguments after `python`."""
    return [
      '-m',
      f'binaries.{job.member.program.name}',
      *job.member.chooser_flags,
      *job.flags,
      f'--seed={job.seed}',
      f'--run_dir={job.folder}',
    ]

  def missing(self, job: Job) -> str:
    """Returns what a run failed to leave."""
    return f'{job.folder} has no evaluation after round {job.rounds}'


def members(names: Sequence[str]) -> list[Member]:
  """Returns the methods of a sweep.

  Args:
    names: Names of rows, objectives or algorithms of any program. If several programs
      have a name, it means the first one, in the order of the table, in which it is a
      row's own name. PROGRAM:NAME chooses a program; for a product, so does
      PROGRAM:ALGORITHM:OBJECTIVE.

  Raises:
    ValueError: If there are no names, one appears twice, or no program has it.
  """
  if not names:
    raise ValueError(
      'There are no methods; there must be at least one, as in fedema,simclr.'
    )
  found = [_member(name) for name in names]
  for k, one in enumerate(found):
    for other in found[:k]:
      if (one.program, one.row) == (other.program, other.row):
        raise ValueError(
          f'methods has {other.name!r} and {one.name!r}, which are the same method.'
        )
  return found


def _member(name: str) -> Member:
  """Finds a method by its name."""
  first, *rest = name.split(SEPARATOR)
  if rest:
    if first not in table.PROGRAMS:
      raise ValueError(
        f'methods has {name!r}; the programs are {", ".join(table.PROGRAMS)}.'
      )
    program = table.PROGRAMS[first]
    rows = list(_rows(program, rest))
    if not rows:
      raise ValueError(
        f'methods has {name!r}; binaries.{first} has {", ".join(_names(program))}.'
      )
    return Member(name, program, rows[0])
  candidates = {
    program.name: rows[0]
    for program in table.PROGRAMS.values()
    if (rows := list(_rows(program, [name])))
  }
  if not candidates:
    every = dict.fromkeys(n for p in table.PROGRAMS.values() for n in _names(p))
    raise ValueError(f'methods has {name!r}; it must be one of {", ".join(every)}.')
  # A stable sort: of two equal programs, the first in the table comes first.
  order = sorted(
    candidates, key=lambda program: name in table.PROGRAMS[program].aliases
  )
  taken, *others = order
  return Member(name, table.PROGRAMS[taken], candidates[taken], tuple(others))


def _rows(program: table.Program, parts: Sequence[str]) -> Iterator[str]:
  """Yields the rows that have these parts, and the default's for all other parts."""
  given = [program.aliases.get(part, part) for part in parts]
  defaults = program.default.split()
  if len(given) == len(defaults):
    candidates = [' '.join(given)]
  elif len(given) == 1:
    candidates = [
      ' '.join([*defaults[:k], given[0], *defaults[k + 1 :]])
      for k in range(len(defaults))
    ]
  else:
    candidates = []
  yield from (row for row in candidates if row in program.methods)


def _names(program: table.Program) -> list[str]:
  """Returns the names of a program's methods: its rows, or their parts."""
  parts = dict.fromkeys(part for row in program.methods for part in row.split())
  return [*parts, *program.aliases]


def jobs(
  found: Sequence[Member],
  seeds: Sequence[int],
  out: pathlib.Path,
  own: Collection[str],
  variation: varying.Variation | None = None,
) -> tuple[list[Job], list[str]]:
  """Returns the runs of a sweep, after all checks that need no data.

  Args:
    found: The methods.
    seeds: The seeds; all methods run with one seed before any runs with the next.
    out: The folder of the runs' folders.
    own: Names of the sweep's own flags.
    variation: Values of flags that each method goes through; None: nothing varies.

  Returns:
    The runs, and a sentence for each flag that not all methods use, or whose defaults
    differ between methods although a comparison should have a single value.

  Raises:
    ValueError: If no method uses a flag, the sweep sets it itself, it is out of range,
      or it differs from the folder's run.
  """
  given = [name for name in common.given() if name not in own]
  for name in given:
    if name in _SET_BY_SWEEP:
      raise ValueError(
        f'--{name} is given; --methods, --seeds and --out say what is run, and flags '
        'that a method does not use are left out.'
      )
  unused = {
    member.name: [name for name in given if name not in _uses(member)]
    for member in found
  }
  for name in given:
    if all(name in names for names in unused.values()):
      raise ValueError(f'--{name} is given, which none of the methods uses.')
  varied = _check_varied(found, given, variation)
  points = variation.points if variation else (None,)
  result = []
  for k, seed in enumerate(seeds):
    for j, point in enumerate(points):
      for member in found:
        folder = out / member.folder
        if variation and point:
          folder /= _file_name(f'{variation.title}={point.name}')
        job = _job(
          member,
          seed,
          folder / f'seed_{seed}',
          unused[member.name],
          given,
          j == k == 0,
          point,
        )
        result.append(
          dataclasses.replace(job, what=variation.title if variation else '')
        )
  return result, [*_tell(unused), *_tell_defaults(result, varied)]


def _check_varied(
  found: Sequence[Member],
  given: Collection[str],
  variation: varying.Variation | None,
) -> tuple[str, ...]:
  """Returns the flags that vary; all methods must use each of them."""
  if variation is None:
    return ()
  for flag in variation.flags:
    if flag in _SET_BY_SWEEP:
      raise ValueError(f'vary has {flag!r}, which --methods and --seeds set.')
    if flag in given:
      raise ValueError(
        f'--{flag} is given, but --vary varies it; leave one of them out.'
      )
    for member in found:
      if flag not in _uses(member):
        raise ValueError(f'vary has {flag!r}, which {member.name} does not use.')
  return variation.flags


def _file_name(text: str) -> str:
  """Returns a text as a folder name that is valid on any system and in any shell."""
  return re.sub(r'[^\w.=,+-]', '-', text)


def _uses(member: Member) -> Collection[str]:
  return choice.uses(member.program.methods[member.row])


def _tell(unused: Mapping[str, Sequence[str]]) -> list[str]:
  """Returns a sentence for each flag that not all methods use."""
  by_flag: dict[str, list[str]] = {}
  for member, names in unused.items():
    for name in names:
      by_flag.setdefault(name, []).append(member)
  return [
    f'--{name} is left out of {", ".join(those)}: not used there.'
    for name, those in by_flag.items()
  ]


def _tell_defaults(wanted: Sequence[Job], varied: Collection[str]) -> list[str]:
  """Returns a sentence for each flag whose defaults make a comparison unfair."""
  found = []
  for flag in _SAME_FOR_ALL:
    by_value: dict[str, dict[str, None]] = {}
    for job in wanted:
      if flag in job.values and flag not in varied:
        value = run_reader.text(job.values[flag])
        by_value.setdefault(value, {})[job.member.name] = None
    if len(by_value) > 1:
      text = '; '.join(
        f'{value} in {", ".join(names)}' for value, names in by_value.items()
      )
      found.append(
        f'--{flag} defaults to {text}: give it, to compare only the methods.'
      )
  return found


def _job(
  member: Member,
  seed: int,
  folder: pathlib.Path,
  unused: Sequence[str],
  given: Sequence[str],
  tell: bool,
  point: varying.Point | None,
) -> Job:
  """Checks the flags of a run, and returns it."""
  own = tuple(flags.FLAGS[name].serialize() for name in given if name not in unused)
  varied = point.values if point else {}
  with common.restored():
    # The sweep's own flags are not the run's.
    for name in set(common.given()) - set(given) | set(unused):
      flags.FLAGS[name].unparse()
    pairs = zip(member.program.choosers, member.row.split(), strict=True)
    set_to = {**dict(pairs), common.SEED.name: seed, common.RUN_DIR.name: str(folder)}
    for name, value in set_to.items():
      flags.FLAGS[name].value, flags.FLAGS[name].present = value, 1
    try:
      for name, text in varied.items():
        _set(name, text)
      # What a run prints about its flags belongs in its own log.
      with contextlib.redirect_stdout(io.StringIO()):
        chosen = choice.read(member.program.name)
      running.check_flags(chosen)
    except ValueError as error:
      raise ValueError(f'{member.name}: {error}') from error
    rounds, values = common.ROUNDS.value, chosen.values()
  if tell:
    print(member.describe(), flush=True)
  own += tuple(f'--{name}={text}' for name, text in varied.items())
  return Job(member, seed, folder, own, rounds, values, point)


def _set(name: str, text: str) -> None:
  """Sets a flag like a command line."""
  flag = flags.FLAGS[name]
  try:
    flag.value, flag.present = flag.parser.parse(text), 1
  except (TypeError, ValueError) as error:
    raise ValueError(f'--vary has {name}={text}: {error}') from error


def run(
  wanted: Sequence[Job],
  at_a_time: int,
  start: job_runner.Start | None = None,
  stream: TextIO | None = None,
) -> list[str]:
  """Runs the unfinished jobs; returns a sentence for each that failed.

  Args:
    wanted: From `jobs`.
    at_a_time: Most jobs at a time.
    start: Starts a command; None: see `job_runner.starting`.
    stream: Where progress is shown; None: stderr.
  """
  return Runner(at_a_time, start, stream).run(wanted)
