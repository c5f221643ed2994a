"""What is particular to each rule that deals classes, or sizes, by chance."""

import time

import numpy as np
import pytest

from tests.worlds import dealt

_LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 43))


def _of_classes(per_client, clients):
  return dealt.histograms(f'classes:per_client={per_client},clients={clients}', _LABELS)


@pytest.mark.parametrize('clients', [5, 7, 40])
@pytest.mark.parametrize('per_client', [2, 3, 10])
def test_each_client_has_its_classes_and_shares_them_evenly(clients, per_client):
  histograms = _of_classes(per_client, clients)
  held = histograms > 0
  np.testing.assert_array_equal(np.sum(held, axis=1), per_client)
  holders = np.sum(held, axis=0)
  assert np.ptp(holders) <= 1
  for counts, count in zip(histograms.T, holders, strict=True):
    assert set(counts[counts > 0]) <= {43 // count, -(-43 // count)}
  np.testing.assert_array_equal(np.sum(histograms, axis=0), 43)


def test_all_classes_are_iid():
  histograms = _of_classes(10, 4)
  assert set(histograms.flat) == {10, 11}
  # 430 = 2 * 107 + 2 * 108.
  assert sorted(np.sum(histograms, axis=1)) == [107, 107, 108, 108]


def test_classes_in_excess_belong_to_nobody():
  # No example twice: as many of each of six classes as there are.
  histograms = _of_classes(2, 3)
  assert sorted(np.sum(histograms, axis=0)) == [0] * 4 + [43] * 6


def _labels(classes, per_class, seed=0):
  labels = np.repeat(np.arange(classes, dtype=np.int32), per_class)
  return np.random.default_rng(seed).permutation(labels)


@pytest.mark.parametrize('seed', range(25))
def test_alpha_zero_gives_clients_of_one_class(seed):
  found = dealt.histograms('dirichlet:alpha=0,examples=4', _labels(5, 42, seed), seed)
  # 42 = 10 * 4 + 2: 50 clients of one class, and of the 10 that remain 2 clients more.
  np.testing.assert_array_equal(np.sum(found, axis=1), [4] * 52)
  assert np.max(np.sum(found, axis=0)) <= 42
  # Of 2 examples of each class 4 are 2 classes.
  assert np.count_nonzero(found, axis=1).tolist() == [1] * 50 + [2] * 2


@pytest.mark.parametrize(('examples', 'clients'), [(8, 6_250), (16, 3_125)])
def test_alpha_zero_has_the_clients_of_table_1_of_dcco(examples, clients):
  # CIFAR-100: 100 classes of 500.
  rule = f'dirichlet:alpha=0,examples={examples}'
  assert len(dealt.build(rule, np.repeat(np.arange(100), 500))) == clients


def test_alpha_zero_with_fewer_clients_has_none_of_several_classes():
  found = dealt.histograms('dirichlet:alpha=0,examples=4,clients=6', _labels(3, 10))
  np.testing.assert_array_equal(np.count_nonzero(found, axis=1), [1] * 6)


def test_alpha_large_is_near_the_global_labels():
  labels = np.repeat(np.arange(4), [400, 300, 200, 100])
  found = dealt.histograms('dirichlet:alpha=1e6,examples=200,clients=2', labels) / 200
  # Five standard deviations of a binomial proportion of 200 draws.
  most = 5 * np.sqrt(0.25 / 200)
  np.testing.assert_allclose(found, [[0.4, 0.3, 0.2, 0.1]] * 2, atol=most)


def test_proportions_have_the_moments_of_the_dirichlet_distribution():
  # With two balanced classes q ~ Beta(alpha / 2, alpha / 2), of variance
  # 1 / (4 (alpha + 1)); the counts of m draws are beta-binomial, of variance
  # m (m + alpha) / (4 (alpha + 1)). A tenth of the examples is dealt, so that no
  # class runs out.
  alpha, m, clients = 0.5, 6, 4000
  labels = _labels(2, 5 * m * clients)
  counts = dealt.histograms(
    f'dirichlet:alpha={alpha},examples={m},clients={clients}', labels
  )[:, 1]
  expected = m * (m + alpha) / (4 * (alpha + 1))
  assert np.mean(counts) == pytest.approx(m / 2, abs=5 * np.sqrt(expected / clients))
  assert np.var(counts) == pytest.approx(expected, rel=0.08)


def test_twelve_thousand_clients_take_seconds():
  start = time.process_time()
  partition = dealt.build('dirichlet:alpha=0.1,examples=4', _labels(100, 500))
  assert time.process_time() - start < 10
  assert len(partition) == 12_500


def _sizes(rule, num_examples=1000, seed=0):
  labels = np.zeros(num_examples, int)
  return dealt.histograms(f'quantity:{rule}', labels, seed)[:, 0]


def test_alpha_zero_gives_one_client_all_but_the_least():
  assert sorted(_sizes('clients=4,alpha=0,min_examples=3')) == [3, 3, 3, 991]


def test_shares_have_the_variance_of_the_dirichlet_distribution():
  # A share of K has mean 1/K and variance (1/K)(1 - 1/K) / (alpha K + 1).
  alpha, clients, total = 0.5, 4, 1000
  rule = f'alpha={alpha},clients={clients},min_examples=0'
  shares = np.array([_sizes(rule, total, seed)[0] for seed in range(2000)])
  expected = 0.25 * 0.75 / (alpha * clients + 1)
  assert np.var(shares / total) == pytest.approx(expected, rel=0.12)
  assert np.mean(shares / total) == pytest.approx(
    0.25, abs=5 * (expected / 2000) ** 0.5
  )


def test_power_law_has_its_closed_form():
  # 2 : 1 of 3.
  sizes = _sizes('clients=2,power=1,min_examples=0', 750)
  assert sizes.tolist() == [500, 250]
  sizes = _sizes('clients=3,power=2,min_examples=0', 490)
  # 36 : 9 : 4 of 49.
  assert sizes.tolist() == [360, 90, 40]


def test_labels_are_iid():
  found = dealt.histograms('quantity:clients=3,power=1', np.repeat(np.arange(2), 5000))
  for first, second in found:
    # Five standard deviations of a proportion of so many draws.
    most = 2.5 / np.sqrt(first + second)
    assert second / (first + second) == pytest.approx(0.5, abs=most)


_HUNDREDS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 100))


