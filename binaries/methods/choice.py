"""The method that a command line chooses, and the values of the method's flags."""

from collections.abc import Collection, Mapping
import dataclasses
import pathlib
import secrets
import sys
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import dealing
from binaries.flags import evaluation
from binaries.flags import hosts
from binaries.flags import methods
from binaries.flags import own_data
from binaries.flags import own_encoders
from binaries.flags import privacy
from binaries.flags import reading
from binaries.flags import tracking
from binaries.flags import training
from binaries.methods import algorithms
from binaries.methods import objectives
from binaries.methods import table
from tff_ssl.runs import run_config
from tff_ssl.runs.privacy import accounting

# Flags that may change when a run is resumed.
MAY_DIFFER = (
  *common.MAY_DIFFER,
  *evaluation.MAY_DIFFER,
  *hosts.MAY_DIFFER,
  *own_encoders.MAY_DIFFER,
  *tracking.MAY_DIFFER,
)
# Seeds up to the first can be tried; those drawn are int64 above the second.
_GUESSED_BELOW, _DRAWN_ABOVE = 2**48, 2**62
# The modules whose flags every run has, except those that only some methods take.
_OF_EVERY_RUN = (common, dealing, evaluation, own_data, reading, tracking)


@dataclasses.dataclass(frozen=True)
class Choice:
  """The row of the table of methods that a command line chooses.

  Attributes:
    program: The program that offers it.
    name: Name of the row.
    method: The row.
  """

  program: table.Program
  name: str
  method: table.Method

  @property
  def algorithm(self) -> algorithms.Algorithm:
    """The algorithm that minimises the objective."""
    return table.ALGORITHMS[self.method.algorithm]

  @property
  def objective(self) -> objectives.Objective:
    """The objective that is minimised."""
    return table.OBJECTIVES[self.method.objective]

  @property
  def title(self) -> str:
    """The name of a run in tables and on the encoder's card."""
    return self.program.title.format(self.name)

  @property
  def build_personal(self) -> Any:
    """The builder of clients' own models; None if they are not asked for."""
    build = self.method.personal or self.algorithm.personal
    return build if self.program.personal or own_encoders.is_asked_for() else None

  @property
  def label_share(self) -> float | None:
    """Share of the training labels that the method gets; None: it sees no label."""
    if not self.objective.labelled:
      return None
    name = methods.SUPERVISED_LABELS.name
    return methods.SUPERVISED_LABELS.value if name in self.method.flags() else 1.0

  def why_rounds_are_fixed(self) -> str | None:
    """Returns why a run cannot get more rounds than it began with; None if it can."""
    values = self.values()
    for flag in ('server_schedule', 'client_schedule'):
      if values.get(flag) == 'cosine':
        return f'the rate of --{flag}=cosine falls over all rounds'
    if self.objective.scheduled:
      return f'the schedules of {self.method.objective} span all rounds'
    if methods.FEATURE_WEIGHT.name in values:
      return f'the weight --{methods.FEATURE_WEIGHT.name} falls over all rounds'
    if values.get(privacy.AGGREGATION.name) in (privacy.PRIVATE, privacy.DISTRIBUTED):
      return 'its noise follows from a privacy guarantee for all rounds'
    return None

  def may_grow(self) -> tuple[str, ...]:
    """Returns the flags that may have a larger value when a run is resumed."""
    return () if self.why_rounds_are_fixed() else (common.ROUNDS.name,)

  def values(self) -> dict[str, object]:
    """Returns the value of every flag that the run depends on.

    A flag that the method does not use is absent, unless the table has its value.
    """
    known = flags.FLAGS
    fixed = table.fixed(self.method)
    names = {*taken(self.method), *self.program.choosers, *fixed}
    values = {name: known[name].value for name in sorted(names) if name in known}
    for name in common.WHERE_GIVEN:
      if values.get(name, '') is None:
        del values[name]
    if values.get(common.RUNTIME.name) == common.HOSTS:
      # Hosts are workers: a run that used one of them may resume with the other.
      values[common.RUNTIME.name] = common.WORKER
    return values


def read(program: str) -> Choice:
  """Returns the method that the command line chooses, and sets its flags.

  Args:
    program: Name of a program of `table.PROGRAMS`.

  Raises:
    ValueError: If there is no such method, a flag is out of range, or (unless
      `--unused_flags=warn`) the method does not use a flag.
  """
  chosen = _choose(table.PROGRAMS[program])
  _leave_unused(chosen)
  _rename(chosen.method.renamed)
  values = table.values(chosen.program, chosen.method)
  common.fill({**values, **common.of_task(values)})
  training.settle()
  privacy.settle()
  _settle_seed()
  hosts.settle()
  if chosen.method.alias:
    print(f'{chosen.name} is {chosen.method.alias}', flush=True)
  chosen.program.check()
  chosen.algorithm.check()
  privacy.check(chosen.algorithm.rows_of_one_client)
  if set(own_encoders.NAMES) & taken(chosen.method):
    own_encoders.check()
  tracking.check()
  return chosen


def _settle_seed() -> None:
  """Draws the seed where cohorts must be secret, unless it is given or the run's.

  Everybody knows the default, and with it all cohorts.
  """
  if not (privacy.is_private() and privacy.is_amplified()):
    return
  seed = flags.FLAGS[common.SEED.name]
  folder = pathlib.Path(common.RUN_DIR.value or '.')
  if common.RUN_DIR.value and (folder / run_config.NAME).is_file():
    known = run_config.read(folder)['flags']
    common.fill({name: known[name] for name in (common.SEED.name,) if name in known})
  elif not seed.present:
    seed.value = _DRAWN_ABOVE + secrets.randbelow(_DRAWN_ABOVE)
  elif is_guessed(seed.value):
    print(
      f'Warning: --seed={seed.value} can be guessed, and tells who was in which '
      'cohort; epsilon holds only where nobody does: leave --seed out, and one is '
      f'drawn, or take --{privacy.COHORTS.name}={accounting.PASSES}.',
      file=sys.stderr,
      flush=True,
    )


