"""Distances of feature maps, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import map_distances

_SHAPES = ((3, 4, 4, 2), (3, 2, 2, 5))


def _maps(seed: int) -> list[np.ndarray]:
  generator = np.random.default_rng(seed)
  return [generator.normal(size=shape) for shape in _SHAPES]


@pytest.mark.parametrize('layers', [1, 2])
def test_every_layer_is_a_mean_and_they_are_summed(layers):
  a, b = _maps(1)[:layers], _maps(2)[:layers]
  expected = sum(((x - y) ** 2).mean() for x, y in zip(a, b, strict=True))
  got = map_distances.mean_squared_differences(
    [tf.constant(x) for x in a], [tf.constant(y) for y in b]
  )
  assert float(got) == pytest.approx(expected, rel=1e-12)


def test_the_gradient_is_that_of_the_mean():
  (a, _), (b, _) = _maps(1), _maps(2)
  x = tf.constant(a)
  with tf.GradientTape() as tape:
    tape.watch(x)
    loss = map_distances.mean_squared_differences([x], [tf.constant(b)])
  np.testing.assert_allclose(tape.gradient(loss, x), 2 * (a - b) / a.size, rtol=1e-12)


def test_without_layers_or_examples_it_is_zero():
  assert float(map_distances.mean_squared_differences([], [])) == 0
  none = tf.zeros([0, 4, 4, 2])
  assert float(map_distances.mean_squared_differences([none], [none])) == 0


def test_mismatches_are_refused():
  with pytest.raises(ValueError, match='There are 1 and 0 feature maps'):
    map_distances.mean_squared_differences([tf.zeros([1, 2])], [])
  with pytest.raises(ValueError, match=r'shapes \(1, 2\) and \(1, 3\)'):
    map_distances.mean_squared_differences([tf.zeros([1, 2])], [tf.zeros([1, 3])])