def _shared(rule, labels=_HUNDREDS, seed=0):
  return dealt.histograms(f'shares:{rule}', labels, seed)


def test_alpha_zero_gives_each_class_to_one_client():
  assert np.count_nonzero(_shared('alpha=0,clients=3')) == 10


@pytest.mark.parametrize('rule', ['alpha=1e8', 'alpha=1e9,balanced=true'])
def test_alpha_large_gives_equal_shares(rule):
  np.testing.assert_allclose(_shared(f'{rule},clients=5'), 20, atol=1)


def test_share_has_the_variance_of_the_dirichlet_distribution():
  # A share of K clients has mean 1/K, variance (1/K)(1 - 1/K) / (alpha K + 1).
  alpha, clients, classes = 0.5, 4, 2000
  labels = np.repeat(np.arange(classes), 50)
  share = _shared(f'alpha={alpha},clients={clients}', labels)[0] / 50
  expected = 0.25 * 0.75 / (alpha * clients + 1)
  assert np.var(share) == pytest.approx(expected, rel=0.12)
  assert np.mean(share) == pytest.approx(
    0.25, abs=5 * np.sqrt(expected / classes) + 0.002
  )


def test_min_examples_is_kept():
  found = _shared('alpha=0.1,clients=5,min_examples=100')
  assert np.min(np.sum(found, axis=1)) >= 100


def test_min_examples_zero_allows_empty_clients():
  partition = dealt.build('shares:alpha=0,clients=20,min_examples=0', _HUNDREDS)
  assert len(partition) == 20
  empty = [held for held in partition.values() if not len(held)]
  assert empty
  assert empty[0].dtype == np.int64


