"""A row of the table of methods, and a program that offers such rows."""

from collections.abc import Callable, Collection, Mapping
import dataclasses
from typing import Any

from binaries.methods import algorithms
from binaries.methods import decentralized_algorithms
from binaries.methods import objectives
from binaries.methods import personal_algorithms
from binaries.methods import server_algorithms

ALGORITHMS: Mapping[str, algorithms.Algorithm] = {
  **algorithms.ALGORITHMS,
  **decentralized_algorithms.ALGORITHMS,
  **personal_algorithms.ALGORITHMS,
  **server_algorithms.ALGORITHMS,
}
OBJECTIVES = objectives.OBJECTIVES


@dataclasses.dataclass(frozen=True)
class Method:
  """A row of the table of methods.

  Attributes:
    algorithm: A name in `ALGORITHMS`.
    objective: A name in `OBJECTIVES`.
    defaults: Values of flags that the command line does not give; for a flag that it
      does not take, its fixed value.
    takes: Flags that it reads, in addition to those of algorithm and objective.
    renamed: Other names of flags that it takes, each with the flag's own name.
    alias: The command of another program that runs the same method, which is printed
      when it runs; None: there is none.
    personal: Like `algorithms.Algorithm.personal`, in place of the algorithm's.
  """

  algorithm: str
  objective: str
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  takes: tuple[str, ...] = ()
  renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)
  alias: str | None = None
  personal: Any = None

  def flags(self) -> Collection[str]:
    """Returns the names of the flags that it takes, without those of every run."""
    return {
      *ALGORITHMS[self.algorithm].takes,
      *OBJECTIVES[self.objective].takes,
      *self.takes,
      *self.renamed,
    }


@dataclasses.dataclass(frozen=True)
class Program:
  """The part of the table that a program offers.

  Attributes:
    name: Name of the program in `binaries`.
    choosers: Flags that name the method: its row, or for a product the algorithm and
      the objective.
    default: The row that is used if no flag names one.
    methods: The rows by name; for a product, by 'ALGORITHM OBJECTIVE'. Rows of two
      programs with the same name are the same.
    aliases: Other names of rows that `choosers` may have.
    defaults: Values of flags in place of those of algorithm and objective.
    title: Name of a run in tables and on the encoder's card, with {} for the row's.
    personal: Whether clients' own encoders are evaluated without being asked for.
    check: Raises ValueError if flags do not fit its experiments.
  """

  name: str
  choosers: tuple[str, ...]
  default: str
  methods: Mapping[str, Method]
  aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  title: str = '{}'
  personal: bool = False
  check: Callable[[], None] = lambda: None


def as_in_fedavg_ssl(algorithm: str, objective: str, **defaults: Any) -> Method:
  """Returns a row that `binaries.fedavg_ssl` also has, under its parts' names."""
  alias = (
    f'binaries.fedavg_ssl --algorithm={algorithm} --objective={objective}, with other '
    'defaults'
  )
  return Method(algorithm, objective, defaults, alias=alias)
