"""Epsilon by the privacy loss, against dp_accounting's own and a closed form."""

import math

from dp_accounting.pld import privacy_loss_distribution
import numpy as np
import pytest

from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import divergences
from tff_ssl.runs.privacy import loss_distributions
from tff_ssl.runs.privacy import release_history


def _epsilon(chance, z, delta, rounds, torn=0):
  losses = loss_distributions.PoissonLosses(chance, z, delta)
  return losses.epsilon(release_history.Counts(rounds, torn))


def _by_dp_accounting(chance, z, delta, rounds, is_bound):
  """Returns an upper bound of epsilon, within 0.1 %, or a lower one."""
  parts = []
  for times, count in rounds.items():
    one = privacy_loss_distribution.from_gaussian_mechanism(
      z / math.sqrt(times),
      pessimistic_estimate=is_bound,
      value_discretization_interval=1e-3,
      sampling_prob=chance,
      use_connect_dots=is_bound,
    )
    parts.append(one.self_compose(count, 1e-15 if is_bound else 0))
  total, *others = parts
  for other in others:
    total = total.compose(other, 1e-15 if is_bound else 0)
  return total.get_epsilon_for_delta(delta)


@pytest.mark.parametrize(
  ('chance', 'z', 'delta', 'rounds'),
  [
    (0.04096, 0.734, 1e-5, {1: 5}),
    (0.04, 2.0, 1e-5, {1: 20}),
    (0.01, 1.0, 1e-6, {1: 30}),
    (0.01, 1.0, 1e-6, {2: 3, 1: 27}),
    (0.3, 5.0, 1e-5, {1: 10}),
    (0.9, 5.0, 1e-6, {1: 1}),
  ],
)
def test_epsilon_is_between_the_bounds_of_dp_accounting(chance, z, delta, rounds):
  found = _epsilon(chance, z, delta, rounds)
  bound, lower = (
    _by_dp_accounting(chance, z, delta, rounds, is_bound) for is_bound in (True, False)
  )
  assert lower <= found and 0.999 * bound <= found <= 1.002 * bound
  # In the other order, as after a resume, to the last bit.
  assert found == _epsilon(chance, z, delta, dict(reversed(rounds.items())))


@pytest.mark.parametrize('delta', [1e-4, 1e-9])
@pytest.mark.parametrize(('z', 'releases'), [(2.0, 1), (30.0, 900), (1.0, 3)])
def test_gaussians_without_sampling_cost_their_closed_form(z, releases, delta):
  exact = loss_distributions.gaussian_epsilon(math.sqrt(releases) / z, delta)
  for rounds, torn in (({1: releases}, 0), ({}, releases), ({1: releases - 1}, 1)):
    found = _epsilon(1.0, z, delta, {t: n for t, n in rounds.items() if n}, torn)
    assert exact <= found <= 1.002 * exact


def test_epsilon_of_a_gaussian_is_the_textbooks():
  # z = 3.730632 has epsilon 1 at delta 1e-5 (Balle and Wang, section 4); without noise
  # to speak of it is that of the densities' ratio, and of no shift it is 0.
  exact = ((1 / 3.730632, 1.0, 1e-4), (100.0, 5000, 500), (0.0, 0, 0), (1e-6, 0, 0))
  for shift, expected, most in exact:
    found = loss_distributions.gaussian_epsilon(shift, 1e-5)
    assert found == pytest.approx(expected, abs=most)


def test_epsilon_grows_with_every_round_and_stays_tight_in_long_runs():
  terms = accounting.Terms(10**6, 1000, {'x': 1.0}, 1e-7, sampling=accounting.POISSON)
  accountant = accounting.Accountant(terms)
  renyi = accounting.Accountant(terms, divergences.orders(gaussian=True))
  rounds = [1, 2, 3, 10, 11, 100, 101, 5_000, 5_001, 100_000, 100_001]
  found = [accountant.epsilon_after(n) for n in rounds]
  assert np.all(np.diff(found) > 0)
  # By dp_accounting with steps of 1e-4: 2.0652.
  assert 2.065 < found[-2] < 2.07 < renyi.epsilon_after(100_000)


@pytest.mark.parametrize(('z', 'delta', 'rounds'), [(0.02, 1e-5, 50), (1.0, 1e-14, 9)])
def test_what_the_grid_cannot_hold_is_counted_by_renyi(z, delta, rounds):
  terms = accounting.Terms(100, 50, {'x': z}, delta, sampling=accounting.POISSON)
  assert accounting.Accountant(terms).losses_after(rounds) == math.inf
  assert accounting.Accountant(terms).counted_after(rounds)[1] == accounting.RENYI