@pytest.mark.parametrize('seed', range(25))
@pytest.mark.parametrize('alpha', [0, 0.02, 1])
def test_balanced_clients_have_the_same_size_and_no_example_twice(alpha, seed):
  sizes = np.array([31, 5, 60, 1, 22, 40, 17])
  labels, rule = (
    np.repeat(np.arange(7), sizes),
    f'alpha={alpha},clients=5,balanced=true',
  )
  partition = dealt.build(f'shares:{rule}', labels, seed)
  # 176 = 5 * 35 + 1.
  assert [len(held) for held in partition.values()] == [35] * 5
  assert len(np.unique(np.concatenate(list(partition.values())))) == 175
  smaller = _shared(f'{rule},examples=11', labels, seed)
  np.testing.assert_array_equal(np.sum(smaller, axis=1), 11)
  assert np.max(np.abs(np.sum(smaller, axis=0) - sizes * 55 / 176)) <= 1


@pytest.mark.parametrize('seed', range(25))
def test_balanced_with_alpha_zero_gives_disjoint_classes(seed):
  held = _shared('alpha=0,clients=5,balanced=true', seed=seed) > 0
  np.testing.assert_array_equal(np.sum(held, axis=0), 1)
  np.testing.assert_array_equal(np.sum(held, axis=1), 2)
  # Near it, near ties may leave some of a class elsewhere.
  near = _shared('alpha=1e-9,clients=5,balanced=true', seed=seed)
  assert np.sum(np.max(near, axis=0)) >= 900


# Ten classes of 40, 41, ..., 49 examples, in any order.
_SIZES = np.arange(40, 50)
_UNEVEN = np.random.default_rng(0).permutation(np.repeat(np.arange(10), _SIZES))


@pytest.mark.parametrize(
  ('clients', 'own'), [(5, [2] * 5), (3, [4, 3, 3]), (10, [1] * 10)]
)
def test_beta_zero_gives_disjoint_classes(clients, own):
  held = dealt.histograms(f'skew:beta=0,clients={clients}', _UNEVEN) > 0
  np.testing.assert_array_equal(np.sum(held, axis=0), 1)
  assert np.sum(held, axis=1).tolist() == own


@pytest.mark.parametrize('clients', [3, 5, 12])
def test_beta_one_gives_everyone_the_same_of_each_class(clients):
  histograms = dealt.histograms(f'skew:beta=1,clients={clients}', _UNEVEN)
  for column, size in zip(histograms.T, _SIZES, strict=True):
    assert set(column) <= {size // clients, -(-size // clients)}
  # The larger shares of the classes do not pile up on the same clients.
  assert np.ptp(np.sum(histograms, axis=1)) <= 1


@pytest.mark.parametrize('seed', range(25))
def test_with_more_clients_than_classes_each_has_one_class_of_its_own(seed):
  beta, clients = 0.4, 13 + seed
  even = np.rint(beta * _SIZES)
  histograms = dealt.histograms(f'skew:beta={beta},clients={clients}', _UNEVEN, seed)
  np.testing.assert_array_equal(np.sum(histograms, axis=0), _SIZES)
  spread = even / clients
  own = histograms > spread + 1
  np.testing.assert_array_equal(np.sum(own, axis=1), 1)
  owners = np.sum(own, axis=0)
  assert set(owners) <= {clients // 10, -(-clients // 10)}
  # What is not spread evenly is shared evenly by the owners, to one example each.
  expected = spread + own * (_SIZES - even) / owners
  assert np.max(np.abs(histograms - expected)) < 2


def test_beta_between_adds_an_even_share_to_classes_of_ones_own():
  # Of 50 examples of each of 4 classes, 0.4 * 50 = 20 are spread over 2 clients, 10
  # each; the other 30 belong to the client whose class it is.
  histograms = dealt.histograms('skew:beta=0.4,clients=2', np.repeat(np.arange(4), 50))
  np.testing.assert_array_equal(np.sort(histograms), [[10, 10, 40, 40]] * 2)
  np.testing.assert_array_equal(np.sum(histograms, axis=0), 50)
