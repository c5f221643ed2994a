"""A comparison for a paper: names that a reader knows, and one table that says all."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses

import pandas as pd

from tff_ssl.computing import kinds
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_table
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import significance
from tff_ssl.reporting import tables
from tff_ssl.reporting import titles
from tff_ssl.reporting import verdict

# More settings have a table of their own.
_MOST_SETTINGS = 3
# Letters of a name with its settings, as in the legend of a figure.
_LONGEST = 40
_PROBES = {
  'knn': 'kNN',
  'lars': 'linear by LARS',
  'one': 'head of one',
  'finetune': 'fine-tuned',
}
# The recalls of two classes: of the other one, and of the positive one.
_OF_TWO = ('specificity', 'sensitivity')
_MEANT = 'Sensitivity is the recall of {}, specificity that of {}.'
_ALSO = (
  ', and those that the paired t-test, corrected by Holm, does not tell from it (p at '
  f'least {significance.LEVEL})'
)
# Settings that the caption calls otherwise than by the last part of their name.
_CALLED = {'clients': "clients' optimizer"}
_SHOWN = 'Mean ± sample deviation'
_DRAWS = f'{_SHOWN} over draws of few labels'


@dataclasses.dataclass(frozen=True)
class Names:
  """How groups are named in a paper.

  Attributes:
    heads: The method of each group, as papers print it.
    settings: The settings that tell the groups apart: a column for each, a row for each
      group.
  """

  heads: Sequence[str]
  settings: pd.DataFrame

  def short(self) -> 'Names':
    """Returns the names without settings that need not tell groups apart."""
    if len({*self.heads}) < len(self.heads):
      return self
    return Names(self.heads, self.settings.iloc[:, :0])

  @property
  def has_columns(self) -> bool:
    """Whether the settings are columns of the table of numbers."""
    return len(self.settings.columns) <= _MOST_SETTINGS

  @property
  def full(self) -> list[str]:
    """A name of its own for each group, short enough for a legend."""
    if len({*self.heads}) == len(self.heads):
      return [*self.heads]
    named = [
      ', '.join([head, *(f'{n} {v}' for n, v in row.items())])
      for head, (_, row) in zip(self.heads, self.settings.iterrows(), strict=True)
    ]
    if max(map(len, named)) <= _LONGEST and len({*named}) == len(named):
      return named
    return [f'{head} [{k}]' for k, head in enumerate(self.heads, start=1)]


def names(groups: Sequence[run_groups.Group], label: Sequence[str] = ()) -> Names:
  """Returns how groups are named.

  Args:
    groups: From `run_groups.group`.
    label: The settings that name them, if a user has chosen them.
  """
  heads = [_head(group, label) for group in groups]
  if len({*heads}) < len(heads):
    # Then the objective is said too.
    heads = [_head(group, ()) for group in groups]
  is_in_head = label and run_reader.METHOD not in label
  names_of = [] if is_in_head else [name for group in groups for name in group.said]
  said = [*dict.fromkeys(names_of)]
  rows = [[group.said.get(name, plain_text.EMPTY) for name in said] for group in groups]
  short = run_groups.short(said)
  titled = [short[name].replace('_', ' ') for name in said]
  return Names(heads, pd.DataFrame(rows, columns=titled, dtype=object))


def renamed(groups: Sequence[run_groups.Group], named: Names) -> list[run_groups.Group]:
  """Returns groups under their names in print, which need no legend."""
  return [
    dataclasses.replace(group, name=name, legend='')
    for group, name in zip(groups, named.full, strict=True)
  ]


def _head(group: run_groups.Group, label: Sequence[str]) -> str:
  settings = group.counted[0].settings
  if label and run_reader.METHOD not in label:
    return group.name
  says = not label or run_reader.OBJECTIVE in label
  objective = settings.get(run_reader.OBJECTIVE) if says else None
  return titles.of_method(
    kinds.value_text(settings.get(run_reader.METHOD) or ''),
    kinds.value_text(objective or ''),
  )


def table(
  groups: Sequence[run_groups.Group],
  compared: comparison.Comparison,
  questions: Sequence[str],
  named: Names,
  common: Sequence[str] = (),
  note: str = '',
  alike: Mapping[str, Sequence[set[int]]] | None = None,
) -> tables.Table:
  """Returns the table of numbers for a document.

  Args:
    groups: From `run_groups.group`.
    compared: From `comparison.compare`.
    questions: The numbers to show.
    named: From `names`.
    common: Settings that the caption says if all runs have the same value.
    note: A line below the table; empty: none.
    alike: The pairs of groups that tests do not tell apart, by number
      (`paper_tests.Tested`).

  Returns:
    Settings in which groups differ are columns, or have a table of their own
    (`settings`); what all rows have in common is in the caption.
  """
  plain = comparison_table.table(compared, questions)
  rows = comparison_table.rows_of(compared, questions)
  shown = [compared.rows[k] for k in rows]
  heads = named.heads if named.has_columns else named.full
  cells = [row.named(heads[row.group]) for row in shown]
  own = pd.DataFrame({comparison.NAME: cells})
  if named.has_columns:
    for position, name in enumerate(named.settings):
      of_group = named.settings.iloc[:, position]
      column = [plain_text.EMPTY if r.is_shared else of_group[r.group] for r in shown]
      own.insert(len(own.columns), name, column, allow_duplicates=True)
  # Settings are repeated where they tell rows apart.
  naming = 1 if len({*cells}) == len(cells) else len(own.columns)
  runs = {*plain.cells[comparison.RUNS]}
  if len(runs) > 1:
    own[comparison.RUNS] = plain.cells[comparison.RUNS]
  numbers = plain.cells.iloc[:, plain.heads :]
  numbers.columns = [title(question, compared) for question in questions]
  moved = len(own.columns) - plain.heads
  also = [
    (rows.index(k), plain.heads + column)
    for column, question in enumerate(questions)
    for k in _as_good(compared, plain, rows, (alike or {}).get(question, ()), column)
  ]
  gone = comparison_table.not_finite(compared, questions, cells, rows)
  return tables.Table(
    pd.concat([own, numbers], axis=1),
    {(row, column + moved) for row, column in (*plain.best, *also)},
    [*compared.notes, *gone, *([note] if note else [])],
    len(own.columns),
    ' '.join(
      [*_common(groups, common), *_meaning(plain, runs), *_of_two(questions, compared)]
    ),
    naming,
    _ALSO if alike else '',
  )


def _as_good(
  compared: comparison.Comparison,
  plain: tables.Table,
  rows: Sequence[int],
  pairs: Iterable[set[int]],
  column: int,
) -> list[int]:
  """Returns the groups' own rows that tests do not tell from the best of a column."""
  own = {compared.rows[k].group: k for k in compared.own}
  best = {rows[row] for row, place in plain.best if place == plain.heads + column}
  return [
    own[other]
    for pair in pairs
    for group in pair
    for other in pair - {group}
    if own[group] in best
  ]


