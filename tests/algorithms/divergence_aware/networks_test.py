"""Distances of online networks, and the running quantile of them."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.algorithms.divergence_aware import running_quantile


def _networks(seed):
  generator = np.random.default_rng(seed)
  shapes = {
    'encoder/stem/kernel': (3, 3, 2, 4),
    'encoder/block/kernel': (1, 1, 4, 5),
    'encoder/norm/scale': (5,),
    'projector/dense/kernel': (5, 3),
  }
  return {name: generator.normal(size=shape) for name, shape in shapes.items()}


def _tensors(networks):
  return {name: tf.constant(value, tf.float32) for name, value in networks.items()}


def test_l2_is_the_norm_of_all_weights():
  a, b = _networks(0), _networks(1)
  gap = np.concatenate([np.ravel(a[name] - b[name]) for name in a])
  found = online_networks.l2(_tensors(a), _tensors(b))
  np.testing.assert_allclose(found, np.linalg.norm(gap), rtol=1e-6)


def test_conv_mean_is_over_kernels_of_convolutions():
  a, b = _networks(0), _networks(1)
  kernels = ('encoder/stem/kernel', 'encoder/block/kernel')
  norms = [np.linalg.norm(np.ravel(a[name] - b[name])) for name in kernels]
  found = online_networks.conv_mean(_tensors(a), _tensors(b))
  np.testing.assert_allclose(found, np.mean(norms), rtol=1e-6)


@pytest.mark.parametrize('norm', online_networks.NORMS.values())
def test_distance_of_equal_networks_is_zero(norm):
  networks = _tensors(_networks(0))
  assert float(norm(networks, networks)) == 0


def test_without_convolutions_there_is_no_conv_mean():
  networks = {'dense/kernel': tf.ones([2, 2])}
  with pytest.raises(ValueError, match='have no convolution'):
    online_networks.conv_mean(networks, networks)


def _follow(quantile, rounds, shrink):
  """Returns the share below the threshold over rounds of 50 clients."""
  generator = np.random.default_rng(0)
  estimate = running_quantile.RunningQuantile(quantile)
  kept, shares = estimate.initial(), []
  for number in range(rounds):
    found = shrink**number * generator.lognormal(-2, 0.7, size=50)
    shares.append(np.mean(found < estimate.threshold(kept).numpy()))
    kept = estimate.updated(
      kept,
      tf.constant(shares[-1], tf.float32),
      tf.constant(found.mean(), tf.float32),
      tf.constant(1.0),
    )
  return shares


@pytest.mark.parametrize('quantile', [0.2, 0.5, 0.8])
@pytest.mark.parametrize('shrink', [1.0, 0.83])
def test_the_share_below_goes_to_the_quantile(quantile, shrink):
  """At 0.83 a round the numbers fall to a fortieth in 20 rounds, as divergences do."""
  shares = _follow(quantile, 60, shrink)
  assert shares[0] == 1.0
  assert np.mean(shares[20:]) == pytest.approx(quantile, abs=0.1)


def test_the_rule():
  estimate = running_quantile.RunningQuantile(0.25)
  one = tf.constant(1.0)
  kept = estimate.initial()
  assert np.isinf(estimate.threshold(kept))
  # No client with a number: nothing is known after either.
  kept = estimate.updated(kept, tf.constant(0.0), tf.constant(0.0), tf.constant(0.0))
  assert np.isinf(estimate.threshold(kept))
  # All are below infinity, which says nothing.
  kept = estimate.updated(kept, one, tf.constant(3.0), one)
  assert float(estimate.threshold(kept)) == pytest.approx(3.0)
  kept = estimate.updated(kept, tf.constant(0.75), tf.constant(2.0), one)
  assert float(estimate.threshold(kept)) == pytest.approx(2 * np.exp(-0.2 * 0.5))
  kept = estimate.updated(kept, one, tf.constant(9.0), tf.constant(0.0))
  assert float(estimate.threshold(kept)) == pytest.approx(2 * np.exp(-0.2 * 0.5))
