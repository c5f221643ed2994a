"""Signals of quality: each against its definition on the features themselves."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tff_ssl.algorithms import view_moments
from tff_ssl.evaluation import signals
from tff_ssl.losses import hypersphere


def _views(n=400, d=6, noise=0.3, seed=0):
  """Features of two views; directions differ in variance, and are off the origin."""
  random = np.random.default_rng(seed)
  center = random.normal(size=(n, d)) * 1.7 ** -np.arange(d) + 0.2
  return [center + noise * random.normal(size=(n, d)) for _ in range(2)]


@pytest.fixture(scope='module')
def found():
  return signals.signals(signals.moments(*_views()))


def test_rank_is_that_of_the_singular_values_of_all_features(found):
  both = np.concatenate([references.unit(each) for each in _views()])
  values = np.linalg.svd(both, compute_uv=False)
  assert found['rank'] == pytest.approx(references.effective_rank(values), rel=1e-9)


def test_alignment_is_that_of_the_loss(found):
  first, second = _views()
  want = hypersphere.alignment(tf.constant(first), tf.constant(second)).numpy()
  assert found['alignment'] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize('d', [3, 32])
def test_uniformity_approximates_that_of_all_pairs(d):
  first, second = _views(d=d, n=600)
  want = hypersphere.uniformity(tf.constant(first)).numpy()
  got = signals.signals(signals.moments(first, second))['uniformity']
  assert want < -0.5
  assert got == pytest.approx(want, abs=0.1)


def test_spread_and_decay_are_those_of_the_covariance(found):
  both = np.concatenate([references.unit(each) for each in _views()])
  covariance = np.cov(both.T, bias=True)
  assert found['spread'] == pytest.approx(np.trace(covariance), rel=1e-9)
  values = np.sort(np.linalg.eigvalsh(covariance))[::-1]
  assert values[-1] > 1e-3 * values[0]
  slope = np.polyfit(np.log(np.arange(1, 7)), np.log(values), 1)[0]
  assert found['decay'] == pytest.approx(-slope, rel=1e-9)


def test_lidar_and_ratio_are_those_of_examples_as_classes(found):
  z, other = (references.unit(each) for each in _views())
  middle = (z + other) / 2
  between = np.cov(middle.T, bias=True)
  # Two views of an example: divided by q - 1 = 1.
  within = (
    (z - middle).T @ (z - middle) + (other - middle).T @ (other - middle)
  ) / len(z)
  values, vectors = np.linalg.eigh(within + 1e-4 * np.eye(6))
  root = vectors @ np.diag(values**-0.5) @ vectors.T
  want = references.effective_rank(np.linalg.eigvalsh(root @ between @ root))
  assert found['lidar'] == pytest.approx(want, rel=1e-6)
  of_examples = np.trace(between) - np.trace(within) / 2
  assert found['view_ratio'] == pytest.approx(of_examples / np.trace(within), rel=1e-9)


def test_collapsed_features_have_no_spread_and_rank_one():
  same = np.tile(np.arange(1, 5.0), (50, 1)).astype(np.float32)
  numbers = signals.signals(signals.moments(same, same))
  assert numbers['rank'] == pytest.approx(1, abs=1e-3)
  assert numbers['spread'] == pytest.approx(0, abs=1e-6)
  assert numbers['uniformity'] == pytest.approx(0, abs=1e-6)
  assert numbers['view_ratio'] == pytest.approx(0, abs=1e-6)
  assert (numbers['decay'], numbers['lidar']) == (0, 1)
  zero = signals.signals(signals.moments(0 * same, 0 * same))
  assert np.all(np.isfinite([*zero.values()]))


def test_diverged_features_have_no_signals():
  first, second = _views()
  first[3, 0] = np.inf
  with np.errstate(invalid='ignore'):
    numbers = signals.signals(signals.moments(first, second))
  assert np.all(np.isnan([*numbers.values()]))
  with pytest.raises(ValueError, match='at least one example'):
    signals.moments(first, second[:5])


def test_one_example_is_within_the_bound_of_its_share():
  def sent(first, second):
    means = view_moments.client_moments(tf.constant(first), tf.constant(second))
    return np.concatenate([np.ravel(each) for each in means.values()])

  first, second = _views(n=1)
  assert len(sent(first, second)) == 2 * 6**2 + 6 + 2 * signals.WAVES + 2
  assert np.linalg.norm(sent(first, second)) <= signals.share_bound()
  # Equal views attain it.
  norm = np.linalg.norm(sent(first, first))
  assert norm == pytest.approx(signals.share_bound(), rel=1e-9)


@functools.cache
def _exact(d=60):
  return signals.moments(*_views(n=5000, d=d))


def _noised(means, deviation, seed, examples=1.0):
  """Returns means with noise, of a share of the examples that were expected."""
  some = [examples * each for each in means[1:5]]
  some = signals.Moments(means.examples, *some, deviation)
  noised = some.with_noise(np.random.default_rng(seed))
  return noised._replace(deviation=deviation)


@pytest.mark.parametrize('examples', [1.0, 0.97])
@pytest.mark.parametrize(
  ('name', 'deviation'),
  [('spread', 0.02), ('alignment', 0.01), ('uniformity', 0.003), ('view_ratio', 0.01)],
)
def test_noise_of_privacy_is_taken_off_on_average(name, deviation, examples):
  exact = signals.signals(_exact())[name]
  noised = [_noised(_exact(), deviation, seed, examples) for seed in range(100)]
  values = [signals.signals(each)[name] for each in noised]
  error = np.std(values) / np.sqrt(len(values))
  assert np.mean(values) == pytest.approx(exact, abs=4 * error + 0.005 * abs(exact))
  # What does not know of the noise, or of the number of examples, is farther off.
  ignored = [
    signals.signals(each._replace(deviation=0.0, traces=None))[name] for each in noised
  ]
  if name in ('alignment', 'view_ratio'):
    assert np.std(values) < 0.5 * np.std(ignored)
  else:
    assert abs(np.mean(ignored) - exact) > 1.5 * abs(np.mean(values) - exact)


@pytest.mark.parametrize(('times', 'is_shown'), [(2.5, False), (3.5, True)])
def test_ratio_is_left_out_where_noise_hides_its_denominator(times, is_shown):
  exact = _exact()
  agreement = np.trace(exact.cross)
  # Of this difference of two traces, one times the other's part.
  deviation = (1 - agreement) / times / np.hypot(1, agreement)
  traces = np.array([1.0, agreement])
  found = signals.signals(exact._replace(deviation=deviation, traces=traces))
  assert ('view_ratio' in found) == is_shown and 'alignment' in found


@pytest.mark.parametrize('seed', range(5))
def test_noise_of_privacy_adds_no_rank(seed):
  """Features of rank 2 of 40, whose other eigenvalues are of noise alone."""
  random = np.random.default_rng(seed)
  plane = random.normal(size=(3000, 2)) @ random.normal(size=(2, 40))
  means = signals.moments(plane, plane)
  exact = signals.signals(means)['rank']
  assert exact < 2.01
  noised = _noised(means, 1e-3, seed)
  assert signals.signals(noised)['rank'] < 3.5 * exact
  assert signals.signals(noised._replace(deviation=0.0))['rank'] > 4 * exact


def test_rank_that_noise_hides_is_that_of_equal_parts():
  """As of most encoders: a large mean, and small variances that are much alike."""
  random = np.random.default_rng(0)
  views = 1 + 0.1 * random.normal(size=(3000, 40))
  means = signals.moments(views, views)
  exact = signals.signals(means)['rank']
  found = signals.signals(_noised(means, 2e-3, 0))['rank']
  assert found == pytest.approx(exact, rel=0.2)


def test_eigenvalues_above_the_noise_are_unbiased():
  means = _exact()
  largest = np.linalg.eigvalsh(means.second)[-1]
  values = [
    signals._unhidden(_noised(means, 0.01, seed).second, 0.01)[0] for seed in range(30)
  ]
  assert np.mean(values) == pytest.approx(largest, rel=0.01)


def test_examples_that_count_as_zeros_under_noise_have_diverged():
  none = signals.Moments(
    100.0, np.zeros(4), np.zeros([4, 4]), np.zeros([4, 4]), np.zeros(512), 0.01
  )
  noised = none.with_noise(np.random.default_rng(0))
  assert np.all(np.isnan([*signals.signals(noised).values()]))