def settings(
  groups: Sequence[run_groups.Group], named: Names | None = None
) -> tables.Table:
  """Returns the settings of the groups; those that are fewer are columns.

  Args:
    groups: From `run_groups.group`.
    named: From `names`: only the settings that tell the groups apart, under these
      names; None: all in which groups differ.
  """
  titled = named.full if named else [group.name for group in groups]
  values = [group.said if named else group.differing for group in groups]
  every = [*dict.fromkeys(name for own in values for name in own)]
  rows = [
    ('setting', *every),
    *(
      (name, *(own.get(each, plain_text.EMPTY) for each in every))
      for name, own in zip(titled, values, strict=True)
    ),
  ]
  if len(every) > len(groups):
    rows = [*zip(*rows, strict=True)]
  header, *cells = rows
  caption = 'Settings in which the methods differ.'
  return tables.Table(pd.DataFrame(cells, columns=header), caption=caption)


def title(question: str, compared: comparison.Comparison) -> str:
  """Returns a question as the head of a column: 'kNN 145 labels'.

  Args:
    question: The question.
    compared: From `comparison.compare`; if there are two classes, their recalls are
      sensitivity and specificity.
  """
  head, _, last = question.rpartition('/')
  is_of_two = _is_of_two(question, compared)
  said = comparison.title(head) if is_of_two else compared.title(question)
  first, space, rest = said.partition(' ')
  text = f'{_PROBES.get(first, first)}{space}{rest}'.replace(' auc', ' AUC')
  text += comparison.arrow(question)
  if not is_of_two:
    return text
  return f'{text.removesuffix(" recall")} {_OF_TWO[int(last) == compared.positive]}'


def _is_of_two(question: str, compared: comparison.Comparison) -> bool:
  """Returns whether a number is the recall of one of two classes."""
  parts = [each.rpartition('/') for each in compared.questions]
  classes = {last for start, _, last in parts if start.endswith('/recall')}
  return '/recall/' in question and classes == {'0', '1'}


def _common(groups: Sequence[run_groups.Group], wanted: Sequence[str]) -> list[str]:
  """Returns the sentence on the settings that all runs share."""
  runs = [run for group in groups for run in group.counted]
  said = []
  for name in wanted:
    values = {kinds.value_text(run.settings.get(name)) for run in runs}
    if len(values) == 1 and runs[0].settings.get(name) not in (None, False):
      called = _CALLED.get(name, name.rpartition('.')[2].replace('_', ' '))
      said.append(f'{called} {values.pop()}')
  if wanted:
    measured = {_measured(run.evaluation) for run in runs}
    said += [each for each in (measured.pop() if len(measured) == 1 else ()) if each]
  return [f'Common to all: {", ".join(said)}.'] if said else []


def _measured(numbers: Mapping[str, float]) -> tuple[str, str]:
  """Returns how often few labels were drawn, and the number of test examples."""
  drawn = f'{label_draws.NUMBER}/'
  often = max((n for name, n in numbers.items() if name.startswith(drawn)), default=0)
  # Of any probe of the run's own encoder: each matrix has all test examples.
  tested = next(
    (
      sum(matrix.values())
      for probe, matrix in verdict.matrices(numbers).items()
      if probe.partition('/')[0] in method_names.METHODS
    ),
    0,
  )
  return (
    f'{often:.0f} draws of few labels' if often > 1 else '',
    f'{tested:,.0f} test examples' if tested else '',
  )


def _meaning(plain: tables.Table, runs: set[str]) -> list[str]:
  """Returns what the numbers are, and over how many runs."""
  if not any('±' in cell for cell in plain.cells.to_numpy()[:, plain.heads :].flat):
    return []
  if len(runs) > 1:
    return [f'{_SHOWN} over runs of different seeds; of one run, over draws of labels.']
  count = next(iter(runs))
  return [f'{_DRAWS}.' if count == '1' else f'{_SHOWN} over {count} seeds.']


def _of_two(questions: Sequence[str], compared: comparison.Comparison) -> Iterable[str]:
  """Returns what sensitivity and specificity are, if a column has one."""
  order = compared.positive, 1 - compared.positive
  return dict.fromkeys(
    _MEANT.format(
      *(plain_text.class_name(each, k, compared.classes) or f'class {k}' for k in order)
    )
    for each in questions
    if _is_of_two(each, compared)
  )
