"""Comparison of groups of runs: mean and deviation over seeds of all their numbers."""

from collections.abc import Mapping, Sequence
import dataclasses
import fnmatch
import math
import os

import pandas as pd

from tff_ssl.computing import inert
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import best_round
from tff_ssl.reporting import budgets
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import verdict
from tff_ssl.storage import files

NAME, RUNS = 'method', 'runs'
# Shown last, in this order, after the evaluation.
_TITLES = {
  run_numbers.LOSS: 'final loss',
  run_numbers.BYTES: 'bytes in all',
  run_numbers.SECONDS: 'seconds a round',
  best_round.ROUND: 'best round',
}
_DEVIATION = f'/{label_draws.DEVIATION}'
# Prefix of a single cluster's numbers; their mean and the best are rows of their own.
_OF_A_CLUSTER = 'clusters/cluster_'
_RECALL = 'recall'
# If classes are of about the same size, the two accuracies differ by less.
_LEAST_DIFFERENCE = 0.01
_BY_TEST = '*'
_BY_TEST_NOTE = (
  f'{_BY_TEST} The best by these test examples themselves, which is too high: with a '
  'validation split it would be chosen by that.'
)
MEANS = ['mean', 'deviation', RUNS]
_LESS = ' ↓'


@dataclasses.dataclass(frozen=True)
class Row:
  """A row of a comparison: a model of a group.

  Attributes:
    name: The group's name, with a model that is not the run's own after a colon.
    count: Number of runs.
    note: A note on runs that have not finished; otherwise empty.
    group: Position of the group.
    is_baseline: Whether the model is one that the group is compared with.
    is_chosen_by_test: Whether the model was chosen by the numbers of the row.
    model: The model's title; empty: the group's own.
    is_shared: Whether the model is the same for several groups.
  """

  name: str
  count: int
  note: str
  group: int
  is_baseline: bool
  is_chosen_by_test: bool
  model: str = ''
  is_shared: bool = False

  def named(self, group: str) -> str:
    """Returns the name of the row where its group has this one."""
    if not self.model or self.is_shared:
      return self.model or group
    return f'{group}: {self.model}{f" {_BY_TEST}" if self.is_chosen_by_test else ""}'


@dataclasses.dataclass(frozen=True)
class Comparison:
  """The numbers of groups.

  Attributes:
    rows: A row for each model of each group.
    statistics: Columns `row` (position in `rows`), `number` (name in evaluation.json),
      `name` (without the model), `question`, `mean` (NaN if a run's number is NaN),
      `deviation` (sample standard deviation, divisor count - 1; of one run, that over
      its draws of few labels; NaN if there is none) and `runs`.
    values: The numbers that are averaged: columns `row`, `seed`, `question`, `value`.
    notes: What signs in the names mean, one line each.
    legends: What numbers in the names mean, one line each.
    peers: A number for each group, the same for those that are compared
      (`budgets.peers`).
    is_one_loss: Whether all losses are of one objective, and so can be compared.
    classes: Names of the classes, if all runs have the same.
    positive: Of two classes, the number of the one whose recall is the sensitivity.
    label_free: Question -> the question with other labels that it repeats, or itself,
      of metrics of one's own that have the same numbers whatever the labels.
  """

  rows: Sequence[Row]
  statistics: pd.DataFrame
  values: pd.DataFrame
  notes: Sequence[str]
  legends: Sequence[str]
  peers: Sequence[int]
  is_one_loss: bool
  classes: Sequence[str] = ()
  positive: int = 1
  label_free: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def own(self) -> set[int]:
    """The positions of the groups' own rows."""
    first: dict[int, int] = {}
    for k, row in enumerate(self.rows):
      first.setdefault(row.group, k)
    return {*first.values()}

  @property
  def questions(self) -> list[str]:
    """All questions: first those that several groups answer, evaluation before cost."""
    table = self.statistics
    groups = table['row'].map(lambda row: self.rows[row].group)
    counts = groups.groupby(table['question'], sort=False).nunique()
    last = list(_TITLES)

    def order(question: str) -> tuple[bool, int, int]:
      place = last.index(question) if question in last else -1
      return counts[question] < min(2, groups.nunique()), place, -counts[question]

    return sorted(counts.index, key=order)

  def title(self, question: str) -> str:
    """Returns a question in print, with the name of its class if it has one."""
    if question in self.label_free:
      return title(run_numbers.without_labels(question))
    head, _, last = question.rpartition('/')
    name = plain_text.class_name(question, last, self.classes)
    is_recall = head.endswith(f'/{_RECALL}')
    return f'{title(head)} {name}' if name and is_recall else title(question)

  def means(self, question: str) -> pd.Series:
    """Returns the finite means of a question by row."""
    table = self.statistics[self.statistics['question'] == question]
    means = table.drop_duplicates('row').set_index('row')['mean']
    return means[means.map(math.isfinite)]


