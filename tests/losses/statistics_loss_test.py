"""Tests of statistics that are blended, and of encodings around a reference."""

import pytest
import tensorflow as tf

from tff_ssl.losses import statistics_loss


def test_the_reference_is_a_constant():
  f, g = (tf.constant([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]]) + k for k in (0.0, 0.3))
  fixed = {name: tf.constant([0.7, -0.2]) for name in ('f', 'g')}
  with tf.GradientTape() as tape:
    tape.watch(fixed)
    around = statistics_loss.around(f, g, fixed)
    loss = tf.add_n([tf.reduce_sum(x**2) for x in around])
  assert all(x is None for x in tape.gradient(loss, fixed).values())


@pytest.mark.parametrize('reference', [None, {}])
def test_without_reference_and_norm_encodings_stay(reference):
  f, g = tf.ones([2, 3]), tf.zeros([2, 3])
  assert statistics_loss.around(f, g, reference) == (f, g)


def test_blend_rejects_other_names():
  with pytest.raises(ValueError, match='mean_f and mean_g; they must be the same'):
    statistics_loss.blend({'mean_f': tf.zeros(1)}, {'mean_g': tf.zeros(1)})


def test_a_loss_that_ignores_no_shift_has_statistics_around_0_only():
  loss = statistics_loss.StatisticsLoss()
  statistics = {'mean': tf.ones([2])}
  assert loss.moved(statistics, {}) == statistics
  with pytest.raises(NotImplementedError):
    loss.moved(statistics, {'f': tf.ones([2]), 'g': tf.ones([2])})
