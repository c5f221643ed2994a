"""What is stated of a classifier, and on which cases a threshold is chosen."""

import dataclasses

import numpy as np
import pytest

from binaries.experiment import classifier_quality
from binaries.experiment import exporting
from tasks import task_types
from tff_ssl.evaluation import linear_probe

_NAMES = ('ill', 'well')
_WANTED = classifier_quality.Wanted('ill', 0.9)


def _examples(first, count, holders, seed):
  """Returns examples of one number each: the larger, the likelier is `ill`."""
  holder = first + np.sort(np.arange(count) % holders)
  label = (holder % 2).astype(np.int32)
  noise = np.random.default_rng(seed).normal(size=count)
  numbers = (noise - 2 * label).astype(np.float32)[:, np.newaxis]
  # The last has no label.
  label[-1] = -1
  ids = np.arange(first, first + count)
  return task_types.Examples({'features': numbers}, label, ids, holder)


def _task(validation=None):
  train, test = _examples(0, 40, 10, 0), _examples(1000, 120, 40, 1)
  return task_types.Task(
    'made', _NAMES, train, test, validation=validation, case_level=True
  )


def _logistic(numbers):
  return 1 / (1 + np.exp(-numbers[:, 0].astype(np.float64)))


# Its probability of `ill` is the logistic function of the number.
_MODEL = exporting.Model(
  None,
  linear_probe.LinearClassifier(
    np.zeros(1, np.float32),
    np.ones(1, np.float32),
    np.array([[1.0, 0.0]], np.float32),
    np.zeros(2, np.float32),
  ),
  lambda rows: rows,
)


def test_recall_is_of_single_examples_though_cases_are_classified():
  task = _task()
  tested, threshold = classifier_quality.measure(task, _MODEL, None)
  assert threshold is None
  known = task.test.label >= 0
  is_ill = _logistic(task.test['features'])[known] > 0.5
  for k, name in enumerate(_NAMES):
    own = task.test.label[known] == k
    assert tested.recall[name][0] == pytest.approx(np.mean(is_ill[own] == (k == 0)))
    assert tested.recall[name][3] == np.sum(own)
  # Three examples of each, drawn together.
  assert tested.cases == 40


def test_a_validation_split_chooses_and_all_test_cases_are_stated():
  validation = _examples(500, 60, 20, 2)
  task = _task(validation)
  tested, threshold = classifier_quality.measure(task, _MODEL, _WANTED)
  known = validation.label >= 0
  assert threshold.chosen_on == np.sum(known)
  ill = _logistic(validation['features'])[known & (validation.label == 0)]
  assert np.mean(ill >= threshold.probability) >= 0.9
  assert tested.accuracy[3] == np.sum(task.test.label >= 0)
  own = _logistic(task.test['features'])[task.test.label == 0]
  expected = np.mean(own >= threshold.probability)
  assert tested.recall['ill'][0] == pytest.approx(expected)


def test_without_one_half_of_the_test_cases_choose_and_none_is_on_both_sides():
  task = _task()
  tested, threshold = classifier_quality.measure(task, _MODEL, _WANTED)
  # Three examples a case, of 20 cases; the one without a label may be in either half.
  assert tested.cases == 20
  assert threshold.chosen_on + tested.accuracy[3] == np.sum(task.test.label >= 0)
  assert threshold.chosen_on in (59, 60)
  # Each example in turn is moved to the other side.
  ids = task.test.example_id
  changed = []
  for place in range(len(ids)):
    numbers = task.test['features'].copy()
    numbers[place] += 50.0 if task.test.label[place] else -50.0
    other = dataclasses.replace(task, test=task.test.with_fields(features=numbers))
    found = classifier_quality.measure(other, _MODEL, _WANTED)
    moves = found.threshold.probability != threshold.probability
    changed.append((moves, found.tested != tested))
  # Examples of a case change the threshold, and with it perhaps what is stated; or what
  # is stated alone.
  cases = task.test.case
  choosing = {case for case, (moves, _) in zip(cases, changed, strict=True) if moves}
  stated = {
    case
    for case, (moves, says) in zip(cases, changed, strict=True)
    if says and not moves
  }
  assert choosing and stated
  assert not choosing & stated


# That there must be two: export_test.
def test_sensitivity_is_of_a_class_of_the_task():
  with pytest.raises(ValueError, match="--positive is 'sick'; it must be one of ill"):
    classifier_quality.check(_task(), classifier_quality.Wanted('sick', 0.9))
