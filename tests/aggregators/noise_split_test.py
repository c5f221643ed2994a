"""The noise of a round, divided: against the closed form and dp_accounting."""

import dp_accounting
import numpy as np
import pytest
from scipy import optimize

from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import noise_split

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
