"""Noise: from secret seeds, of integers, and how the releases of a round share it."""

import collections

import dp_accounting
import numpy as np
import pytest
from scipy import optimize
from scipy import special
from scipy import stats
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import noise_split
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


def test_values_are_clipped_and_summed(tff_context):
  process = _process(1e-6, 2)
  values = [{'x': [1.0, -1.0]}, {'x': [30.0, 40.0]}, {'x': [0.0, 0.5]}]
  got = process.next(process.initialize(), values).result['x']
  # The second is five times 10, clipped to 2: [1.2, 1.6].
  np.testing.assert_allclose(got, [2.2, 1.1], atol=3 * 2 / skellam.QUANTA)


def _packed(noise_multiplier, size, clip=2.0):
  value_type = tff.to_type(collections.OrderedDict(x=(np.float32, [size])))
  return skellam.PackedSumFactory(noise_multiplier, clip).create(value_type)


@pytest.mark.parametrize('build', [_process, _packed])
def test_the_noise_of_the_sum_is_all_of_it(tff_context, build):
  process = build(1.5, 4000)
  if build is _process:
    tff.test.assert_contains_secure_aggregation(process.next)
    tff.test.assert_not_contains_unsecure_aggregation(process.next)
  zeros = [{'x': np.zeros(4000, np.float32)}] * 3
  noise = process.next(process.initialize(), zeros).result['x']
  quanta = noise.astype(float) * (skellam.QUANTA / 2.0)
  np.testing.assert_array_equal(quanta, np.round(quanta))
  # z C = 3, and of 4000 normals the deviation within five of its own.
  z = noise / 3
  assert abs(z.mean()) < 5 / np.sqrt(4000)
  assert abs(np.sum(z**2) - 4000) < 5 * np.sqrt(2 * 4000) + 4000 * 0.02
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


_Z = 0.7
_SIZES = {'update': [150_000], 'statistics': [1_152], 'metrics': [3], 'within': [1, 1]}


def _all(multipliers, sizes):
  """The multiplier of each release."""
  return [multipliers[name] for name, each in sizes.items() for _ in each]


@pytest.mark.parametrize('by_size', [True, False], ids=['sizes', 'equal'])
@pytest.mark.parametrize(
  'names', [['update'], ['metrics'], ['update', 'statistics', 'metrics', 'within']]
)
def test_all_releases_together_cost_what_one_of_the_rounds_noise_does(names, by_size):
  sizes = {name: _SIZES[name] for name in names}
  divided = noise_split.divide(_Z, sizes, of_counts=9.0, by_size=by_size)

  def epsilon(*multipliers):
    accountant = dp_accounting.rdp.RdpAccountant()
    for z in multipliers:
      accountant.compose(dp_accounting.GaussianDpEvent(z), 10)
    return accountant.get_epsilon(1e-5)

  assert divided.keys() == sizes.keys()
  assert epsilon(*_all(divided, sizes)) == pytest.approx(epsilon(_Z), rel=1e-9)


def test_no_other_split_has_less_noise_to_signal():
  sizes = {'update': [5_000, 5_000], 'statistics': [80, 20]}
  divided = noise_split.divide(_Z, sizes)

  def ratio(log):
    """Of two multipliers as of the constraint: noise lengths squared, all summed."""
    of_update = np.exp(log)
    of_statistics = (_Z**-2 / 2 - of_update**-2) ** -0.5
    return 10_000 * of_update**2 + 100 * of_statistics**2

  least = optimize.minimize_scalar(
    ratio, bounds=(np.log(_Z * 1.42), 3), method='bounded'
  )
  assert np.exp(least.x) == pytest.approx(divided['update'], rel=1e-4)
  assert ratio(np.log(divided['update'])) <= least.fun * (1 + 1e-9)


def test_small_statistics_leave_the_update_most_of_the_budget():
  sizes = {name: _SIZES[name] for name in ('update', 'statistics')}
  large = noise_split.divide(_Z, {**sizes, 'statistics': [66_048]})
  small = noise_split.divide(_Z, sizes)
  assert (_Z / large['update']) ** 2 == pytest.approx(0.601, abs=1e-3)
  assert (_Z / small['update']) ** 2 == pytest.approx(0.919, abs=1e-3)


@pytest.mark.parametrize(('clients', 'z'), [(512, 0.5), (64, 3.0), (4, 20.0)])
def test_a_count_costs_at_most_a_hundredth_of_the_budget(clients, z):
  of_count = adaptive_clipping.AdaptiveClip(0.5, clients).of_count(z)
  assert (z / of_count) ** 2 <= 0.01 * (1 + 1e-9)
  # Of numbers of +-1/2, so that the deviation is half of it: the paper's, or 5 z.
  assert of_count / 2 == max(clients / 20, 5 * z)
