"""A claim of a paper: its runs, the figures that are read of them, what must hold.

A figure is a number of a run, one for each seed. What decides a claim are comparisons:
linear combinations of figures, taken seed by seed, so that the partition and the views
that a seed draws are the same in all.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import hashlib
import json

# Seeds of every claim, by budget: 0 up to, without, this number.
SEEDS = {'digits': 5, 'cifar': 3}
BUDGETS = tuple(SEEDS)
# What a comparison is of, unless a claim says otherwise: a linear probe.
LINEAR = 'linear/10%/accuracy'
KNN = 'knn/10%/accuracy'
# Flags of a run that `untrained` is read of; they cut short the supervised training.
BASELINES = '--baselines --supervised_steps=1'


@dataclasses.dataclass(frozen=True)
class Run:
  """A command, without its seed and folder.

  Attributes:
    name: Short, of one run of a budget alone: it names the folder.
    program: Of `binaries`.
    flags: Such as '--rounds=20', in the order in which they are shown.
  """

  name: str
  program: str
  flags: tuple[str, ...]

  @property
  def key(self) -> str:
    """A short hash of program and flags: a result counts for these alone."""
    text = json.dumps([self.program, *sorted(self.flags)])
    return hashlib.sha256(text.encode()).hexdigest()[:10]

  @property
  def task(self) -> str:
    """The task whose images it learns from."""
    (task,) = [flag for flag in self.flags if flag.startswith('--task=')]
    return task.partition('=')[2]

  def arguments(self, seed: int, folder: str) -> list[str]:
    """Returns what follows `python`, for one seed.

    Args:
      seed: Of everything random.
      folder: Of the run.
    """
    own = ['-m', f'binaries.{self.program}', *self.flags]
    return [*own, f'--seed={seed}', f'--run_dir={folder}']


def run(name: str, program: str, *flags: str) -> Run:
  """Returns a run.

  Args:
    name: Of the run.
    program: Of `binaries`.
    *flags: Texts of flags, separated by spaces; of two with one name the last counts.
  """
  words = ' '.join(flags).split()
  last = {word.partition('=')[0]: word for word in words}
  return Run(name, program, tuple(last.values()))


@dataclasses.dataclass(frozen=True)
class Figure:
  """A number of a run.

  Attributes:
    run: The run.
    column: Of `evaluation.json`, or of the last row of `metrics.csv`. One that begins
      with `transfer/TASK/` is of an evaluation on that task, which follows the run.
  """

  run: Run
  column: str = LINEAR


def untrained(column: str = LINEAR) -> str:
  """Returns the column of the random encoder, which a run with `BASELINES` has.

  Args:
    column: Of the trained one.
  """
  return f'random_encoder/{column}'


def transfer_task(column: str) -> str | None:
  """Returns the task that a column is of, where it is another than the run's.

  Args:
    column: Of a figure.
  """
  parts = column.split('/')
  return parts[1] if parts[0] == 'transfer' else None


@dataclasses.dataclass(frozen=True)
class Comparison:
  """What must hold between figures.

  Attributes:
    terms: Weight of each figure: their sum, a difference, is what is compared.
    margin: Of a difference that must be above 0: how large it must be at least, besides
      two standard errors; of one that must be level: what it must be below.
    level: Whether the difference must be 0, within its error and the margin.
  """

  terms: Mapping[str, float]
  margin: float = 0.0
  level: bool = False


def ahead(better: str, worse: str, by: float = 0.0) -> Comparison:
  """Returns the comparison that holds where one figure is larger than another.

  Args:
    better: Name of the figure that is expected to be larger.
    worse: Name of the other.
    by: Least mean difference.
  """
  return Comparison({better: 1.0, worse: -1.0}, by)


def level(one: str, other: str, within: float) -> Comparison:
  """Returns the comparison that holds where two figures are level.

  Args:
    one: Name of a figure.
    other: Name of another.
    within: The mean difference must be smaller.
  """
  return Comparison({one: 1.0, other: -1.0}, within, level=True)


def wider(larger: tuple[str, str], smaller: tuple[str, str]) -> Comparison:
  """Returns the comparison that holds where one difference is larger than another.

  Args:
    larger: (a, b), of which a - b is expected to be larger.
    smaller: (c, d), of which c - d is the smaller one.
  """
  terms: dict[str, float] = {}
  for weight, name in zip((1.0, -1.0, -1.0, 1.0), (*larger, *smaller), strict=True):
    terms[name] = terms.get(name, 0.0) + weight
  return Comparison(terms)


@dataclasses.dataclass(frozen=True)
class Range:
  """How far apart two bounds must be before the comparisons say anything.

  Attributes:
    upper: Name of the figure that is an upper bound.
    lower: Name of one that is a lower bound.
    least: How far apart their means must be.
  """

  upper: str
  lower: str
  least: float = 0.08


@dataclasses.dataclass(frozen=True)
class Claim:
  """A claim of a paper.

  Attributes:
    id: Such as 'dcco-centralized'.
    paper: Its short name.
    source: The table, figure or section.
    sentence: The claim.
    budget: One of `BUDGETS`.
    figures: What is measured, by the name that the table shows.
    comparisons: All of them must hold.
    range: How far apart its bounds must be.
    cause: Why the verdict is what it is, where that is known.
    percent: Whether the figures are shares, shown as per cent.
  """

  id: str
  paper: str
  source: str
  sentence: str
  budget: str
  figures: Mapping[str, Figure]
  comparisons: tuple[Comparison, ...]
  range: Range
  cause: str = ''
  percent: bool = True

  def __post_init__(self) -> None:
    if self.budget not in BUDGETS:
      raise ValueError(
        f'budget of {self.id} is {self.budget!r}; it must be one of '
        f'{", ".join(BUDGETS)}.'
      )
    named = [name for comparison in self.comparisons for name in comparison.terms]
    named += [self.range.upper, self.range.lower]
    for name in named:
      if name not in self.figures:
        raise ValueError(
          f'The claim {self.id} compares {name!r}; its figures are '
          f'{", ".join(self.figures)}.'
        )
    if not self.comparisons:
      raise ValueError(f'The claim {self.id} has no comparison; it must have one.')

  @property
  def seeds(self) -> int:
    """The number of seeds that decide the claim."""
    return SEEDS[self.budget]

  @property
  def runs(self) -> list[Run]:
    """Its runs, each once."""
    return list(dict.fromkeys(figure.run for figure in self.figures.values()))


def columns(claims: Iterable[Claim]) -> dict[Run, list[str]]:
  """Returns the columns that claims need of each of their runs.

  Args:
    claims: The claims.
  """
  found: dict[Run, list[str]] = {}
  for claim in claims:
    for figure in claim.figures.values():
      own = found.setdefault(figure.run, [])
      if figure.column not in own:
        own.append(figure.column)
  return found
