"""Privacy that is counted, against dp_accounting asked directly and closed forms."""

import dp_accounting
import numpy as np
import pytest
from scipy import stats

from tff_ssl.runtime import accounting

# Fewer than dp_accounting's own: each costs time.
_ORDERS = (1.5, 2, 3, 4, 6, 8, 16, 32)
# (population, cohort, multipliers, delta, rounds)
_CONFIGURATIONS = [
  (100, 100, (1.0,), 1e-3, 1),
  (100, 100, (2.0, 2.0), 1e-3, 10),
  (1000, 10, (1.0,), 1e-4, 1),
  (1000, 10, (0.5, 3.0), 1e-5, 100),
  (1000, 100, (4.0, 4.0, 4.0), 1e-5, 50),
  (355, 64, (2.0, 1.0), 1e-3, 7),
  (10**6, 1000, (1.0, 1.0), 1e-8, 1000),
  (64, 5, (10.0,), 1e-6, 500),
  (2, 1, (5.0,), 0.1, 3),
  (10_000, 9_999, (30.0, 20.0), 1e-6, 20),
]


def _terms(population, cohort, multipliers, delta):
  named = {f'value_{k}': z for k, z in enumerate(multipliers)}
  return accounting.Terms(population, cohort, named, delta)


@pytest.mark.parametrize('configuration', _CONFIGURATIONS)
def test_epsilon_is_that_of_dp_accounting(configuration):
  population, cohort, multipliers, delta, rounds = configuration
  accountant = dp_accounting.rdp.RdpAccountant(
    _ORDERS, dp_accounting.NeighboringRelation.REPLACE_ONE
  )
  # Of a client that is replaced the sum of clipped values moves by two clip norms.
  together = sum((z / 2) ** -2 for z in multipliers) ** -0.5
  one = dp_accounting.SampledWithoutReplacementDpEvent(
    population, cohort, dp_accounting.GaussianDpEvent(together)
  )
  accountant.compose(dp_accounting.SelfComposedDpEvent(one, rounds))
  got = accounting.Accountant(_terms(*configuration[:4]), _ORDERS)
  assert got.epsilon(rounds) == pytest.approx(accountant.get_epsilon(delta), abs=1e-6)
  assert got.epsilon(0) == 0


@pytest.mark.parametrize('configuration', _CONFIGURATIONS)
def test_epsilon_of_poisson_cohorts_is_that_of_dp_accounting(configuration):
  population, cohort, multipliers, delta, rounds = configuration
  accountant = dp_accounting.rdp.RdpAccountant(_ORDERS)
  together = sum(z**-2 for z in multipliers) ** -0.5
  one = dp_accounting.PoissonSampledDpEvent(
    cohort / population, dp_accounting.GaussianDpEvent(together)
  )
  accountant.compose(dp_accounting.SelfComposedDpEvent(one, rounds))
  named = {f'value_{k}': z for k, z in enumerate(multipliers)}
  terms = accounting.Terms(
    population, cohort, named, delta, sampling=accounting.POISSON
  )
  got = accounting.Accountant(terms, _ORDERS)
  assert got.epsilon(rounds) == pytest.approx(accountant.get_epsilon(delta), abs=1e-6)
  fixed = accounting.Accountant(_terms(*configuration[:4]), _ORDERS)
  assert got.epsilon(rounds) < fixed.epsilon(rounds)


def test_poisson_cohorts_need_less_noise():
  of_both = [
    accounting.solve(1000, 50, 100, 8.0, 1e-4, sampling=sampling)
    for sampling in (accounting.FIXED, accounting.POISSON)
  ]
  assert of_both[1] < 0.7 * of_both[0]


def test_without_sampling_it_is_not_below_the_exact_loss_of_a_gaussian():
  """Balle and Wang, "Improving the Gaussian Mechanism", ICML 2018, theorem 8."""
  z, delta = 3.0, 1e-3
  epsilon = accounting.Accountant(_terms(50, 50, (z,), delta)).epsilon(1)
  mu = 2 / z
  exact = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(
    -mu / 2 - epsilon / mu
  )
  assert 0.05 * delta < exact <= delta


def test_without_the_help_of_sampling_a_client_is_as_if_in_every_round():
  terms = accounting.Terms(1000, 10, {'x': 4.0}, 1e-4, amplified=False)
  everybody = accounting.Terms(1000, 1000, {'x': 4.0}, 1e-4)
  found = accounting.Accountant(terms).epsilon(9)
  # By whole orders alone: never less, and hardly more.
  assert 1 <= found / accounting.Accountant(everybody).epsilon(9) < 1.01
  assert accounting.solve(1000, 10, 9, found, 1e-4, False) == pytest.approx(4, rel=0.01)


def test_the_noise_that_a_budget_needs_is_enough_and_little_more():
  z = accounting.solve(500, 500, 20, 5.0, 1e-4)
  accountant = accounting.Accountant(_terms(500, 500, (z,), 1e-4))
  assert 4.7 < accountant.epsilon(20) <= 5.0
  assert accountant.rounds_within(5.0, 100) in (20, 21, 22)
  assert accountant.rounds_within(1e9, 100) == 100
  assert accountant.rounds_within(1e-9, 100) == 0


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ((10, 11, (1.0,), 1e-3), 'cohort is 11; it must be between 1 and 10'),
    ((10, 5, (1.0,), 0.1), 'delta is 0.1; it must be above 0 and below 1 / 10'),
    ((10, 5, (), 1e-3), 'must release something'),
    ((10, 5, (0.0,), 1e-3), "multiplier of 'value_0' is 0.0; it must be positive"),
  ],
)
def test_terms_out_of_range_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    _terms(*arguments)


def test_how_cohorts_are_drawn_is_one_of_two_ways():
  with pytest.raises(ValueError, match="sampling is 'any'; it must be one of fixed, p"):
    accounting.Terms(10, 5, {'x': 1.0}, 1e-3, sampling='any')
  with pytest.raises(ValueError, match="'poisson' where who is in a cohort is known"):
    accounting.Terms(10, 5, {'x': 1.0}, 1e-3, False, accounting.POISSON)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ((500, 500, 0, 1.0, 1e-4), 'rounds is 0'),
    ((500, 500, 1, -1.0, 1e-4), 'epsilon is -1.0; it must be positive'),
  ],
)
def test_budgets_out_of_range_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    accounting.solve(*arguments)
