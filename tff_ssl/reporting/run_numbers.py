"""The numbers of one run: which model's they are, and which question they answer."""

from collections.abc import Iterator, Mapping
import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from tff_ssl.evaluation import method_names
from tff_ssl.reporting import run_reader

# Numbers of training, which are shown with the numbers of evaluation.json.
LOSS, BYTES, SECONDS = 'loss', 'bytes', 'seconds'
# The kNN of a few examples during training, in metrics.csv.
ONLINE_KNN = 'online_knn/accuracy'
# Prefix of the names of a validation split's numbers.
VALIDATION = 'validation/'
# Prefixes of the names of models' numbers in evaluation.json, and the models' titles:
# first of models that a method is compared with. A run from weights has an initial one.
INPUTS = {
  prefix: name + end
  for name in method_names.INPUTS
  for prefix, end in ((f'{name}/', ''), (f'{name}_pca/', method_names.COMPONENTS))
}
INITIAL = {'initial_encoder/': 'initial encoder'}
ENCODERS = {
  'random_encoder/': 'random encoder',
  'supervised_from_scratch/': 'supervised from scratch',
}
BASELINES = {**INPUTS, **INITIAL, **ENCODERS}
_MEAN, _BEST = 'clusters/mean/', 'clusters/best/'
MODELS = {
  **BASELINES,
  _MEAN: 'mean of models',
  _BEST: 'best of models',
  'teacher/': 'teacher',
  'student/': 'student',
  'personal/': "clients' own",
}
# The model whose encoder is the run's.
OWN = ''
_CLASSIFIER = 'classifier/'
_LABELS, _DRAWS, _MASKS, _ROUND = 'labels', 'draws', 'masks', 'round'
# A column without a round.
NOTHING = pd.Series(dtype=float)
# Probes that are trained on a single client's share of its labels.
_LOCAL = 'local_'


class Number(NamedTuple):
  """One number of a run.

  Attributes:
    model: The prefix of `MODELS` of the model that was measured, or `OWN`.
    full: Its name in evaluation.json.
    name: The name without the model.
    question: What the number answers, the same for any model and method: the name, with
      the count of the labels in place of their share.
    value: The number.
  """

  model: str
  full: str
  name: str
  question: str
  value: float


def numbers(run: run_reader.Run) -> Iterator[Number]:
  """Yields the numbers of a run.

  These are the numbers of evaluation.json, then, as far as they were recorded: `loss`
  of the last round; `bytes`, down and up, of all rounds; `seconds` of a round, as a
  median, because some rounds wait for compilation or for other programs.

  Args:
    run: The run.
  """
  for full, value in run.evaluation.items():
    # The round describes the evaluation, not the encoder.
    if full != _ROUND:
      yield _number(run, full, value)
  if len(loss := by_round(run.metrics, LOSS)):
    yield Number(OWN, LOSS, LOSS, LOSS, float(loss.iloc[-1]))
  if len(traffic := bytes_by_round(run)):
    yield Number(OWN, BYTES, BYTES, BYTES, math.fsum(traffic))
  if len(seconds := by_round(run.system, SECONDS)):
    yield Number(OWN, SECONDS, SECONDS, SECONDS, float(seconds.median()))


def same(
  rows: Mapping[int, Mapping[tuple[int, str], float]],
  values: Mapping[tuple[int, str], float],
) -> int | None:
  """Returns the row whose numbers are the same as far as both have them; or None.

  What encoders read is the same for every method, which then has no row of its own.

  Args:
    rows: Numbers by row, by the position of the run and the number's name.
    values: Other numbers.
  """
  for row, known in rows.items():
    common = known.keys() & values.keys()
    if common and all(known[key] == values[key] for key in common):
      return row
  return None


def is_chosen_by_test(run: run_reader.Run, model: str) -> bool:
  """Returns whether a model was chosen among several by its test numbers."""
  return model == _BEST and not any(
    name.startswith(VALIDATION + _BEST) for name in run.evaluation
  )


def by_round(table: pd.DataFrame, name: str) -> pd.Series:
  """Returns a column of a table; empty if it is missing or has no finite number.

  Args:
    table: `metrics` or `system` of a run.
    name: The column's name, or its last part, such as 'loss' for 'client_work/loss'.

  Returns:
    The number by round, NaN if the cell is empty.
  """
  if name not in table:
    ends = (column for column in table if column.rpartition('/')[2] == name)
    name = next(ends, name)
  cells = table.get(name, NOTHING)
  return cells if np.isfinite(cells).any() else NOTHING


def bytes_by_round(run: run_reader.Run) -> pd.Series:
  """Returns the bytes of each round, down and up; empty if a run is not federated."""
  down, up = (by_round(run.metrics, f'bytes_{way}') for way in ('down', 'up'))
  return down.add(up, fill_value=0.0)


def labels_of(question: str) -> float:
  """Returns the number of labels in a question, or the share in per cent; else 0."""
  for part in question.split('/'):
    count = part.removesuffix(f' {_LABELS}').removesuffix('%')
    if count != part and count.replace('.', '', 1).isdecimal():
      return float(count)
  return 0.0


def without_labels(question: str) -> str:
  """Returns a question without its number of labels, or share of them."""
  parts = question.split('/')
  return '/'.join(part for part in parts if not labels_of(part))


def label_free(every: pd.DataFrame) -> dict[str, str]:
  """Finds metrics of one's own that have the same numbers whatever the labels.

  Args:
    every: Columns `row`, `seed`, `question` and `value`.

  Returns:
    A question, of several that differ in their labels alone and have the same numbers
    in all runs -> the one of them that most runs have.
  """
  own = every[[method_names.is_own(question) for question in every['question']]]
  by_labels: dict[str, dict[str, pd.Series]] = {}
  for question, lines in own.groupby('question', sort=False):
    values = lines.drop_duplicates(['row', 'seed']).set_index(['row', 'seed'])['value']
    name = without_labels(str(question))
    by_labels.setdefault(name, {})[str(question)] = values
  found: dict[str, str] = {}
  for questions in by_labels.values():
    first, *others = sorted(questions, key=lambda each: -len(questions[each]))
    values = questions[first]
    if others and all(
      values.reindex(questions[other].index).equals(questions[other])
      for other in others
    ):
      found |= dict.fromkeys(questions, first)
  return found


def _number(run: run_reader.Run, full: str, value: float) -> Number:
  split = VALIDATION if full.startswith(VALIDATION) else ''
  rest = full.removeprefix(split)
  model = next((start for start in MODELS if rest.startswith(start)), OWN)
  name = rest.removeprefix(model)
  if model and name in method_names.SCORES:
    # Teacher and student are tested with the classifiers that were trained with them.
    name = _CLASSIFIER + name
  counted = '/'.join(_with_count(run, full, part) for part in name.split('/'))
  return Number(model, full, split + name, split + counted, value)


def _with_count(run: run_reader.Run, full: str, part: str) -> str:
  """Returns a part of a name, the count of labels if it is a share of them."""
  before = full.split('/')
  if not part.endswith('%') or part not in before:
    return part
  before = before[: before.index(part)]
  if before[-1:] in ([_LABELS], [_DRAWS]) or any(p.startswith(_LOCAL) for p in before):
    return part
  if {*before} & {_MASKS, *method_names.DENSE}:
    # A share of the masks, of which there may be more or fewer than labels.
    return part
  # The nearest evaluation that counts them: another task has its own.
  for k in range(len(before) - 1, -1, -1):
    count = run.evaluation.get('/'.join((*before[:k], _LABELS, part)))
    if count is not None and math.isfinite(count):
      return f'{count:.0f} {_LABELS}'
  return part