def is_guessed(seed: int) -> bool:
  """Returns whether all seeds up to this one can be tried, one after the other."""
  return seed < _GUESSED_BELOW


def flags_of(program: str) -> set[str]:
  """Returns the flags that a program's methods take, and the flags that name them.

  Args:
    program: Name of a program of `table.PROGRAMS`.
  """
  offered = table.PROGRAMS[program]
  names = {*offered.choosers, methods.UNUSED_FLAGS.name}
  return names.union(*map(uses, offered.methods.values()))


def _choose(program: table.Program) -> Choice:
  """Finds the row that the flags name, and sets the flags to the row's own names."""
  parts = []
  defaults = program.default.split()
  for k, (chooser, default) in enumerate(zip(program.choosers, defaults, strict=True)):
    flag = flags.FLAGS[chooser]
    given = flag.value if flag.present else default
    value = program.aliases.get(given, given)
    names = list(dict.fromkeys(name.split()[k] for name in program.methods))
    if value not in names:
      raise ValueError(
        f'{chooser} is {given!r}; binaries.{program.name} has '
        f'{", ".join((*names, *program.aliases))}.'
      )
    if value != given:
      print(f'--{chooser}={given} is --{chooser}={value}', flush=True)
    flag.value = value
    parts.append(value)
  name = ' '.join(parts)
  if name not in program.methods:
    *first, last = parts
    fitting = [row.split()[-1] for row in program.methods if row.split()[:-1] == first]
    chooser = program.choosers[-1]
    raise ValueError(
      f'{chooser} is {last!r}; with --{program.choosers[0]}={first[0]} '
      f'binaries.{program.name} has {", ".join(fitting)}.'
    )
  return Choice(program, name, program.methods[name])


def _of_every_run() -> set[str]:
  """Returns the flags of every run, except those that only some methods take."""
  own = flags.FLAGS.flags_by_module_dict()
  names = {flag.name for module in _OF_EVERY_RUN for flag in own[module.__name__]}
  some = {*algorithms.OF_SOME, *objectives.OF_SOME}
  return names - some


def taken(method: table.Method) -> set[str]:
  """Returns the flags that a method's run depends on, except those that name it."""
  return _of_every_run() | set(method.flags()) - set(method.renamed)


def _leave_unused(chosen: Choice) -> None:
  """Refuses flags that the method does not use, or warns and ignores them."""
  other = [
    name
    for name in methods.CHOOSERS
    if name not in chosen.program.choosers and flags.FLAGS[name].present
  ]
  if other:
    raise ValueError(
      f'--{other[0]} is given, but binaries.{chosen.program.name} does not have it; '
      f'there --{chosen.program.choosers[0]} chooses what is run.'
    )
  used = {*uses(chosen.method), *chosen.program.choosers, methods.UNUSED_FLAGS.name}
  unused = [name for name in common.given() if name not in used]
  if not unused:
    return
  if methods.UNUSED_FLAGS.value == 'error':
    raise ValueError(_refusal(chosen, unused[0]))
  for name in unused:
    flags.FLAGS[name].unparse()
  print(
    f'Warning: {", ".join(f"--{name}" for name in unused)} left out: '
    f'{_named(chosen)} does not use {"it" if len(unused) == 1 else "them"}.',
    file=sys.stderr,
    flush=True,
  )


def _named(chosen: Choice) -> str:
  """Returns the flags that name the method, as on a command line."""
  return ' '.join(
    f'--{chooser}={flags.FLAGS[chooser].value}' for chooser in chosen.program.choosers
  )


def _refusal(chosen: Choice, name: str) -> str:
  """Returns the error for a flag that the method does not use."""
  program = chosen.program
  takers = [row for row, method in program.methods.items() if name in uses(method)]
  if not takers:
    others = [
      program.name
      for program in table.PROGRAMS.values()
      if any(name in uses(method) for method in program.methods.values())
    ]
    where = ' and '.join(f'binaries.{other}' for other in others) or 'another program'
    return f'--{name} is given with {_named(chosen)}; it is for {where} only.'
  # For a product of algorithm and objective: the one that decides by itself, if any.
  for k, chooser in enumerate(program.choosers):
    value = flags.FLAGS[chooser].value
    factors = list(dict.fromkeys(row.split()[k] for row in takers))
    if value not in factors:
      return (
        f'--{name} is given with --{chooser}={value}; it is for '
        f'{", ".join(factors)} only.'
      )
  return f'--{name} is given with {_named(chosen)}; it is for {", ".join(takers)} only.'


def uses(method: table.Method) -> Collection[str]:
  """Returns the flags that a method's run takes, except those that name it."""
  return taken(method) | set(method.renamed)


def _rename(renamed: Mapping[str, str]) -> None:
  """Copies the values of renamed flags to the flags that they stand for."""
  for old, new in renamed.items():
    flag, other = flags.FLAGS[old], flags.FLAGS[new]
    if not flag.present:
      continue
    if other.present:
      raise ValueError(
        f'--{old} and --{new} are both given; they are two names for one flag.'
      )
    other.value, other.present = flag.value, 1
