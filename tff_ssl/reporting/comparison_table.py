"""Tables of a comparison: as text for a terminal, and for a document."""

from collections.abc import Sequence
import math

import pandas as pd

from tff_ssl.reporting import comparison
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import tables

_DEVIATION_NOTE = (
  'Mean ± sample deviation over seeds; of one run, over its draws of few labels.'
)


def table(compared: comparison.Comparison, questions: Sequence[str]) -> tables.Table:
  """Returns the table as text: the rows' names, their numbers of runs, the numbers.

  The best accuracies, recalls and ratios of variances (`verdict.RATIO`) are the
  largest among groups of one budget and one norm (`budgets.peers`); of the scores of
  one's own metrics, as these say; costs and losses have no best. Numbers that are
  written the same are all best. Baselines, models chosen by test numbers and the models
  of a single group are not compared.

  Args:
    compared: From `comparison.compare`.
    questions: The numbers to show.

  Returns:
    A number is its mean ± deviation; the deviation of a single run is over its draws of
    few labels, or left out. A model that has none of the numbers has no row, unless it
    is a group's own.
  """
  shown = compared.statistics[compared.statistics['question'].isin(questions)]
  rows = rows_of(compared, questions)
  by_place = {
    (row, question): (mean, deviation, runs)
    for row, question, mean, deviation, runs in shown[
      ['row', 'question', *comparison.MEANS]
    ].itertuples(index=False)
  }
  decimals = {
    question: plain_text.decimals_of([*own['deviation']])
    for question, own in shown.groupby('question')
  }
  lines = []
  for k in rows:
    row = compared.rows[k]
    runs = f'{row.count} ({row.note})' if row.note else str(row.count)
    numbers = (
      _cell(q, row.count, by_place.get((k, q)), decimals.get(q)) for q in questions
    )
    lines.append([row.name, runs, *numbers])
  best = {
    (rows.index(k), column)
    for column, question in enumerate(questions, start=2)
    for k in _best(compared, question)
  }
  titled = (f'{compared.title(q)}{comparison.arrow(q)}' for q in questions)
  names = [comparison.NAME, comparison.RUNS, *titled]
  has_deviation = any('±' in cell for line in lines for cell in line[2:])
  meaning = [_DEVIATION_NOTE] if has_deviation else []
  gone = not_finite(compared, questions, [compared.rows[k].name for k in rows], rows)
  notes = [*compared.legends, *compared.notes, *meaning, *gone]
  return tables.Table(pd.DataFrame(lines, columns=names), best, notes, 2)


def rows_of(compared: comparison.Comparison, questions: Sequence[str]) -> list[int]:
  """Returns the rows that are shown: groups' own, and those with one of the numbers.

  Models that several groups share are last.
  """
  statistics = compared.statistics
  filled = {*statistics[statistics['question'].isin(questions)]['row']}
  return sorted(filled | compared.own, key=lambda k: (compared.rows[k].is_shared, k))


def not_finite(
  compared: comparison.Comparison,
  questions: Sequence[str],
  names: Sequence[str],
  rows: Sequence[int],
) -> list[str]:
  """Returns a note on the runs whose numbers are not finite, if there are any.

  Args:
    compared: From `comparison.compare`.
    questions: The numbers that are shown.
    names: The rows that are shown, in print.
    rows: Their positions.
  """
  named = dict(zip(rows, names, strict=True))
  said = [
    f'{named[row]}, seed {seed} ({compared.title(question)})'
    for row, seed, question, value in compared.values.itertuples(index=False)
    if question in questions and row in named and not math.isfinite(value)
  ]
  return [f'Not finite, and so no mean: {"; ".join(said)}.'] if said else []


def _best(compared: comparison.Comparison, question: str) -> list[int]:
  """Returns the rows with the best mean of a question among their peers."""
  means = {
    k: mean
    for k, mean in compared.means(question).items()
    if not compared.rows[k].is_baseline and not compared.rows[k].is_chosen_by_test
  }
  shown = {k: plain_text.number(question, mean, math.nan) for k, mean in means.items()}
  best = []
  for peers in dict.fromkeys(compared.peers):
    own = [k for k in means if compared.peers[compared.rows[k].group] == peers]
    sign = comparison.sign(question)
    if sign and len({compared.rows[k].group for k in own}) > 1:
      first = max(own, key=lambda k: sign * means[k])
      best += [k for k in own if shown[k] == shown[first]]
  return best


def _cell(
  question: str,
  count: int,
  statistic: tuple[float, float, int] | None,
  decimals: int | None,
) -> str:
  if statistic is None:
    return plain_text.EMPTY
  mean, deviation, runs = statistic
  if not math.isfinite(mean):
    return str(mean)
  text = plain_text.number(question, mean, deviation, decimals)
  return text if runs == count else f'{text} (n={runs})'
