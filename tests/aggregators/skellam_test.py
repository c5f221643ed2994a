"""Noise of the clients under secure sums: how much there is, and what it is worth."""

import collections

import numpy as np
import pytest
from scipy import special
from scipy import stats
import tensorflow_federated as tff

from tff_ssl.aggregators import skellam

_ORDERS = (2, 3, 5, 8, 16, 32, 64)


def _divergence(mu, shift, order):
  """Returns the Renyi divergence of a Skellam variable and a shifted one, exactly."""
  k = np.arange(-int(40 * mu + 200), int(40 * mu + 200) + 1)
  with np.errstate(divide='ignore'):
    there = stats.skellam.logpmf(k, mu / 2, mu / 2)
    moved = stats.skellam.logpmf(k - shift, mu / 2, mu / 2)
  known = np.isfinite(there) & np.isfinite(moved)
  return special.logsumexp(order * moved[known] + (1 - order) * there[known]) / (
    order - 1
  )


@pytest.mark.parametrize('noise_multiplier', [1.0, 3.0, 8.0])
@pytest.mark.parametrize('shift', [1, 2])
def test_it_is_worth_the_gaussian_that_it_is_counted_as(noise_multiplier, shift):
  mu = skellam.variance(noise_multiplier, shift, shift)
  for order in _ORDERS:
    # Where the exact one can be summed up: its tails are finite in floating point.
    if order * shift > 3 * mu:
      continue
    gaussian = order / (2 * noise_multiplier**2)
    exact = _divergence(mu, shift, order)
    assert exact <= gaussian * (1 + 1e-6), order
    # Nor is there much more noise than that takes, where there is not little of it.
    if noise_multiplier == 8 and order == 2:
      assert exact > 0.9 * gaussian


def test_its_variance_solves_the_inequality_of_the_docstring():
  for z, dimension in ((0.5, 1), (1.0, 100_000), (20.0, 50)):
    l2, l1 = skellam.sensitivities(dimension)
    mu = skellam.variance(z, l2, l1)
    assert l2**2 / mu + (l2**2 + 3 * l1) / mu**2 == pytest.approx(z**-2, rel=1e-9)
    # A sum that is rounded at once moves by as much as one of two that are rounded.
    rounded, _ = skellam.sensitivities(dimension, rounded_sums=True)
    assert rounded - skellam.QUANTA == pytest.approx(2 * (l2 - skellam.QUANTA))
    # With quanta this fine it is a Gaussian's to a hundredth, and not less.
    assert 1 <= np.sqrt(mu) / (z * skellam.QUANTA) < 1.01


def _process(noise_multiplier, size, clip=2.0, clients=3):
  value_type = tff.to_type(collections.OrderedDict(x=(np.float32, [size])))
  return skellam.SkellamSumFactory(noise_multiplier, clip, clients).create(value_type)


def test_the_noise_of_the_sum_is_all_of_it(tff_context):
  process = _process(1.5, 4000)
  tff.test.assert_contains_secure_aggregation(process.next)
  tff.test.assert_not_contains_unsecure_aggregation(process.next)
  zeros = [{'x': np.zeros(4000, np.float32)}] * 3
  noise = process.next(process.initialize(), zeros).result['x']
  # z C = 3, and of 4000 normals the deviation within five of its own.
  z = noise / 3
  assert abs(z.mean()) < 5 / np.sqrt(4000)
  assert abs(np.sum(z**2) - 4000) < 5 * np.sqrt(2 * 4000) + 4000 * 0.01
  again = process.next(process.initialize(), zeros).result['x']
  assert not np.array_equal(noise, again)


def test_values_are_clipped_and_summed(tff_context):
  process = _process(1e-6, 2)
  values = [{'x': [1.0, -1.0]}, {'x': [30.0, 40.0]}, {'x': [0.0, 0.5]}]
  got = process.next(process.initialize(), values).result['x']
  # The second is five times 10, clipped to 2: [1.2, 1.6].
  np.testing.assert_allclose(got, [2.2, 1.1], atol=3 * 2 / skellam.QUANTA)


def _packed(noise_multiplier, size, clip=2.0):
  value_type = tff.to_type(collections.OrderedDict(x=(np.float32, [size])))
  return skellam.PackedSumFactory(noise_multiplier, clip).create(value_type)


def test_packs_have_all_of_the_noise_once(tff_context):
  process = _packed(1.5, 4000)
  zeros = [{'x': np.zeros(4000, np.float32)}] * 2
  noise = process.next(process.initialize(), zeros).result['x']
  quanta = noise.astype(float) * (skellam.QUANTA / 2.0)
  np.testing.assert_array_equal(quanta, np.round(quanta))
  # z C = 3.
  assert abs(np.sum((noise / 3) ** 2) - 4000) < 5 * np.sqrt(2 * 4000) + 4000 * 0.02
  again = process.next(process.initialize(), zeros).result['x']
  assert not np.array_equal(noise, again)


def test_packs_have_the_noise_of_rounded_sums(tff_context, monkeypatch):
  # So coarse that most of what a client can move is rounding: sqrt(d) = 63 quanta of
  # 67, where its own would be 32 of 36.
  monkeypatch.setattr(skellam, 'QUANTA', 4)
  process = _packed(1.5, 4000, clip=4.0)
  zeros = [{'x': np.zeros(4000, np.float32)}] * 2
  quanta = process.next(process.initialize(), zeros).result['x']
  l2 = 4 + np.sqrt(4000)
  # For whole numbers the l1 norm is at most sqrt(d) times the l2 norm.
  mu = skellam.variance(1.5, l2, l2 * np.sqrt(4000))
  assert abs(np.sum(quanta**2) / mu - 4000) < 5 * np.sqrt(2 * 4000)


def test_a_sum_of_packs_is_rounded_once(tff_context):
  process = _packed(1e-9, 3, clip=1.0)
  # Each by itself would become nothing.
  values = [{'x': np.array([1.0, 2.0**-17 * 0.6, -0.3], np.float32)}] * 2
  got = process.next(process.initialize(), values).result['x']
  np.testing.assert_allclose(got, [2.0, 2.0**-16, -0.6], atol=2.0**-17, rtol=0)
  assert got[1] == 2.0**-16


def test_numbers_out_of_range_are_named():
  with pytest.raises(ValueError, match=r'clip is 0\.0; it must be between 1e-12'):
    skellam.SkellamSumFactory(1.0, 0.0, 3)
  with pytest.raises(ValueError, match=r'noise_multiplier is inf; it must be between'):
    skellam.PackedSumFactory(float('inf'), 1.0)
  with pytest.raises(ValueError, match='may need at most 62'):
    _process(1.0, 2, clients=2**46)
