"""Trials of the campaign, by number: how many each group has, and what seeds them."""

import dataclasses
import random

import pytest

# How many trials each group has by default: ten minutes on two cores in all.
_COUNTS = {
  'kills': 6,
  'folders': 4,
  'ledger': 2,
  'disk': 2,
  # Rounds of one run, in each of which an actor is killed.
  'actors': 50,
  # Kills and freezes of each run at sites.
  'sites': 8,
}


@dataclasses.dataclass(frozen=True)
class Trial:
  """One trial, which its name repeats.

  Attributes:
    group: A name in `counts`.
    kind: A kind of the group's trials.
    number: Number of the trial among those of its kind.
  """

  group: str
  kind: str
  number: int

  @property
  def name(self) -> str:
    """The name in pytest's parametrization."""
    return f'{self.kind}-{self.number}'

  def rng(self) -> random.Random:
    """Returns the generator of all choices of the trial, seeded by its name."""
    return random.Random(f'{self.group}:{self.kind}:{self.number}')


def counts(config: pytest.Config) -> dict[str, int]:
  """Returns the number of trials by group, with those of --trials.

  Args:
    config: pytest's configuration.

  Raises:
    pytest.UsageError: If --trials is malformed.
  """
  changed = dict(_COUNTS)
  # The option is registered where pytest is started with this folder.
  for pair in filter(None, config.getoption('--trials', '').split(',')):
    group, _, count = pair.partition('=')
    if group not in _COUNTS or not count.isdecimal():
      raise pytest.UsageError(
        f'--trials has {pair!r}; it must be GROUP=COUNT, as in kills=300; groups are '
        f'{", ".join(_COUNTS)}.'
      )
    changed[group] = int(count)
  return changed
