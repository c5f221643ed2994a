"""Tests of SwAV's loss against the paper's pseudocode in NumPy float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tests.oracles import losses
from tff_ssl.losses import sinkhorn


def _scores(n: int, k: int = 5, seed: int = 0) -> np.ndarray:
  return np.random.default_rng(seed + n).uniform(-1, 1, size=(n, k))


@pytest.mark.parametrize('n', [1, 4, 9])
@pytest.mark.parametrize(('epsilon', 'iterations'), [(0.05, 3), (0.5, 1), (0.1, 0)])
def test_assignments_equal_the_pseudocode(n, epsilon, iterations):
  got = sinkhorn.assignments(tf.constant(_scores(n)), epsilon, iterations)
  expected = references.sinkhorn(_scores(n), epsilon, iterations)
  np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_the_paper_s_temperature_and_iterations_are_the_default():
  """Caron et al. 2020, Section 3.1 and Appendix A.1: 0.05, and 3."""
  got = sinkhorn.assignments(tf.constant(_scores(4)))
  np.testing.assert_allclose(got, references.sinkhorn(_scores(4), 0.05, 3), rtol=1e-9)


def test_examples_sum_to_one_and_prototypes_share_them_in_the_end():
  q = sinkhorn.assignments(tf.constant(_scores(20)))
  np.testing.assert_allclose(tf.reduce_sum(q, axis=1), np.ones(20), rtol=1e-12)
  assert np.min(q) >= 0
  q = sinkhorn.assignments(tf.constant(_scores(20)), epsilon=0.5, iterations=200)
  np.testing.assert_allclose(tf.reduce_sum(q, axis=1), np.ones(20), rtol=1e-12)
  np.testing.assert_allclose(tf.reduce_sum(q, axis=0), np.full(5, 4.0), rtol=1e-9)


def test_a_single_example_is_assigned_to_all_alike():
  np.testing.assert_allclose(
    sinkhorn.assignments(tf.constant(_scores(1))), np.full((1, 5), 0.2), rtol=1e-12
  )


def test_small_epsilon_does_not_overflow():
  q = sinkhorn.assignments(tf.constant(_scores(6), tf.float32), epsilon=1e-3)
  np.testing.assert_allclose(tf.reduce_sum(q, axis=1), np.ones(6), rtol=1e-5)


def test_earlier_examples_take_part_in_assignments_alone():
  """The queue of the paper (Appendix): assigned together, predicted by none."""
  first, second = _scores(3), _scores(3, seed=100)
  earlier = _scores(7), _scores(7, seed=100)
  got = sinkhorn.swapped_prediction(
    tf.constant(first), tf.constant(second), earlier=tuple(map(tf.constant, earlier))
  )
  q_first, q_second = (
    references.sinkhorn(np.concatenate([x, e]), 0.05, 3)[:3]
    for x, e in ((first, earlier[0]), (second, earlier[1]))
  )
  expected = losses.swapped(first, second, q_first, q_second)
  np.testing.assert_allclose(got, expected, rtol=1e-9)
  alone = sinkhorn.swapped_prediction(tf.constant(first), tf.constant(second))
  assert abs(float(alone) - expected) > 1e-3
  none = tuple(tf.zeros([0, 5], tf.float64) for _ in range(2))
  np.testing.assert_allclose(
    sinkhorn.swapped_prediction(tf.constant(first), tf.constant(second), earlier=none),
    alone,
    rtol=1e-12,
  )


def test_scores_that_are_no_matrices_are_refused():
  x = tf.ones([2, 3])
  with pytest.raises(ValueError, match=r'have shape \(3,\); it must be \[n, K\]'):
    sinkhorn.assignments(x[0])
