import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.algorithms.divergence_aware import online_networks


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
