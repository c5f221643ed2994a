"""Signals of quality: each against its definition on the features themselves."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
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


def test_decay_is_the_exponent_of_a_power_law():
  values = np.arange(1, 9.0) ** -1.5
  # Of 16 unit vectors along +- each axis, weighted, the covariance is diagonal.
  second = np.diag(values / values.sum())
  means = signals.Moments(100.0, np.zeros(8), second, second / 2, np.zeros(512))
  assert signals.signals(means)['decay'] == pytest.approx(1.5, rel=1e-9)


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


def test_order_of_examples_does_not_matter():
  first, second = _views()
  order = np.random.default_rng(1).permutation(len(first))
  a, b = (
    signals.signals(signals.moments(x[rows], y[rows]))
    for x, y, rows in ((first, second, slice(None)), (first, second, order))
  )
  np.testing.assert_allclose([*a.values()], [*b.values()], rtol=1e-9)


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
  first, second = _views(n=1)
  means = signals.moments(first, second)
  sent = np.concatenate([np.ravel(each) for each in means[1:]])
  assert len(sent) == 2 * 6**2 + 6 + 2 * signals.WAVES
  assert np.linalg.norm(sent) <= signals.share_bound()
  # Equal views attain it, but for the bound of the three moments.
  means = signals.moments(first, first)
  sent = np.concatenate([np.ravel(each) for each in means[1:]])
  assert np.linalg.norm(sent) == pytest.approx(signals.share_bound(), rel=1e-9)
