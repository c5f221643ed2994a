"""Intervals of accuracies: against SciPy's bootstrap, and closed forms."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import scores


def _tested(n=80, case_size=1, seed=0, draws=2, classes=3, right=0.7):
  random = np.random.default_rng(seed)
  cases = np.arange(n) // case_size
  labels = random.integers(0, classes, n)[cases * case_size]
  tested = intervals.Tested(labels, cases, classes)
  for _ in range(draws):
    hit = random.random(n) < right
    tested.add('knn/10%', np.where(hit, labels, (labels + 1) % classes))
  return tested


@pytest.mark.parametrize('case_size', [1, 4])
def test_interval_is_that_of_scipy_over_cases(case_size):
  tested = _tested(case_size=case_size)
  rights, n = tested.rights('knn/10%'), len(tested.labels)
  # Cases are of equal size, so that the accuracy is the mean over cases.
  by_case = rights.reshape(n // case_size, case_size).mean(axis=1)
  want = stats.bootstrap(
    (by_case,), np.mean, n_resamples=20_000, method='percentile', random_state=1
  ).confidence_interval
  found = intervals.bootstrap(
    tested.labels, tested.cases, [rights], tested.num_classes, draws=20_000
  )
  ends, gain = found['accuracy']
  np.testing.assert_allclose(ends, want, atol=0.008)
  assert gain is None


def test_interval_of_balanced_accuracy_is_that_of_scipy():
  tested = _tested(n=90)
  rights = tested.rights('knn/10%')

  def balanced(indices):
    labels = tested.labels[indices]
    return np.mean([rights[indices][labels == c].mean() for c in np.unique(labels)])

  want = stats.bootstrap(
    (np.arange(90),),
    balanced,
    vectorized=False,
    n_resamples=4000,
    method='percentile',
    random_state=1,
  ).confidence_interval
  found = intervals.bootstrap(tested.labels, tested.cases, [rights], 3, draws=4000)
  np.testing.assert_allclose(found['balanced_accuracy'][0], want, atol=0.012)


def test_gain_is_paired_by_case():
  own, other = _tested(seed=0), _tested(seed=0)
  # The same mistakes and two more: the difference is far surer than two accuracies.
  changed = other.predictions['knn/10%'][0].copy()
  hits = np.flatnonzero(changed == other.labels)[:2]
  changed[hits] = (changed[hits] + 1) % 3
  other.predictions['knn/10%'][0] = changed
  numbers = intervals.numbers(own, {'': other, 'pixels_': own})
  name = 'knn/10%/accuracy'
  assert numbers[f'{name}/pixels_gain'] == numbers[f'{name}/pixels_gain_high'] == 0
  assert numbers[f'{name}/gain'] == pytest.approx(1 / 80)
  # Two cases differ by half each: draws of a Poisson of mean 2, about 0 to 5.
  assert numbers[f'{name}/gain_low'] == 0
  assert numbers[f'{name}/gain_high'] == pytest.approx(5 / 160, abs=1 / 160)
  assert numbers[f'{name}/high'] - numbers[f'{name}/low'] > 0.1
  assert numbers['tested/cases'] == 80


def test_clients_are_drawn_in_place_of_their_cases():
  tested = _tested(n=200)
  of_clients = dataclasses.replace(tested, clients=np.arange(200) // 5)
  numbers = intervals.numbers(of_clients)
  assert (numbers['tested/cases'], numbers['tested/clients']) == (200, 40)
  assert 'tested/clients' not in intervals.numbers(tested)
  by_client = tested.rights('knn/10%').reshape(40, 5).mean(axis=1)
  want = stats.bootstrap(
    (by_client,), np.mean, n_resamples=9_999, method='percentile', random_state=1
  ).confidence_interval
  found = [numbers[f'knn/10%/accuracy/{end}'] for end in ('low', 'high')]
  np.testing.assert_allclose(found, want, atol=0.01)
  # All pictures of a client are right, or none: as sure as of 40 examples, not of 200.
  alike = dataclasses.replace(of_clients, predictions={})
  alike.add('knn/10%', np.where(np.arange(200) < 100, tested.labels, -1))
  low, high = (
    intervals.numbers(alike)[f'knn/10%/accuracy/{end}'] for end in ('low', 'high')
  )
  assert (low, high) == pytest.approx((0.35, 0.65), abs=0.026)


@pytest.mark.parametrize('score', ['accuracy', 'balanced_accuracy'])
def test_fewer_than_twenty_clients_count_as_one_example_each(score):
  tested = _tested(n=190)
  rights = tested.rights('knn/10%')
  value = {
    'accuracy': np.mean(rights),
    'balanced_accuracy': np.mean([rights[tested.labels == c].mean() for c in range(3)]),
  }[score]
  for count, is_exact in ((19, True), (38, False)):
    clients = np.arange(190) * count // 190
    found = intervals.bootstrap(tested.labels, clients, [rights], 3)[score][0]
    # Of a share that is no whole number of 19 there is a closed form too.
    right = value * count
    exact = (
      stats.beta.ppf(0.025, right, count - right + 1),
      stats.beta.ppf(0.975, right + 1, count - right),
    )
    assert (np.allclose(found, exact, rtol=1e-9)) == is_exact


def test_few_single_examples_have_the_exact_interval():
  # Shares over eight draws of labels, which all draws of the examples have.
  found = intervals.bootstrap(np.arange(2), np.arange(2), [np.full(2, 0.875)], 2)
  want = stats.beta.ppf([0.025, 0.975], [1.75, 2.75], [1.25, 0.25])
  np.testing.assert_allclose(found['accuracy'][0], want, rtol=1e-9)


@pytest.mark.parametrize('right', [0, 1])
def test_interval_of_equal_cases_is_the_exact_one(right):
  tested = _tested(n=14, right=right)
  numbers = intervals.numbers(tested)
  exact = stats.binomtest(14 * right, 14).proportion_ci(0.95, method='exact')
  found = [numbers[f'knn/10%/accuracy/{end}'] for end in ('low', 'high')]
  np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_confusions_are_means_over_draws_and_their_diagonal_the_recall():
  tested = _tested()
  numbers = intervals.numbers(tested)
  matrix = np.zeros([3, 3])
  for c in range(3):
    for p in range(3):
      matrix[c, p] = numbers.get(f'knn/10%/confusion/{c}/{p}', 0.0)
  np.testing.assert_array_equal(
    matrix.sum(axis=1), np.bincount(tested.labels, minlength=3)
  )
  recalls = np.mean(
    [
      scores.per_class_recall(tested.labels, own, 3)
      for own in tested.predictions['knn/10%']
    ],
    axis=0,
  )
  np.testing.assert_allclose(np.diag(matrix) / matrix.sum(axis=1), recalls)
  many = intervals.Tested(np.arange(30), np.arange(30), 30)
  many.add('knn/10%', np.arange(30))
  assert not [name for name in intervals.numbers(many) if 'confusion' in name]


def test_details_are_told_from_scores():
  numbers = intervals.numbers(_tested(), {'': _tested(seed=1), 'pixels_': _tested()})
  names = [name for name in numbers if name != intervals.CASES]
  assert names
  assert all(intervals.is_detail(name) for name in names)
  for name in ('knn/10%/accuracy', 'knn/10%/recall/1', 'draws/10%', 'signals/rank'):
    assert not intervals.is_detail(name)
