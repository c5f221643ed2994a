"""Privacy that is counted, against dp_accounting asked directly and closed forms."""

import collections
import itertools

import numpy as np
import pytest
from scipy import stats

from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import divergences
from tff_ssl.runs.privacy import noise_search
from tff_ssl.runs.privacy import privacy_ledger
from tff_ssl.simulation import cohort_sampling


def _terms(population, cohort, multipliers, delta):
  named = {f'value_{k}': z for k, z in enumerate(multipliers)}
  return accounting.Terms(population, cohort, named, delta)


def _by_renyi(terms):
  return accounting.Accountant(terms, divergences.orders(terms.gaussian))


@pytest.mark.parametrize(
  ('sampling', 'rounds', 'epsilon'),
  [
    # 1.2 epochs without subsampling: an example is seen twice, as a client in passes.
    (accounting.PASSES, 12, 10.8602036),
    # With microbatching an example moves a sum by two clip norms, as a client that is
    # replaced, which counts as if in each of two rounds.
    (accounting.FIXED, 2, 26.2880374),
  ],
)
def test_without_amplification_figures_of_tensorflow_privacy(sampling, rounds, epsilon):
  """compute_dp_sgd_privacy_test.py of TensorFlow Privacy 0.9.0: noise 0.7 at 1e-5."""
  terms = accounting.Terms(
    100, 10, {'x': 0.7}, 1e-5, amplified=False, sampling=sampling
  )
  got = _by_renyi(terms).epsilon_after(rounds)
  assert got == pytest.approx(epsilon, abs=1e-7)


def test_all_clients_or_passes_cost_the_exact_loss_of_one_gaussian():
  """Balle and Wang, "Improving the Gaussian Mechanism", ICML 2018, theorem 8."""
  for terms, moved in ((_terms(50, 50, (4.0, 4.0), 1e-3), 2), (_of_passes(50, 25), 1)):
    # Ten rounds, of which a client of passes is in every second.
    found, name = accounting.Accountant(terms).counted_after(10)
    mu = moved * (10 if moved == 2 else 5) ** 0.5 / terms.of_round
    assert name == accounting.EXACT and found < _by_renyi(terms).epsilon_after(10)
    assert _gaussian_delta(mu, found) <= 1e-3 < _gaussian_delta(mu, found - 1e-6)


def test_without_the_help_of_sampling_a_client_is_as_if_in_every_round():
  of_any_noise = {'amplified': False, 'gaussian': False}
  terms = accounting.Terms(1000, 10, {'x': 4.0}, 1e-4, **of_any_noise)
  everybody = accounting.Terms(1000, 1000, {'x': 4.0}, 1e-4)
  found = accounting.Accountant(terms).epsilon_after(9)
  # By whole orders alone: never less, and hardly more.
  assert 1 < found / _by_renyi(everybody).epsilon_after(9) < 1.01
  z = noise_search.solve(1000, 10, 9, found, 1e-4, **of_any_noise)
  assert z == pytest.approx(4, rel=0.01)


def test_the_noise_that_a_budget_needs_is_enough_and_little_more():
  z = noise_search.solve(500, 500, 20, 5.0, 1e-4)
  accountant = accounting.Accountant(_terms(500, 500, (z,), 1e-4))
  assert 4.7 < accountant.epsilon_after(20) <= 5.0
  assert accountant.rounds_within(5.0, 100) in (20, 21, 22)
  assert accountant.rounds_within(1e9, 100) == 100
  assert accountant.rounds_within(1e-9, 100) == 0


# Population, cohort, rounds, epsilon, delta.
_BUDGETS = [
  (50_000, 512, 150, 8.0, 1e-5),
  (359, 64, 50, 8.0, 1e-4),
  (355, 4, 20, 0.1, 1e-3),
  (355, 4, 20, 50.0, 1e-3),
]
_KINDS = {
  'fixed': {},
  'poisson': {'sampling': accounting.POISSON},
  'passes': {'sampling': accounting.PASSES, 'amplified': False},
  'distributed': {'amplified': False, 'gaussian': False},
}


