"""Budgets of groups of runs: how much each has computed, and which are equal."""

from collections.abc import Mapping, Sequence
import math
import statistics
from typing import NamedTuple

import numpy as np

from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader

# Budgets within this factor count as equal: cohorts differ by chance.
_EQUAL = 1.05


class Settings(NamedTuple):
  """The settings that say whether a comparison is fair.

  Attributes:
    clients: The number of clients in a round.
    share: A share of all clients that may stand in place of the number.
    passes: How often a client goes over its examples; the product of those it has.
    measures: Settings of evaluation that change accuracies under the same name, each
      with the last part of the name that it has beside a number.
    norm: The setting of the layers that normalise.
  """

  clients: str = ''
  share: str = ''
  passes: Sequence[str] = ()
  measures: Mapping[str, str] = {}
  norm: str = ''


NOTHING = Settings()


class Budget(NamedTuple):
  """How much a run has computed; the product of the three numbers is compared."""

  rounds: int
  each_round: int
  passes: int


def find(
  groups: Sequence[run_groups.Group], settings: Settings
) -> tuple[list[list[Budget]], bool]:
  """Returns the budgets of each group, and whether they are of examples, not clients.

  A group has several if its runs have different numbers of rounds; none if neither
  examples nor clients are known.

  Args:
    groups: From `run_groups.group`.
    settings: The settings that are compared.
  """
  runs = [run for group in groups for run in group.counted]
  examples = {id(run): _mean(run, 'examples') for run in runs}
  # Measured numbers say more than a setting.
  measured = all(examples.values())
  found = []
  for group in groups:
    # Cohorts differ by a few examples from seed to seed: their mean counts.
    seeds: dict[tuple[int, int], list[float]] = {}
    for run in group.counted:
      each_round = examples[id(run)] if measured else _clients(run, settings)
      if each_round is not None:
        key = run.last_round, _passes(run, settings)
        seeds.setdefault(key, []).append(each_round)
    found.append(
      [
        Budget(rounds, round(statistics.fmean(numbers)), passes)
        for (rounds, passes), numbers in seeds.items()
      ]
    )
  return found, measured


def are_equal(one: float, other: float) -> bool:
  """Returns whether two products count as equal."""
  return max(one, other) <= _EQUAL * min(one, other)


def peers(
  groups: Sequence[run_groups.Group], settings: Settings = NOTHING
) -> list[int]:
  """Returns a number for each group, the same for those of one budget, norm and data.

  Args:
    groups: From `run_groups.group`.
    settings: The settings that are compared.
  """
  found, _ = find(groups, settings)
  firsts: list[tuple[object, float]] = []
  numbers = []
  for group, own in zip(groups, found, strict=True):
    norm = group.counted[0].settings.get(settings.norm)
    kind = norm, group.differing.get(run_groups.EXAMPLES)
    size = float(max(map(math.prod, own), default=0))
    same = (
      k
      for k, (other, first) in enumerate(firsts)
      if other == kind and are_equal(first, size)
    )
    number = next(same, len(firsts))
    if number == len(firsts):
      firsts.append((kind, size))
    numbers.append(number)
  return numbers


def _mean(run: run_reader.Run, name: str) -> float | None:
  """Returns the mean over rounds of a number that clients report, or None."""
  columns = [each for each in run.metrics if each.rpartition('/')[2] == name]
  values = run.metrics[columns].to_numpy()
  finite = values[np.isfinite(values)]
  return float(np.mean(finite)) if finite.size else None


def _clients(run: run_reader.Run, settings: Settings) -> int | None:
  if run.settings.get(settings.share):
    return None
  clients = run.settings.get(settings.clients)
  return clients if isinstance(clients, int) else None


def _passes(run: run_reader.Run, settings: Settings) -> int:
  """Returns how often a client goes over its examples in a round."""
  numbers = (run.settings.get(name, 1) for name in settings.passes)
  return math.prod(number for number in numbers if isinstance(number, int))
