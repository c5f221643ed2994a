"""Quantities of groups of runs over the rounds: mean and deviation over seeds."""

from collections.abc import Callable, Collection, Iterator, Sequence
import dataclasses
from typing import Literal

import numpy as np
import pandas as pd

from tff_ssl.evaluation import method_names
from tff_ssl.reporting import best_round
from tff_ssl.reporting import comparison
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader

# The kinds of curves, in the order of the panels.
KINDS = ('accuracy', 'knn', 'loss', 'spread', 'bytes', 'seconds')


@dataclasses.dataclass(frozen=True)
class Quantity:
  """What one panel shows.

  Attributes:
    title: In words, with the unit.
    of_run: Returns the quantity of a run by round; empty if the run has none.
    axis: What the vertical axis shows.
  """

  title: str
  of_run: Callable[[run_reader.Run], pd.Series]
  axis: Literal['any', 'share', 'bytes', 'times'] = 'any'


def quantities(
  groups: Sequence[run_groups.Group],
  names: Sequence[str],
  every_accuracy: bool = False,
  kinds: Collection[str] = KINDS,
  label_free: Collection[str] = (),
) -> list[Quantity]:
  """Returns the quantities of these runs that can be drawn.

  Args:
    groups: From `run_groups.group`.
    names: The questions of the table, from `comparison.choose`.
    every_accuracy: Whether each accuracy among them has a panel; otherwise only the
      most informative has: one that most runs have, linear, with the most labels; and
      of each score of one's own metrics the one with the most labels.
    kinds: The members of `KINDS` that are wanted.
    label_free: Questions that do not depend on their labels.
  """
  runs = [run for group in groups for run in group.counted]
  scored = _accuracies(runs, names)
  if not every_accuracy:
    own = filter(method_names.is_own, scored)
    by_score = {run_numbers.without_labels(name): name for name in reversed([*own])}
    scored = [n for n in scored if n == scored[0] or n in by_score.values()]
  accuracies = [
    Quantity(
      _score_title(name, name in label_free),
      _answers(name),
      'share' if plain_text.is_share(name) else 'any',
    )
    for name in scored
  ]
  online = [
    Quantity(
      f'{split} accuracy, kNN of a few examples',
      _column(start + run_numbers.ONLINE_KNN),
      'share',
    )
    for split, start in (('test', ''), ('validation', best_round.VALIDATION))
  ]
  by_kind = (
    accuracies,
    online,
    list(_losses(runs)),
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
  return [each for each in wanted if any(len(each.of_run(run)) for run in runs)]


def series(group: run_groups.Group, quantity: Quantity) -> pd.DataFrame:
  """Returns a quantity over a group's runs by round; of each round, the runs it has.

  Args:
    group: The group.
    quantity: The quantity.

  Returns:
    Columns mean and deviation, which is 0 for one run; no rows if the group has none.
  """
  columns = [quantity.of_run(run) for run in group.counted]
  # Blanks are left out, and so are losses that are not finite.
  every = pd.concat(columns, axis=1).sort_index().replace([np.inf, -np.inf], np.nan)
  every = every.dropna(how='all')
  deviation = every.std(axis=1).fillna(0.0)
  return pd.DataFrame({'mean': every.mean(axis=1), 'deviation': deviation})


def _losses(runs: Sequence[run_reader.Run]) -> Iterator[Quantity]:
  """Yields the loss of each objective: losses of several cannot be compared."""
  objectives = dict.fromkeys(run.loss for run in runs)
  for objective in objectives:
    of = f' of {objective}' if len(objectives) > 1 else ''
    yield Quantity(f'training loss{of}', _loss_of(objective))


def _loss_of(objective: str) -> Callable[[run_reader.Run], pd.Series]:
  column = _column(run_numbers.LOSS)
  return lambda run: column(run) if run.loss == objective else run_numbers.NOTHING


def _column(name: str) -> Callable[[run_reader.Run], pd.Series]:
  return lambda run: run_numbers.by_round(run.metrics, name)


def _answers(question: str) -> Callable[[run_reader.Run], pd.Series]:
  return lambda run: run_numbers.by_round(run.metrics, _name(run, question))


def _name(run: run_reader.Run, question: str) -> str:
  """Returns the name under which a run's own encoder answers a question; or itself."""
  own = (each for each in run_numbers.numbers(run) if each.model == run_numbers.OWN)
  return next((each.full for each in own if each.question == question), question)


def _score_title(name: str, is_label_free: bool) -> str:
  split = 'validation' if best_round.is_of_validation(name) else 'test'
  shown = run_numbers.without_labels(name) if is_label_free else name
  title = plain_text.title(shown.removeprefix(best_round.VALIDATION))
  title += comparison.arrow(name)
  is_accuracy = name.endswith(method_names.SCORES)
  return f'{split}{" accuracy" if is_accuracy else ""}, {title}'


def _cumulative_bytes(run: run_reader.Run) -> pd.Series:
  return run_numbers.bytes_by_round(run).cumsum()


def _seconds(run: run_reader.Run) -> pd.Series:
  return run_numbers.by_round(run.system, run_numbers.SECONDS)


def _accuracies(runs: Sequence[run_reader.Run], names: Sequence[str]) -> list[str]:
  """Returns the accuracies that metrics.csv has, the most informative first."""

  def worth(name: str) -> tuple[int, bool, float]:
    return (
      sum(_name(run, name) in run.metrics for run in runs),
      name.startswith('linear/'),
      run_numbers.labels_of(name),
    )

  accuracies = [name for name in names if method_names.way(name)]
  return sorted(
    filter(lambda name: worth(name)[0], accuracies), key=worth, reverse=True
  )
