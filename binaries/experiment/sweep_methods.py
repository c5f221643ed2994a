"""The methods of a sweep: which rows of which programs their names mean."""

from collections.abc import Iterator, Sequence
import dataclasses

from binaries.config import programs
from tff_ssl.computing import near_names

# Separates a program, a method and an objective, as in fedavg_ssl:fedprox:byol.
SEPARATOR = ':'


# Compared by identity, because a program holds mappings, which have no hash.
@dataclasses.dataclass(frozen=True, eq=False)
class Member:
  """A method of a sweep: a row of a program.

  Attributes:
    name: The name on the command line, after which the folder of its runs is named.
    program: The program that offers it.
    method: The name of its method.
    objective: The name of its objective.
    others: Other programs that offer something under this name.
  """

  name: str
  program: programs.Program
  method: str
  objective: str
  others: tuple[str, ...] = ()

  @property
  def row(self) -> tuple[str, str, str]:
    """The program, the method and the objective, which no two members share."""
    return self.program.name, self.method, self.objective

  @property
  def chosen(self) -> tuple[tuple[str, str], ...]:
    """The flags that name the row, with their values."""
    return ('method', self.method), ('objective', self.objective)

  def describe(self) -> str:
    """Returns the method as a command line, and the other methods of its name."""
    flags = ' '.join(f'--{flag}={value}' for flag, value in self.chosen)
    text = f'{self.name} is binaries.{self.program.name} {flags}'
    also = ', '.join(f'{other}{SEPARATOR}{self.name}' for other in self.others)
    return f'{text} (there is also {also})' if also else text


def members(names: Sequence[str]) -> list[Member]:
  """Returns the methods of a sweep.

  Args:
    names: Each METHOD, METHOD:OBJECTIVE or OBJECTIVE, and possibly PROGRAM: before it.
      A method's objective is its own if none is named; an objective's method is the
      first of its program. If several programs offer a name, it means the first one
      whose own first method it is, and otherwise the first one.

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
      if one.row == other.row:
        raise ValueError(
          f'methods has {other.name!r} and {one.name!r}, which are the same method.'
        )
  return found


def _member(name: str) -> Member:
  """Finds a method by its name."""
  if '=' in name:
    raise ValueError(
      f'methods has {name!r}; it must be a name alone, and --method=FIELD=VALUE sets '
      'a field of all methods that have it.'
    )
  offered = _offered(programs.NAMES, name)
  program, inner, rest = name.partition(SEPARATOR)
  if not offered and inner and program in programs.NAMES:
    offered = _offered((program,), rest)
    if not offered:
      names = _names(programs.load(program))
      raise ValueError(
        f'methods has {name!r}; binaries.{program} has '
        f'{", ".join(names)}.{near_names.question(rest, names)}'
      )
  if not offered:
    every = dict.fromkeys(n for p in programs.NAMES for n in _names(programs.load(p)))
    raise ValueError(
      f'methods has {name!r}; it must be METHOD, METHOD:OBJECTIVE or OBJECTIVE, '
      f'possibly with PROGRAM: before it, of {", ".join(every)}.'
      f'{near_names.question(name, every, may_be_own=True)}'
    )
  # A stable sort: of two equal programs, the first one comes first.
  offered.sort(key=lambda each: each.method != next(iter(each.program.rows)))
  first, *others = offered
  return dataclasses.replace(
    first, name=name, others=tuple(each.program.name for each in others)
  )


def _offered(of: Sequence[str], name: str) -> list[Member]:
  """Returns the row that each of some programs offers under a name, if any."""
  found = ((programs.load(each), name.split(SEPARATOR)) for each in of)
  return [
    Member(name, program, *row)
    for program, parts in found
    for row in _rows(program, parts)
  ]


def _rows(program: programs.Program, parts: Sequence[str]) -> Iterator[tuple[str, str]]:
  """Yields the method and the objective that parts of a name mean, if there is one."""
  first, *rest = parts
  if first in program.rows and len(rest) < 2:
    own = program.rows[first]
    objective = rest[0] if rest else next(iter(own))
    if objective in own:
      yield first, objective
  elif first in program.objectives and not rest:
    yield program.row(None, first).method.kind, first


def _names(program: programs.Program) -> list[str]:
  """Returns the names of a program's methods and objectives."""
  return [*dict.fromkeys((*program.rows, *program.objectives))]
