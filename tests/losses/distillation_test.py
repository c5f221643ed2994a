"""DINO's centre and temperatures; its loss: tests/contract/losses_test.py."""

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import losses
from tff_ssl.losses import distillation

expected_loss = losses.dino


def _logits(views: int, n: int = 4, k: int = 5) -> list[np.ndarray]:
  generator = np.random.default_rng(views)
  return list(generator.normal(size=(views, n, k)))


def test_the_temperature_may_be_a_tensor_of_another_type():
  views = [*map(tf.constant, _logits(2))]
  centre = tf.zeros([5], tf.float64)
  got = distillation.cross_entropy(
    views, views, centre, tf.constant(0.5, tf.float64), 0.1
  )
  expected = distillation.cross_entropy(views, views, centre, 0.5, 0.1)
  assert float(got) == float(expected)


def test_no_example_moves_the_centre_towards_zero():
  views = [tf.zeros([0, 5])] * 2
  np.testing.assert_allclose(distillation.next_centre(tf.ones([5]), views), [0.9] * 5)


def test_the_centre_is_a_moving_average():
  teacher = _logits(2)
  centre = np.linspace(-1, 1, 5)
  got = distillation.next_centre(
    tf.constant(centre), [*map(tf.constant, teacher)], 0.75
  )
  expected = 0.75 * centre + 0.25 * np.concatenate(teacher).mean(axis=0)
  np.testing.assert_allclose(got, expected, rtol=1e-12)
  views = [*map(tf.constant, teacher)]
  with tf.GradientTape() as tape:
    tape.watch(views)
    moved = tf.reduce_sum(distillation.next_centre(tf.constant(centre), views))
  assert tape.gradient(moved, views) == [None] * len(views)


@pytest.mark.parametrize(('teacher', 'student'), [(0, 2), (1, 1), (3, 2)])
def test_too_few_views_are_refused(teacher, student):
  views = [tf.zeros([2, 5])] * 3
  with pytest.raises(ValueError, match=f'{teacher} views and the student {student};'):
    distillation.cross_entropy(
      views[:teacher], views[:student], tf.zeros([5]), 0.1, 0.1
    )