@pytest.mark.long_for('budget1-fixed', 'budget1-poisson', 'budget3-fixed')
@pytest.mark.parametrize('kind', _KINDS)
@pytest.mark.parametrize('budget', _BUDGETS)
def test_the_noise_of_a_budget_spends_it(budget, kind):
  """By dp_accounting's own orders: the budget is kept, and 1 % of it left at most."""
  population, cohort, rounds, epsilon, delta = budget
  z = noise_search.solve(*budget, **_KINDS[kind])
  terms = accounting.Terms(population, cohort, {'x': z}, delta, **_KINDS[kind])
  accountant = accounting.Accountant(terms)
  assert 0.99 * epsilon <= accountant.epsilon_after(rounds) <= epsilon


@pytest.mark.parametrize('kind', _KINDS)
@pytest.mark.parametrize('epsilon', [0.01, 0.1, 50.0])
@pytest.mark.parametrize('delta', [1e-3, 1e-12])
def test_small_and_large_budgets_are_spent_too(kind, epsilon, delta):
  z = noise_search.solve(900, 9, 3, epsilon, delta, **_KINDS[kind])
  terms = accounting.Terms(900, 9, {'x': z}, delta, **_KINDS[kind])
  assert 0.95 * epsilon <= accounting.Accountant(terms).epsilon_after(3) <= epsilon
  assert not noise_search.why_unspent(terms, 3, epsilon)
  if kind in ('passes', 'distributed'):
    # The exact loss, of a client in one round or in all three, is more than half.
    moved = 1.0 if kind == 'passes' else 2 * 3**0.5
    assert _gaussian_delta(moved / z, 0.5 * epsilon) > delta
  else:
    assert z < noise_search.solve(900, 9, 3, epsilon, delta, **_KINDS['distributed'])


def _gaussian_delta(mu, epsilon):
  """Balle and Wang, theorem 8: delta of two Gaussians mu deviations apart."""
  near, far = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
  return stats.norm.cdf(near) - np.exp(epsilon + stats.norm.logcdf(far))


def test_a_run_has_less_noise_and_an_older_one_keeps_its_own(tmp_path):
  asked = 50_000, 2_048, 150, 8.0, 1e-5, True, accounting.POISSON
  earlier, z = (noise_search.solve(*asked, is_renyi=each) for each in (True, False))
  assert (earlier, z) == pytest.approx((0.7343, 0.6926), abs=2e-4)
  for noise in (earlier, z):
    folder = tmp_path / str(noise)
    assert noise_search.of_run(str(folder), *asked) == z
    # Two releases of a round, whose noise gives it only nearly again.
    each = {'x': noise * 1.25**0.5, 'y': noise * 5**0.5}
    terms = accounting.Terms(50_000, 2_048, each, 1e-5, sampling=accounting.POISSON)
    folder.mkdir()
    privacy_ledger.Ledger(folder, terms.as_json())
    assert noise_search.of_run(str(folder), *asked) == noise
    epsilon, name = accounting.Accountant(terms).counted_after(150)
    assert name == accounting.LOSSES
    # By dp_accounting's PLD accountant, of the noise of both versions.
    assert epsilon == pytest.approx(6.92 if noise == earlier else 8, abs=3e-3)
    assert epsilon <= 8


def test_noise_that_leaves_a_budget_says_why():
  terms = accounting.Terms(1000, 10, {'x': 0.01}, 1e-5, sampling=accounting.POISSON)
  assert noise_search.why_unspent(terms, 1, 1e6).endswith(
    '% of the budget, because no less noise than 0.01 clip norms is chosen'
  )


@pytest.mark.parametrize('kind', _KINDS)
def test_a_budget_that_cannot_be_shown_says_the_least(kind):
  with pytest.raises(
    ValueError, match=r'epsilon is 1e-08 with delta 1e-12; it must be at least \d'
  ) as raised:
    noise_search.solve(1000, 10, 100, 1e-8, 1e-12, **_KINDS[kind])
  least = float(str(raised.value).split('at least ')[1].split(',')[0])
  assert 1e-5 < least < 0.01


def _of_passes(population, cohort, z=1.0, delta=1e-3, **others):
  return accounting.Terms(
    population, cohort, {'x': z}, delta, False, accounting.PASSES, **others
  )


