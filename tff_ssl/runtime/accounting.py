"""Epsilon: what rounds with noise cost in differential privacy, by dp_accounting.

Ilya Mironov. Renyi Differential Privacy. CSF 2017; of cohorts of a fixed size Yu-Xiang
Wang, Borja Balle, Shiva Kasiviswanathan. Subsampled Renyi Differential Privacy and
Analytical Moments Accountant. AISTATS 2019, theorem 27.

The unit of privacy is a client. How rounds are counted depends on how their cohorts are
drawn:

  - `sampling.Cohorts`, of a fixed size without replacement. The theorem for that
    compares populations in which one client is replaced by another; a sum of clients
    that are clipped to a norm C then changes by up to 2 C, so that noise of z C counts
    as a multiplier of z / 2.
  - `sampling.PoissonCohorts`, each client by a chance of its own (Poisson sampling;
    Mironov, Talwar and Zhang, "Renyi Differential Privacy of the Sampled Gaussian
    Mechanism", 2019). Populations with one client more or less are compared, a sum
    changes by up to C, and the number of clients of a round is a secret.
  - `sampling.PassCohorts`, pass after pass through the population. Who is in a
    cohort may be known, and does not lessen epsilon: what counts is how often a client
    takes part, at most once a pass. Compared are populations in one of which a client
    contributes zeros, with its number of examples and its place in the cohorts as they
    are (zero-out, of Kairouz et al., "Practical and Private (Deep) Learning without
    Sampling or Shuffling", ICML 2021); a sum changes by up to C.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
import importlib.metadata
import math
from typing import Any

import dp_accounting
import numpy as np

from tff_ssl.computing import checks
from tff_ssl.runtime import sampling as sampling_lib

# The library that counts and its version, for whoever checks the numbers.
NAME = f'dp_accounting {importlib.metadata.version("dp-accounting")}, Renyi'
# How cohorts are drawn.
FIXED, POISSON, PASSES = 'fixed', 'poisson', 'passes'
# By how many clip norms a client moves a sum: if it is replaced, added, or zeros.
_SENSITIVITY = {FIXED: 2.0, POISSON: 1.0, PASSES: 1.0}
# dp_accounting does not use the relation for Gaussian noise without sampling (passes).
_NEIGHBOURS = {
  FIXED: dp_accounting.NeighboringRelation.REPLACE_ONE,
  POISSON: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
  PASSES: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}
# Renyi orders alpha for noise that is not Gaussian: of it only whole ones are known.
_WHOLE_ORDERS = (*range(2, 64), 128, 256, 512, 1024)
# Those that the search for noise begins with: a quarter of dp_accounting's, in a tenth
# of its time. Epsilon by fewer orders is never smaller.
_FEW_ORDERS = (1.1, 1.25, 1.5, 1.75, *range(2, 33), 40, 50, 63)
# Noise multipliers of a round between which the search looks.
_LEAST, _MOST = 1e-2, 1e6
# The share of a budget that the search may leave unspent, and how often it chooses
# orders anew for that.
_LEFT, _REFINED = 0.005, 5
# How many orders on each side of the best one it takes then.
_NEAR = 4


@dataclasses.dataclass(frozen=True)
class Terms:
  """What each round of a run releases, and how its cohort is drawn.

  Attributes:
    population: N, all clients.
    cohort: K, clients of a round, drawn without replacement; in the mean, where each
      is drawn by itself.
    multipliers: By the name of what a round releases, the standard deviation of its
      noise over the clip norm.
    delta: Of (epsilon, delta); below 1 / N.
    amplified: Whether sampling lowers epsilon (privacy amplification): only where noise
      is Gaussian and who is in a cohort is secret. Else a client counts as if in every
      round, or in one of each pass.
    sampling: How cohorts are drawn: `FIXED`, `POISSON` or `PASSES`.
    gaussian: Whether the noise is Gaussian. Of other noise the Renyi divergence is
      known at whole orders alone.
  """

  population: int
  cohort: int
  multipliers: Mapping[str, float]
  delta: float
  amplified: bool = True
  sampling: str = FIXED
  gaussian: bool = True

  def __post_init__(self):
    if self.sampling not in _NEIGHBOURS:
      raise ValueError(
        f'sampling is {self.sampling!r}; it must be one of {", ".join(_NEIGHBOURS)}.'
      )
    if self.sampling == POISSON and not self.amplified:
      raise ValueError(
        f'sampling is {POISSON!r} where who is in a cohort is known; it must be '
        f'{FIXED!r}, of which a client may count as if in every round.'
      )
    if self.sampling == PASSES and self.amplified:
      raise ValueError(
        f'amplified is True where sampling is {PASSES!r}; it must be False, for '
        'nothing is made there of who is in a cohort.'
      )
    if self.amplified and not self.gaussian:
      raise ValueError(
        'amplified is True where noise is not Gaussian; it must be False, for what '
        'sampling helps then is not known.'
      )
    if not 1 <= self.cohort <= self.population:
      raise ValueError(
        f'cohort is {self.cohort}; it must be between 1 and {self.population}, the '
        'number of clients.'
      )
    if not 0 < self.delta < 1 / self.population:
      raise ValueError(
        f'delta is {self.delta:g}; it must be above 0 and below 1 / '
        f'{self.population}, one over the number of clients.'
      )
    if not self.multipliers:
      raise ValueError('multipliers is empty; a round must release something.')
    for name, value in self.multipliers.items():
      if not (math.isfinite(value) and value > 0):
        raise ValueError(
          f'The noise multiplier of {name!r} is {value}; it must be positive and '
          'finite.'
        )

  @property
  def of_round(self) -> float:
    """Returns z, the multiplier of all releases of a round together."""
    return sum(z**-2 for z in self.multipliers.values()) ** -0.5

  def counted(self, rounds: Iterable[int | None]) -> int:
    """Returns in how many of the releases one client can be.

    That is all of them, but for passes: there a client is in at most one round of each
    pass, and in all releases of that round where it was repeated after a kill.

    Args:
      rounds: The round of each release, from 1; None where it is not known: any client
        may be in it.
    """
    if self.sampling != PASSES:
      return sum(1 for _ in rounds)
    per_pass = sampling_lib.rounds_of_pass(self.population, self.cohort)
    times = collections.Counter(rounds)
    total, most = 0, collections.Counter[int]()
    for round, count in times.items():
      if round is None:
        total += count
        continue
      number, _ = sampling_lib.pass_of(round, per_pass)
      most[number] = max(most[number], count)
    return total + most.total()

  def counted_once(self, rounds: int) -> int:
    """Returns `counted` of rounds 1 to `rounds`, none of them repeated."""
    if self.sampling != PASSES:
      return rounds
    per_pass = sampling_lib.rounds_of_pass(self.population, self.cohort)
    return -(-rounds // per_pass)

  def event(self) -> dp_accounting.DpEvent:
    """Returns all releases of one round that a client can be in, for dp_accounting."""
    released = dp_accounting.ComposedDpEvent(
      [
        dp_accounting.GaussianDpEvent(z / _SENSITIVITY[self.sampling])
        for z in self.multipliers.values()
      ]
    )
    if self.sampling == POISSON:
      return dp_accounting.PoissonSampledDpEvent(
        self.cohort / self.population, released
      )
    if self.sampling == PASSES:
      return released
    return dp_accounting.SampledWithoutReplacementDpEvent(
      self.population, self.cohort if self.amplified else self.population, released
    )

  @classmethod
  def from_json(cls, stored: Mapping[str, Any]) -> 'Terms':
    """Returns the terms that `as_json` made of them; other names are left out.

    Raises:
      ValueError: If a value is missing, or is of another type.
    """
    own = {field.name: field for field in dataclasses.fields(cls)}
    for name, field in own.items():
      if name not in stored and field.default is dataclasses.MISSING:
        raise ValueError(f'{name} is missing; there must be one.')
    try:
      return cls(**{name: stored[name] for name in own if name in stored})
    except (AttributeError, TypeError) as error:
      raise ValueError(f'a value is of another type: {error}.') from error

  def as_json(self) -> dict[str, Any]:
    """Returns the terms as JSON values."""
    return {
      'population': self.population,
      'cohort': self.cohort,
      'multipliers': dict(self.multipliers),
      'delta': self.delta,
      'amplified': self.amplified,
      'sampling': self.sampling,
      'gaussian': self.gaussian,
    }


def new_accountant(
  orders: Sequence[float] | None = None, sampling: str = FIXED
) -> dp_accounting.rdp.RdpAccountant:
  """Returns an accountant of dp_accounting, with the relation that fits the sampling.

  Args:
    orders: alpha of the Renyi divergences; dp_accounting's when None.
    sampling: See `Terms`.
  """
  return dp_accounting.rdp.RdpAccountant(orders, _NEIGHBOURS[sampling])


class Accountant:
  """Epsilon of any number of rounds on the same terms."""

  def __init__(self, terms: Terms, orders: Sequence[float] | None = None):
    """Computes the Renyi divergences of one round; those of more are multiples.

    Args:
      terms: Of each round.
      orders: See `new_accountant`. Any give a bound; more give a better one.
    """
    if not terms.gaussian:
      orders = _WHOLE_ORDERS
    one = new_accountant(orders, terms.sampling).compose(terms.event())
    self._terms = terms
    self._orders = one.orders
    self._of_one = one.rdp

  def epsilon(self, counted: int) -> float:
    """Returns epsilon at the delta of the terms.

    Args:
      counted: Releases, as `Terms.counted` counts them.
    """
    return self._epsilon(counted)[0]

  def _epsilon(self, counted: int) -> tuple[float, float]:
    """Returns epsilon, and the Renyi order that it comes from."""
    if not counted:
      return 0.0, float(self._orders[-1])
    found, order = dp_accounting.rdp.compute_epsilon(
      self._orders, counted * self._of_one, self._terms.delta
    )
    return float(found), float(order)

  def epsilon_after(self, rounds: int) -> float:
    """Returns epsilon after so many rounds, none of them repeated."""
    return self.epsilon(self._terms.counted_once(rounds))

  def orders_near_best(self, rounds: int) -> list[float]:
    """Returns the order that `epsilon_after` comes from, and some on each side."""
    _, best = self._epsilon(self._terms.counted_once(rounds))
    ordered = sorted(self._orders)
    place = int(np.argmin(np.abs(np.array(ordered) - best)))
    return ordered[max(place - _NEAR, 0) : place + _NEAR + 1]

  def rounds_within(self, epsilon: float, most: int) -> int:
    """Returns how many rounds stay within a budget, at most `most`."""
    low, high = 0, most
    while low < high:
      middle = (low + high + 1) // 2
      if self.epsilon_after(middle) <= epsilon:
        low = middle
      else:
        high = middle - 1
    return low


@functools.lru_cache(maxsize=32)
def solve(
  population: int,
  cohort: int,
  rounds: int,
  epsilon: float,
  delta: float,
  amplified: bool = True,
  sampling: str = FIXED,
  gaussian: bool = True,
) -> float:
  """Returns the least noise of a round with which a run stays within a budget.

  Args:
    population: N.
    cohort: K.
    rounds: Of the run.
    epsilon: The budget, positive.
    delta: Below 1 / N.
    amplified: See `Terms`.
    sampling: See `Terms`.
    gaussian: See `Terms`.

  Returns:
    z, the multiplier of all releases of a round together: with it a run spends at most
    the budget, and as a rule more than 99 % of it. dp_accounting's orders begin above 1
    and end at 1,024: of a budget whose best order lies beyond them, more may be left.

  Raises:
    ValueError: If a number is out of range, or no noise is enough.
  """
  checks.positive(epsilon=epsilon)
  checks.at_least(1, rounds=rounds)

  def accountant(z: float, orders: Sequence[float] | None) -> Accountant:
    terms = Terms(
      population, cohort, {'round': z}, delta, amplified, sampling, gaussian
    )
    return Accountant(terms, orders)

  def least(orders: Sequence[float], low: float, high: float, factor: float) -> float:
    """Returns noise that is enough by these orders, to within a factor."""
    while high > factor * low:
      middle = float(np.sqrt(low * high))
      is_enough = accountant(middle, orders).epsilon_after(rounds) <= epsilon
      low, high = (low, middle) if is_enough else (middle, high)
    return high

  low, high = _LEAST, 1.0
  while accountant(high, _FEW_ORDERS).epsilon_after(rounds) > epsilon:
    low, high = high, 2.0 * high
    if high > _MOST:
      raise ValueError(
        f'epsilon is {epsilon:g} with delta {delta:g}; no noise keeps {rounds} rounds '
        'within it: it must be larger.'
      )
  z = least(_FEW_ORDERS, low, high, 1.01)
  for _ in range(_REFINED):
    # By all orders, as a run's spending is counted. The search goes on with the best of
    # them and those next to it.
    full = accountant(z, None)
    if full.epsilon_after(rounds) >= (1 - _LEFT) * epsilon:
      break
    z = least(full.orders_near_best(rounds), _LEAST, z, 1.0005)
  return z
