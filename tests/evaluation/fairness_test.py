"""Tests of fairness over clients on numbers that can be counted by hand."""

import collections

import numpy as np
import pytest

from tff_ssl.evaluation import fairness

_LABELS = np.array([0, 1, 2, 0, 1, 2, 0, 1])
_PREDICTIONS = np.array([0, 1, 0, 0, 0, 0, 0, 1])  # Wrong at 2, 4 and 5.


def _by_name(values):
  return collections.OrderedDict((f'client_{k}', v) for k, v in enumerate(values))


def test_accuracy_is_that_of_a_loop_over_random_clients():
  random = np.random.default_rng(0)
  labels, predictions = random.integers(0, 3, [2, 500])
  sizes = random.multinomial(500, random.dirichlet(np.full(60, 0.3)))
  held = np.split(random.permutation(500), np.cumsum(sizes)[:-1])
  accuracies = fairness.client_accuracies(labels, predictions, _by_name(held))
  assert 0 in sizes
  assert accuracies == {
    name: np.mean([labels[i] == predictions[i] for i in positions])
    for name, positions in _by_name(held).items()
    if len(positions)
  }


def test_summary_in_closed_form():
  # 0, 1/20, ..., 19/20 in some order: the mean of the first n is (n - 1) / 40.
  values = np.random.default_rng(0).permutation(20) / 20
  summary = fairness.summarize(_by_name(values))
  assert list(summary) == ['mean', 'std', 'worst_decile']
  assert summary['mean'] == pytest.approx(19 / 40)
  assert summary['std'] == pytest.approx(np.sqrt((20**2 - 1) / 12) / 20)
  assert summary['worst_decile'] == pytest.approx(1 / 40)


@pytest.mark.parametrize(
  ('count', 'worst'), [(1, 1), (9, 1), (10, 1), (11, 2), (20, 2), (21, 3), (100, 10)]
)
def test_worst_decile_is_of_a_tenth_rounded_up(count, worst):
  summary = fairness.summarize(_by_name(np.arange(count)[::-1]))
  assert summary['worst_decile'] == pytest.approx((worst - 1) / 2)


@pytest.mark.parametrize(
  ('labels', 'predictions', 'clients', 'message'),
  [
    (_LABELS, _PREDICTIONS[1:], {'a': [0]}, '7 predictions for 8 labels'),
    (_LABELS - 1, _PREDICTIONS, {'a': [0, 1]}, 'A label is -1'),
    (_LABELS, _PREDICTIONS, {'a': [8]}, r"client 'a' go from 8 to 8.*\[0, 8\)"),
    (_LABELS, _PREDICTIONS, {'a': [], 'b': []}, 'None of the 2 clients has an example'),
    (_LABELS, _PREDICTIONS, {}, 'partition has no client'),
  ],
)
def test_bad_input_is_named(labels, predictions, clients, message):
  with pytest.raises(ValueError, match=message):
    fairness.client_accuracies(labels, predictions, clients)


def test_no_client_has_no_summary():
  with pytest.raises(ValueError, match='There are no clients'):
    fairness.summarize({})
