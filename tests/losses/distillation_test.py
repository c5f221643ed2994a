"""Tests of DINO's loss and centre against Algorithm 1 in NumPy float64."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import distillation


def _logits(views: int, n: int = 4, k: int = 5) -> list[np.ndarray]:
  generator = np.random.default_rng(views)
  return list(generator.normal(size=(views, n, k)))


def _softmax(x: np.ndarray) -> np.ndarray:
  e = np.exp(x - x.max(axis=1, keepdims=True))
  return e / e.sum(axis=1, keepdims=True)


def expected_loss(teacher, student, centre, teacher_temperature, temperature) -> float:
  total, pairs = 0.0, 0
  for i, t in enumerate(teacher):
    for j, s in enumerate(student):
      if i == j:
        continue
      p = _softmax((t - centre) / teacher_temperature)
      total += -(p * np.log(_softmax(s / temperature))).sum(axis=1).mean()
      pairs += 1
  return total / pairs


@pytest.mark.parametrize('views', [2, 5])
def test_loss_equals_numpy(views):
  teacher, student = _logits(2, k=5), _logits(views, k=5)
  centre = np.linspace(-1, 1, 5)
  got = distillation.cross_entropy(
    [*map(tf.constant, teacher)], [*map(tf.constant, student)], centre, 0.5, 0.7
  )
  expected = expected_loss(teacher, student, centre, 0.5, 0.7)
  assert float(got) == pytest.approx(expected, rel=1e-12)


def test_no_gradient_flows_into_the_teacher():
  teacher, student = ([*map(tf.constant, _logits(2))] for _ in range(2))
  with tf.GradientTape() as tape:
    tape.watch((teacher, student))
    loss = distillation.cross_entropy(
      teacher, student, tf.zeros([5], tf.float64), 0.1, 0.1
    )
  of_teacher, of_student = tape.gradient(loss, (teacher, student))
  assert of_teacher == [None, None]
  assert all(np.any(gradient) for gradient in of_student)


def test_the_temperature_may_be_a_tensor_of_another_type():
  views = [*map(tf.constant, _logits(2))]
  centre = tf.zeros([5], tf.float64)
  got = distillation.cross_entropy(
    views, views, centre, tf.constant(0.5, tf.float64), 0.1
  )
  expected = distillation.cross_entropy(views, views, centre, 0.5, 0.1)
  assert float(got) == float(expected)


def test_no_example_gives_zero():
  views = [tf.zeros([0, 5])] * 2
  assert float(distillation.cross_entropy(views, views, tf.zeros([5]), 0.1, 0.1)) == 0
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
