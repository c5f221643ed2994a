"""What a site agrees to: a file that only the site writes.

    fewest_clients = 20          # of each round
    fewest_examples = 100        # of each round
    most_rounds = 500
    methods = ["dcco", "fedavg"]
    aggregations = ["private"]   # only sums of clipped values, which get noise
    masked = true                # only sums that the coordinator cannot read alone
    judging = false              # whether numbers of the site's own may leave

What is not said is not restricted.
"""

import dataclasses
import os
import pathlib
import tomllib
from typing import Any

from tff_ssl.sites import participation
from tff_ssl.storage import files

NAME = 'rules.toml'
_MOST_BYTES = 2**16
_LISTS = ('methods', 'aggregations')


@dataclasses.dataclass(frozen=True)
class Rules:
  """What a site agrees to.

  Attributes:
    fewest_clients: Clients that must take part in each round.
    fewest_examples: Their examples.
    most_rounds: Rounds that a run may have; None: any number.
    methods: Methods that it may have; None: all.
    aggregations: How values of clients may be combined; None: in any way.
    masked: Whether sums must be masked.
    judging: Whether numbers of the site's own examples may leave, to judge by them.
  """

  fewest_clients: int = 1
  fewest_examples: int = 1
  most_rounds: int | None = None
  methods: tuple[str, ...] | None = None
  aggregations: tuple[str, ...] | None = None
  masked: bool = False
  judging: bool = True

  def check_run(self, method: str, aggregation: str, rounds: int, masked: bool) -> None:
    """Refuses a run that the site does not agree to.

    Args:
      method: Its method.
      aggregation: How values of clients are combined.
      rounds: How many it has.
      masked: Whether its sums are masked.

    Raises:
      ValueError: If a rule forbids it.
    """
    for what, own, allowed in (
      ('method', method, self.methods),
      ('aggregation', aggregation, self.aggregations),
    ):
      if allowed is not None and own not in allowed:
        raise ValueError(
          f'The {what} is {own}; by the rules of this site it must be one of '
          f'{", ".join(allowed)}.'
        )
    if self.most_rounds is not None and rounds > self.most_rounds:
      raise ValueError(
        f'The run has {rounds} rounds; by the rules of this site it must have at most '
        f'{self.most_rounds}.'
      )
    if self.masked and not masked:
      raise ValueError('Sums are not masked; by the rules of this site they must be.')

  def check_round(self, clients: int, examples: int) -> None:
    """Refuses a round in which too little of the site takes part.

    Args:
      clients: Its clients in the round.
      examples: Their examples.

    Raises:
      participation.DeclinedError: If a rule forbids it.
    """
    for what, got, fewest in (
      ('clients', clients, self.fewest_clients),
      ('examples', examples, self.fewest_examples),
    ):
      if got < fewest:
        raise participation.DeclinedError(
          f'{got} {what} would take part; by the rules of this site there must be at '
          f'least {fewest}.'
        )


def read(path: str | os.PathLike[str], must_exist: bool = False) -> Rules:
  """Reads a file of rules; without one nothing is restricted.

  Args:
    path: The file.
    must_exist: Whether it is an error if it is missing.

  Raises:
    ValueError: If it is missing, no TOML, or has a rule that there is not, or a value
      of a wrong type.
  """
  path = pathlib.Path(path)
  if not path.exists() and not must_exist:
    return Rules()
  try:
    stored = tomllib.loads(files.read_bytes(path, _MOST_BYTES).decode())
  except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
    raise ValueError(f'{path} is not TOML: {error}.') from error
  fields = {each.name: each for each in dataclasses.fields(Rules)}
  for name, value in stored.items():
    if name not in fields:
      raise ValueError(f'{path} has {name!r}; it must be one of {", ".join(fields)}.')
    if not _fits(name, value):
      raise ValueError(f'{path} has {name} = {value!r}, which is of a wrong type.')
  lists = {name: tuple(stored[name]) for name in _LISTS if name in stored}
  return Rules(**{**stored, **lists})


def _fits(name: str, value: Any) -> bool:
  if name in _LISTS:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
  if name in ('masked', 'judging'):
    return isinstance(value, bool)
  return type(value) is int and value >= 0
