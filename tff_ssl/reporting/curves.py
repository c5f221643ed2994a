"""Quantities of groups of runs over the rounds: mean and deviation over seeds."""

from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
import math
from typing import Literal

import numpy as np

from tff_ssl.reporting import best_round
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_columns
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader

ByRound = Mapping[int, float]

# The kinds of curves, in the order of the panels.
KINDS = ('accuracy', 'knn', 'loss', 'spread', 'bytes', 'seconds')
# The kNN of a few examples during training, in metrics.csv.
_ONLINE_KNN = 'online_knn/accuracy'


@dataclasses.dataclass(frozen=True)
class Quantity:
  """What one panel shows.

  Attributes:
    title: In words, with the unit.
    of_run: Returns the quantity of a run by round; empty if the run has none.
    axis: What the vertical axis shows.
  """

  title: str
  of_run: Callable[[run_reader.Run], ByRound]
  axis: Literal['any', 'share', 'bytes', 'times'] = 'any'


def quantities(
  groups: Sequence[run_groups.Group],
  names: Sequence[str],
  every_accuracy: bool = False,
  kinds: Collection[str] = KINDS,
) -> list[Quantity]:
  """Returns the quantities of these runs that can be drawn.

  Args:
    groups: From `run_groups.group`.
    names: The numbers of the table, from `comparison_columns.choose`.
    every_accuracy: Whether each accuracy among them has a panel; otherwise only the
      most informative has: one that most runs have, linear, with the most labels.
    kinds: The members of `KINDS` that are wanted.
  """
  runs = [run for group in groups for run in group.counted]
  accuracies = [
    Quantity(_accuracy_title(name), _column(name), 'share')
    for name in _accuracies(runs, names)
  ]
  online = [
    Quantity(
      f'{split} accuracy, kNN of a few examples', _column(start + _ONLINE_KNN), 'share'
    )
    for split, start in (('test', ''), ('validation', best_round.VALIDATION))
  ]
  by_kind = (
    accuracies if every_accuracy else accuracies[:1],
    online,
    [Quantity('training loss', _column(comparison.LOSS))],
    [
      Quantity('spread: standard deviation of encodings', _column('encoding_std')),
      Quantity('spread: effective rank of encodings', _column('effective_rank')),
    ],
    [Quantity('bytes down and up, cumulative', _cumulative_bytes, 'bytes')],
    [Quantity('seconds of a round', _seconds, 'times')],
  )
  wanted = [
    each
    for kind, those in zip(KINDS, by_kind, strict=True)
    if kind in kinds
    for each in those
  ]
  return [each for each in wanted if any(each.of_run(run) for run in runs)]


def series(
  group: run_groups.Group, quantity: Quantity
) -> dict[int, comparison.Statistic]:
  """Returns a quantity over a group's runs by round; of each round, the runs it has."""
  values: dict[int, list[float]] = {}
  for run in group.counted:
    for round, value in quantity.of_run(run).items():
      if math.isfinite(value):
        values.setdefault(round, []).append(value)
  return {round: comparison.statistic(values[round]) for round in sorted(values)}


def _column(name: str) -> Callable[[run_reader.Run], ByRound]:
  return lambda run: comparison.by_round(run.metrics, name)


def _accuracy_title(name: str) -> str:
  split = 'validation' if best_round.is_of_validation(name) else 'test'
  title = comparison_columns.title(name.removeprefix(best_round.VALIDATION))
  return f'{split} accuracy, {title}'


def _cumulative_bytes(run: run_reader.Run) -> ByRound:
  traffic = comparison.bytes_by_round(run)
  return dict(zip(traffic, np.cumsum(list(traffic.values())), strict=True))


def _seconds(run: run_reader.Run) -> ByRound:
  return comparison.by_round(run.system, comparison.SECONDS)


def _accuracies(runs: Sequence[run_reader.Run], names: Sequence[str]) -> list[str]:
  """Returns the accuracies that metrics.csv has, the most informative first."""

  def worth(name: str) -> tuple[int, bool, float]:
    share = next((part for part in name.split('/') if part.endswith('%')), '0%')
    number = share.removesuffix('%')
    return (
      sum(name in run.metrics[0] for run in runs if run.metrics),
      name.startswith('linear/'),
      float(number) if number.replace('.', '', 1).isdigit() else 0.0,
    )

  accuracies = [
    name for name in names if comparison_columns.is_accuracy(name) and worth(name)[0]
  ]
  return sorted(accuracies, key=worth, reverse=True)