@pytest.mark.parametrize('seed', range(25))
def test_passes_count_no_fewer_releases_than_any_client_is_in(seed):
  """Rounds that are repeated after kills, by brute force over clients and choices."""
  generator = np.random.default_rng(seed)
  population, cohort = int(generator.integers(4, 9)), int(generator.integers(1, 4))
  terms = _of_passes(population, cohort, delta=1e-2)
  clients = [f'client{k}' for k in range(population)]
  cohorts = cohort_sampling.PassCohorts(clients, cohort, seed)
  rounds, kept = [], 0
  # Each life begins at a checkpoint, makes some rounds and is killed.
  for _ in range(int(generator.integers(1, 6))):
    first = int(generator.integers(0, kept + 1))
    kept = first + int(generator.integers(1, 6))
    rounds += range(first + 1, kept + 1)
  counted = terms.history(rounds).counts.releases
  of_clients = collections.Counter(c for r in rounds for c in cohorts(r))
  assert counted >= max(of_clients.values())
  # No more than a client that is, in each pass, in the round repeated most.
  per_pass = population // cohort
  times = collections.Counter(rounds)
  passes = [
    [times[r] for r in times if (r - 1) // per_pass == p]
    for p in {(r - 1) // per_pass for r in times}
  ]
  assert counted == max(sum(choice) for choice in itertools.product(*passes))
  # Torn lines may be of any client.
  assert terms.history([*rounds, None, None]).counts.releases == counted + 2
  # Fewer lines never count more.
  assert terms.history(rounds[:-1]).counts.releases <= counted <= len(rounds)


@pytest.mark.parametrize(('population', 'cohort', 'rounds'), [
  (50_000, 512, 150), (10, 3, 9), (10, 3, 10), (10, 10, 4), (7, 4, 3), (9, 3, 1),
])  # fmt: skip
def test_rounds_that_are_not_repeated_count_as_often_as_a_client_takes_part(
  population, cohort, rounds
):
  terms = _of_passes(population, cohort, delta=1e-6)
  expected = terms.history(range(1, rounds + 1)).counts.releases
  assert terms.counted_once(rounds) == expected
  if population < 100:
    cohorts = cohort_sampling.PassCohorts(
      [str(k) for k in range(population)], cohort, 1
    )
    taken = collections.Counter(c for r in range(1, rounds + 1) for c in cohorts(r))
    assert max(taken.values()) == expected
  else:
    assert expected == 2


def test_a_budget_in_passes_is_spent_by_passes():
  accountant = accounting.Accountant(_of_passes(10, 3))
  budget = accountant.epsilon_after(6) + 1e-9
  assert accountant.rounds_within(budget, 100) == 6
  assert accountant.epsilon_after(6) < accountant.epsilon_after(7)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ((10, 11, (1.0,), 1e-3), 'cohort is 11; it must be between 1 and 10'),
    ((10, 5, (1.0,), 0.1), 'delta is 0.1; it must be above 0 and below 1 / 10'),
    ((10, 5, (), 1e-3), 'must release something'),
    ((10, 5, (0.0,), 1e-3), "multiplier of 'value_0' is 0.0; it must be above 0 and"),
  ],
)
def test_terms_out_of_range_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    _terms(*arguments)


def test_how_cohorts_are_drawn_is_one_of_three_ways():
  with pytest.raises(ValueError, match="sampling is 'any'; it must be one of fixed, p"):
    accounting.Terms(10, 5, {'x': 1.0}, 1e-3, sampling='any')
  with pytest.raises(ValueError, match="'poisson' although it is known"):
    accounting.Terms(10, 5, {'x': 1.0}, 1e-3, False, accounting.POISSON)
  with pytest.raises(ValueError, match="amplified is True with sampling 'passes'"):
    accounting.Terms(10, 5, {'x': 1.0}, 1e-3, True, accounting.PASSES)
  with pytest.raises(
    ValueError, match='True with noise that is not Gaussian; it must be F'
  ):
    accounting.Terms(10, 5, {'x': 1.0}, 1e-3, gaussian=False)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ((500, 500, 0, 1.0, 1e-4), 'rounds is 0'),
    ((500, 500, 1, -1.0, 1e-4), 'epsilon is -1.0; it must be positive'),
    ((500, 500, 1, 1.0, 0.0), 'delta is 0; it must be above 0 and below 1 / 500'),
  ],
)
def test_budgets_out_of_range_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    noise_search.solve(*arguments)
