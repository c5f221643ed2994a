"""Noise that nobody can draw again."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.aggregators import secret_noise
from tff_ssl.aggregators import skellam

_SIZE = 20_000


def _gaussian():
  """Two tensors of Gaussian noise of deviation 3, for a clip norm of 2."""
  query = secret_noise.GaussianSumQuery(2.0, 3.0)
  zeros = [tf.zeros([_SIZE]), tf.zeros([_SIZE], tf.float64)]
  noised, _, event = query.get_noised_result(zeros, query.initial_global_state())
  with tf.compat.v1.Session() as session:
    assert session.run(event.noise_multiplier) == 1.5
  return noised


def _skellam():
  """Two of Skellam noise of variance 9."""
  return [skellam._skellam([_SIZE], 9.0) for _ in range(2)]


@pytest.mark.parametrize('noise', [_gaussian, _skellam])
def test_it_is_independent_between_tensors_calls_and_graphs(noise):
  drawn = []
  for _ in range(2):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      # As if somebody had found the seed of what is drawn without one.
      tf.compat.v1.set_random_seed(7)
      tensors = noise()
      drawn += [each for _ in range(2) for each in session.run(tensors)]
  z = np.stack(drawn) / 3
  # Sums of n squares and products have deviations of sqrt(2 n) and sqrt(n); kurtosis
  # adds a ninth to the variance of a squared Skellam variable.
  products = (z @ z.T - _SIZE * np.eye(8)) / np.sqrt(_SIZE)
  assert np.max(np.abs(products)) < 5 * np.sqrt(2 + 1 / 9)
  assert np.max(np.abs(np.sum(z, 1))) < 5 * np.sqrt(_SIZE)
  # Not the distribution alone: no two begin alike.
  assert len({tuple(each[:8]) for each in drawn}) == 8


def test_seeds_use_all_of_their_bits():
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    seeds = np.array(session.run([secret_noise.seed() for _ in range(64)]))
  bits = (seeds[..., None] >> np.arange(64)) & 1
  # Of 64 fair bits, 4 deviations of 4 leave 16 to 48; 5.5 of 128 sums at once.
  assert bits.shape == (64, 2, 64)
  assert np.all(np.abs(np.sum(bits, 0) - 32) < 5.5 * 4)
