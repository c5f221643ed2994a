import collections

import numpy as np
import pytest

from tff_ssl.simulation import cohort_sampling

CLIENTS = [f'client{i}' for i in range(10)]


def test_a_cohort_depends_on_seed_and_round_alone():
  cohorts = cohort_sampling.Cohorts(CLIENTS, 4, seed=3)
  later = cohorts(7)
  cohorts(1)
  assert cohorts(7) == later
  assert cohort_sampling.Cohorts(CLIENTS[::-1], 4, seed=3)(7) == later
  assert cohort_sampling.Cohorts(CLIENTS, 4, seed=4)(7) != later
  assert any(cohorts(round) != later for round in range(5))


def test_cohorts_are_sorted_and_without_replacement():
  for round in range(20):
    cohort = cohort_sampling.Cohorts(CLIENTS, 4, seed=0)(round)
    assert cohort == sorted(set(cohort))
    assert len(cohort) == 4


def test_all_clients_take_part_equally_often():
  cohorts = cohort_sampling.Cohorts(CLIENTS, 3, seed=0)
  counts = collections.Counter(c for round in range(2000) for c in cohorts(round))
  # Binomial(2000, 0.3): mean 600, standard deviation 20.5.
  assert all(abs(counts[client] - 600) < 90 for client in CLIENTS)


def test_the_whole_population_can_take_part():
  assert cohort_sampling.Cohorts(CLIENTS, 10, seed=0)(1) == CLIENTS


def test_in_poisson_cohorts_each_client_is_by_a_chance_of_its_own():
  cohorts = cohort_sampling.PoissonCohorts(CLIENTS, 3, seed=5)
  drawn = [cohorts(round) for round in range(4000)]
  assert drawn[7] == cohort_sampling.PoissonCohorts(CLIENTS[::-1], 3, seed=5)(7)
  assert all(cohort == sorted(set(cohort)) for cohort in drawn)
  present = np.array([[client in cohort for client in CLIENTS] for cohort in drawn])
  # Binomial(4000, 0.3): mean 1200, standard deviation 29. Of two clients together
  # 0.3^2 of 4000: 360, standard deviation 18.1.
  together = present.T.astype(int) @ present
  assert np.all(np.abs(np.diag(together) - 1200) < 130)
  assert np.all(np.abs(together[~np.eye(10, dtype=bool)] - 360) < 82)
  sizes = present.sum(axis=1)
  # Of sizes Binomial(10, 0.3); none at all 0.7^10 of the time: 113 of 4000.
  assert sizes.var() == pytest.approx(2.1, abs=0.25)
  assert 113 - 50 < np.sum(sizes == 0) < 113 + 50


@pytest.mark.parametrize('seed', range(25))
def test_in_a_pass_no_client_takes_part_twice(seed):
  size = 1 + seed % 7
  cohorts = cohort_sampling.PassCohorts(CLIENTS, size, seed)
  rounds = 10 // size
  drawn = {round: cohorts(round) for round in range(1, 4 * rounds + 1)}
  passes = [
    [
      client
      for round in range(1 + p * rounds, 1 + (p + 1) * rounds)
      for client in drawn[round]
    ]
    for p in range(4)
  ]
  for clients in passes:
    assert len(clients) == len(set(clients)) == rounds * size
  assert all(cohort == sorted(cohort) for cohort in drawn.values())
  # Of the seed and the round alone; the order is another in each pass.
  again = cohort_sampling.PassCohorts(CLIENTS[::-1], size, seed)
  for round in (4 * rounds, 1, 2 * rounds + 1):
    assert again(round) == drawn[round]
  assert len({tuple(clients) for clients in passes}) > 1


def test_in_passes_all_clients_take_part_equally_often():
  cohorts = cohort_sampling.PassCohorts(CLIENTS, 3, seed=0)
  counts = collections.Counter(c for r in range(1, 2001) for c in cohorts(r))
  # Three rounds of a pass take nine of ten: each sits out a tenth of 667 passes.
  assert all(abs(counts[client] - 600) < 40 for client in CLIENTS)
  with pytest.raises(ValueError, match='round is 0; it must be at least 1'):
    cohorts(0)


@pytest.mark.parametrize(
  'kind',
  [
    cohort_sampling.Cohorts,
    cohort_sampling.PoissonCohorts,
    cohort_sampling.PassCohorts,
  ],
)
@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ((CLIENTS, 11, 0), 'clients_per_round is 11: .* between 1 and 10'),
    ((CLIENTS, 0, 0), 'clients_per_round is 0'),
    (([*CLIENTS, 'client1'], 2, 0), 'twice'),
    ((CLIENTS, 2, -1), 'seed is -1'),
  ],
)
def test_bad_input(kind, arguments, message):
  with pytest.raises(ValueError, match=message):
    kind(*arguments)