def over_seeds(lines: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
  """Returns mean, sample deviation and count of the lines with the same keys."""
  # A run that diverged must not vanish from the mean. Infinity has no deviation.
  values = lines.groupby(list(keys), sort=False)['value']
  found = values.agg(
    [
      lambda v: v.mean(skipna=False),
      lambda v: v.replace(math.inf, math.nan).std(skipna=False),
      'size',
    ]
  )
  found.columns = MEANS
  return found.reset_index()


def compare(
  groups: Sequence[run_groups.Group],
  settings: budgets.Settings = budgets.NOTHING,
  positive: str | None = None,
) -> Comparison:
  """Compares groups.

  Args:
    groups: From `run_groups.group`.
    settings: The settings that say which groups have one budget.
    positive: The name of `Comparison.positive`; None: the second class.

  Raises:
    ValueError: The runs have no such class among two.
  """
  classes = run_groups.classes(groups)
  if positive is not None and (len(classes) != 2 or positive not in classes):
    raise ValueError(
      f'positive is {positive!r}; it must be one of two classes, and those of the runs '
      f'are {", ".join(classes) or "not known, or not the same"}.'
    )
  rows: list[Row] = []
  lines = []
  of_baselines: dict[int, dict[tuple[int, str], float]] = {}
  for k, group in enumerate(groups):
    found = [list(run_numbers.numbers(run)) for run in group.counted]
    for model in (run_numbers.OWN, *run_numbers.MODELS):
      own = [
        (n, run.seed, each)
        for n, (run, numbers) in enumerate(zip(group.counted, found, strict=True))
        for each in numbers
        if each.model == model
      ]
      if model in run_numbers.BASELINES and own:
        values = {(n, each.full): each.value for n, _, each in own}
        if (row := run_numbers.same(of_baselines, values)) is not None:
          title = run_numbers.MODELS[model]
          rows[row] = dataclasses.replace(rows[row], name=title, is_shared=True)
          lines += [
            (row, seed, *each)
            for n, seed, each in own
            if (n, each.full) not in of_baselines[row]
          ]
          of_baselines[row] |= values
          continue
        of_baselines[len(rows)] = values
      if own or not model:
        lines += [(len(rows), seed, *each) for _, seed, each in own]
        rows.append(_row(group, k, model, len({n for n, *_ in own})))
  columns = ['row', 'seed', 'model', 'number', 'name', 'question', 'value']
  every = pd.DataFrame(lines, columns=columns)
  notes = [_BY_TEST_NOTE] if any(row.is_chosen_by_test for row in rows) else []
  return Comparison(
    rows,
    _statistics(every),
    every[['row', 'seed', 'question', 'value']],
    notes,
    [group.legend for group in groups if group.legend],
    budgets.peers(groups, settings),
    len({run.loss for group in groups for run in group.counted}) < 2,
    classes,
    1 if positive is None else classes.index(positive),
    run_numbers.label_free(every),
  )


def _statistics(every: pd.DataFrame) -> pd.DataFrame:
  """Returns the `statistics` of a comparison from the numbers of all runs."""
  keys = ['row', 'number']
  names = every.drop_duplicates(keys)[[*keys, 'name', 'question']]
  table = names.merge(over_seeds(every, keys), on=keys)
  means = table.set_index(keys)['mean']
  of_draws = [
    means.get((row, f'{number}{_DEVIATION}'), math.nan)
    for row, number in zip(table['row'], table['number'], strict=True)
  ]
  table['deviation'] = table['deviation'].where(table[RUNS] > 1, of_draws)
  return table


def _row(group: run_groups.Group, position: int, model: str, count: int) -> Row:
  if not model:
    return Row(group.name, len(group.counted), group.note, position, False, False)
  by_test = any(run_numbers.is_chosen_by_test(run, model) for run in group.counted)
  is_baseline = model in run_numbers.BASELINES
  row = Row('', count, '', position, is_baseline, by_test, run_numbers.MODELS[model])
  return dataclasses.replace(row, name=row.named(group.name))


def title(question: str) -> str:
  """Returns a question in print: 'linear 145 labels' for linear/145 labels/accuracy."""
  return _TITLES.get(question) or plain_text.title(question)


def choose(compared: Comparison, patterns: Sequence[str] = ()) -> list[str]:
  """Chooses the numbers to show.

  Args:
    compared: From `compare`.
    patterns: Names, or shell patterns such as 'linear/*', of numbers or questions;
      without any, all accuracies (balanced ones if they differ from plain ones), scores
      of one's own metrics, recall at 1 of retrieval, or, where nothing is labelled, the
      signals that decide `verdict.traffic_light`; the loss if all are of one objective,
      and the cost of training. Recalls of classes, deviations, intervals, confusions,
      numbers of single clusters, and numbers of a validation split are shown only if a
      pattern names them.

  Returns:
    The questions: evaluation first, and those that more groups answer.

  Raises:
    ValueError: A pattern matches no number.
  """
  questions = compared.questions
  usual = [q for q in questions if _is_usual(compared, q)]
  if not any(map(plain_text.is_share, usual)):
    usual = [q for q in questions if q in usual or q in verdict.DECIDING]
  table = compared.statistics
  chosen = set()
  for pattern in patterns:
    matches = {
      question
      for name in ('number', 'question')
      for text, question in zip(table[name], table['question'], strict=True)
      if fnmatch.fnmatchcase(text, pattern)
      and (_RECALL in pattern or _RECALL not in text.split('/'))
      and (label_draws.DEVIATION in pattern or not text.endswith(_DEVIATION))
      and (intervals.is_detail(pattern) or not intervals.is_detail(text))
      and (
        best_round.is_of_validation(pattern) or not best_round.is_of_validation(text)
      )
    }
    if not matches:
      raise ValueError(
        f'metric is {pattern!r}, which none of the numbers matches; among them are '
        f'{", ".join(usual or questions)}.'
      )
    chosen |= matches
  asked = [q for q in questions if q in chosen] if patterns else usual
  # What does not depend on labels is shown once.
  by_number = {compared.label_free.get(q, q): q for q in reversed(asked)}
  return [q for q in asked if q in by_number.values()]


def ordered(compared: Comparison, name: str) -> list[int]:
  """Returns the positions of the groups, the best first; those without it last.

  Args:
    compared: From `compare`.
    name: A number or a question, or its title.

  Raises:
    ValueError: If there is no such number.
  """
  statistics = compared.statistics
  pairs = zip(statistics['number'], statistics['question'], strict=True)
  name = name.removesuffix(_LESS)
  own = [q for number, q in pairs if name in (number, q, compared.title(q))]
  if not own:
    usual = [q for q in compared.questions if _is_usual(compared, q)]
    raise ValueError(
      f'sort_by is {name!r}; the numbers are {", ".join(usual or compared.questions)}.'
    )
  # A loss or a cost is better if smaller, too.
  factor = sign(own[0]) or -1
  means = compared.means(own[0])
  worth: dict[int, float] = {}
  for k, row in enumerate(compared.rows):
    if k in means and not row.is_baseline:
      worth.setdefault(row.group, -factor * means[k])
  groups = dict.fromkeys(row.group for row in compared.rows)
  return sorted(groups, key=lambda group: worth.get(group, math.inf))


def write_csv(path: str | os.PathLike[str], compared: Comparison) -> None:
  """Writes one line for each row and number, with all digits.

  Args:
    path: The file, made or replaced.
    compared: From `compare`.
  """
  lines = compared.statistics.copy()
  lines.insert(0, NAME, [compared.rows[row].name for row in lines['row']])
  write_lines(path, lines[[NAME, 'number', 'question', *MEANS]])


def write_lines(path: str | os.PathLike[str], lines: pd.DataFrame) -> None:
  """Writes a CSV file of inert cells: numbers with all digits, blank if NaN."""
  shown = lines.copy()
  shown.columns = [*map(inert.cell, lines)]
  for position, dtype in enumerate(lines.dtypes):
    if pd.api.types.is_object_dtype(dtype):
      shown.isetitem(position, lines.iloc[:, position].map(inert.cell))
  files.write(path, shown.to_csv(index=False, lineterminator='\n'))


def sign(question: str) -> int:
  """Returns 1 if more of a number is better, -1 if less is; 0 for a cost or a loss."""
  if of_score := method_names.sign(question):
    return of_score
  if plain_text.is_share(question):
    # The name of their spread over clients or draws is an accuracy's with a suffix.
    return int(not question.endswith(('/std', _DEVIATION)))
  return int(question == verdict.RATIO)


def arrow(question: str) -> str:
  """Returns what the title of a number ends with if less of it is better."""
  return _LESS if sign(question) < 0 else ''


def _is_usual(compared: Comparison, question: str) -> bool:
  head, _, last = question.rpartition('/')
  if best_round.is_of_validation(question) or question.startswith(_OF_A_CLUSTER):
    return False
  if question == run_numbers.LOSS:
    return compared.is_one_loss
  if last != method_names.BALANCED:
    is_score = method_names.way(question) is not None
    return is_score or last == f'{plain_text.RECALL_AT}1' or question in _TITLES
  balanced = compared.means(question)
  plain = compared.means(f'{head}/{method_names.ACCURACY}')
  return any(
    k not in plain or abs(mean - plain[k]) > _LEAST_DIFFERENCE
    for k, mean in balanced.items()
  )
