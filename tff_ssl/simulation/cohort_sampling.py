"""Sampling: the clients of a round, or the batch of a centralized round."""

from collections.abc import Sequence

import numpy as np

from tff_ssl.computing import checks
from tff_ssl.partition import ids as ids_lib


class Cohorts:
  """Draws the cohort of each round, uniformly and without replacement.

  A cohort is a function of the seed and the round alone: a run that resumes at round
  500 draws the same cohorts as an uninterrupted one, and the order in which rounds are
  asked for does not matter.
  """

  def __init__(self, client_ids: Sequence[str], clients_per_round: int, seed: int):
    """Fixes the population.

    Args:
      client_ids: All clients; their order does not matter.
      clients_per_round: Size of a cohort, at most the number of clients.
      seed: Non-negative.

    Raises:
      ValueError: If ids repeat, the cohort cannot be drawn or the seed is negative.
    """
    self._client_ids = _population(client_ids, clients_per_round, seed)
    self._clients_per_round = clients_per_round
    self._seed = seed

  def __call__(self, round: int) -> list[str]:
    """Returns the sorted client ids of a round.

    Args:
      round: Number of the round, not negative.
    """
    generator = np.random.default_rng([self._seed, round])
    return _draw(self._client_ids, self._clients_per_round, generator)


class PoissonCohorts(Cohorts):
  """Draws the cohort of each round by Poisson sampling: each client independently.

  All clients have the same chance: a cohort has `clients_per_round` clients on average,
  and may be empty. Differential privacy costs least this way. A function of the seed
  and the round alone, like `Cohorts`.
  """

  def __call__(self, round: int) -> list[str]:
    """Returns the sorted client ids of a round, which may be none.

    Args:
      round: Number of the round, not negative.
    """
    generator = np.random.default_rng([self._seed, round])
    # First how many, then which: as if each were drawn, without a random number each.
    population = len(self._client_ids)
    size = int(generator.binomial(population, self._clients_per_round / population))
    return _draw(self._client_ids, size, generator)


class PassCohorts(Cohorts):
  """Draws the cohorts of pass after pass through the population.

  Each pass draws a new order of all clients, and its rounds take the clients in that
  order: no client takes part twice in a pass. Remaining clients that are too few for
  another round do not take part in this pass. A function of the seed and the round
  alone, like `Cohorts`.
  """

  def __init__(self, client_ids: Sequence[str], clients_per_round: int, seed: int):
    """Fixes the population; arguments and errors as in `Cohorts`."""
    super().__init__(client_ids, clients_per_round, seed)
    self._rounds = rounds_of_pass(len(self._client_ids), clients_per_round)
    # The last order that was used: a permutation of many clients takes a while.
    self._last: tuple[int, np.ndarray] | None = None

  def __call__(self, round: int) -> list[str]:
    """Returns the sorted client ids of a round.

    Args:
      round: Number of the round, from 1.

    Raises:
      ValueError: If the round is below 1.
    """
    number, place = pass_of(round, self._rounds)
    if self._last is None or self._last[0] != number:
      generator = np.random.default_rng([self._seed, number])
      self._last = number, generator.permutation(len(self._client_ids))
    first = place * self._clients_per_round
    drawn = self._last[1][first : first + self._clients_per_round]
    return [self._client_ids[position] for position in np.sort(drawn)]


def rounds_of_pass(population: int, clients_per_round: int) -> int:
  """Returns the rounds of a pass in which a client takes part at most once.

  Args:
    population: N, all clients.
    clients_per_round: K, at most N.
  """
  return population // clients_per_round


def pass_of(round: int, rounds: int) -> tuple[int, int]:
  """Returns the pass that a round belongs to, and its place there, both from 0.

  Args:
    round: Its number, from 1.
    rounds: Number of rounds of a pass.

  Raises:
    ValueError: If the round is below 1.
  """
  if round < 1:
    raise ValueError(f'round is {round}; it must be at least 1, the first of a pass')
  return divmod(round - 1, rounds)


def _population(
  client_ids: Sequence[str], clients_per_round: int, seed: int
) -> ids_lib.Ids:
  """Returns the sorted ids, after checks."""
  # Sorted because positions are drawn: they must mean the same clients in any order.
  known = ids_lib.in_order(client_ids)
  if not 1 <= clients_per_round <= len(known):
    raise ValueError(
      f'clients_per_round is {clients_per_round}: it must be between 1 and '
      f'{len(known)}, the number of clients'
    )
  if seed < 0:
    raise ValueError(f'seed is {seed}: it must not be negative')
  return known


def _draw(
  client_ids: ids_lib.Ids, size: int, generator: np.random.Generator
) -> list[str]:
  """Draws `size` of the sorted clients; returns their ids in that order."""
  drawn = generator.choice(len(client_ids), size, replace=False, shuffle=False)
  return [client_ids[position] for position in np.sort(drawn)]


class Batches:
  """Draws the batch of each round from all examples, for centralized training.

  A function of the seed and the round alone, like `Cohorts`.
  """

  def __init__(self, positions: np.ndarray, batch_size: int, seed: int):
    """Initializes the draws.

    Args:
      positions: int64 [N], the examples to draw from.
      batch_size: Examples of a batch; all of them if there are fewer.
      seed: Non-negative.

    Raises:
      ValueError: If there is no example, or batch_size is below 1.
    """
    if not len(positions):
      raise ValueError('positions is empty: a batch needs at least one example')
    checks.at_least(1, batch_size=batch_size)
    self._positions = np.sort(positions)
    self._batch_size = min(batch_size, len(positions))
    self._seed = seed

  def __call__(self, round: int) -> np.ndarray:
    """Returns the sorted positions of a round's batch, without replacement."""
    generator = np.random.default_rng([self._seed, round])
    chosen = generator.choice(len(self._positions), self._batch_size, replace=False)
    return self._positions[np.sort(chosen)]
