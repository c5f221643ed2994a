"""Epsilon: what rounds with noise cost in differential privacy, by dp_accounting.

Ilya Mironov. Renyi Differential Privacy. CSF 2017. For cohorts of a fixed size:
Yu-Xiang Wang, Borja Balle, Shiva Kasiviswanathan. Subsampled Renyi Differential Privacy
and Analytical Moments Accountant. AISTATS 2019, theorem 27.

The unit of privacy is a client. How rounds are counted depends on how their cohorts are
drawn:

  - `sampling.Cohorts`: of a fixed size, without replacement. The theorem compares
    populations in which one client is replaced by another. A sum over clients clipped
    to a norm C then changes by up to 2 C, so that noise of z C counts as a multiplier
    of z / 2.
  - `sampling.PoissonCohorts`: each client joins independently (Poisson sampling;
    Mironov, Talwar and Zhang, "Renyi Differential Privacy of the Sampled Gaussian
    Mechanism", 2019). Populations with one client more or less are compared, a sum
    changes by up to C, and the number of clients of a round is a secret.
  - `sampling.PassCohorts`: pass after pass through the population. Who is in a cohort
    may be known: sampling does not lower epsilon. Only how often a client takes part
    counts, which is at most once a pass. The populations compared differ in one client,
    which contributes zeros in one of them and keeps its number of examples and its
    place in the cohorts (zero-out, of Kairouz et al., "Practical and Private (Deep)
    Learning without Sampling or Shuffling", ICML 2021). A sum changes by up to C.
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

# The accounting library and its version, for readers who check the numbers.
NAME = f'dp_accounting {importlib.metadata.version("dp-accounting")}, Renyi'
# How cohorts are drawn.
FIXED, POISSON, PASSES = 'fixed', 'poisson', 'passes'
# By how many clip norms a client that is replaced, added or zeroed moves a sum.
_SENSITIVITY = {FIXED: 2.0, POISSON: 1.0, PASSES: 1.0}
# dp_accounting does not use the relation for Gaussian noise without sampling (passes).
_NEIGHBOURS = {
  FIXED: dp_accounting.NeighboringRelation.REPLACE_ONE,
  POISSON: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
  PASSES: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}
# Renyi orders alpha for noise that is not Gaussian: only whole ones are known for it.
_WHOLE_ORDERS = (*range(2, 64), 128, 256, 512, 1024)
# Orders that the search for noise begins with: a quarter of dp_accounting's, in a tenth
# of its time. Epsilon by fewer orders is never smaller.
_FEW_ORDERS = (1.1, 1.25, 1.5, 1.75, *range(2, 33), 40, 50, 63)
# The search looks between these noise multipliers of a round.
_LEAST, _MOST = 1e-2, 1e6
# The share of a budget that the search may leave unspent, and at most how often it
# chooses new orders to get there.
_LEFT, _REFINED = 0.005, 5
# How many orders on each side of the best one it then takes.
_NEAR = 4


@dataclasses.dataclass(frozen=True)
class Terms:
  """What each round of a run releases, and how its cohort is drawn.

  Attributes:
    population: N, all clients.
    cohort: K, clients of a round, drawn without replacement; the mean number where each
      client joins independently.
    multipliers: By the name of what a round releases, the standard deviation of its
      noise over the clip norm.
    delta: Of (epsilon, delta); below 1 / N.
    amplified: Whether sampling lowers epsilon (privacy amplification). It does only if
      the noise is Gaussian and who is in a cohort is secret. Otherwise a client counts
      as if in every round, or in one round of each pass.
    sampling: How cohorts are drawn: `FIXED`, `POISSON` or `PASSES`.
    gaussian: Whether the noise is Gaussian. The Renyi divergence of other noise is
      known only at whole orders.
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
        f'sampling is {POISSON!r} although it is known who is in each cohort; it '
        f'must be {FIXED!r}, with which each client is counted as if it were in '
        'every round.'
      )
    if self.sampling == PASSES and self.amplified:
      raise ValueError(
        f'amplified is True with sampling {PASSES!r}; it must be False, because this '
        'accounting gains nothing from the sampling of cohorts.'
      )
    if self.amplified and not self.gaussian:
      raise ValueError(
        'amplified is True with noise that is not Gaussian; it must be False, '
        'because it is not known how much sampling helps with such noise.'
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

    That is all of them, except with passes. There a client is in at most one round of
    each pass, and in all releases of that round if it was repeated after a kill.

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
    """Returns the terms that `as_json` stored; ignores other names.

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
      raise ValueError(f'a value has the wrong type: {error}.') from error

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
    orders: alpha of the Renyi divergences; None: dp_accounting's.
    sampling: See `Terms`.
  """
  return dp_accounting.rdp.RdpAccountant(orders, _NEIGHBOURS[sampling])


class Accountant:
  """Epsilon of any number of rounds on the same terms."""

  def __init__(self, terms: Terms, orders: Sequence[float] | None = None):
    """Computes the Renyi divergences of one round; more rounds have multiples of them.

    Args:
      terms: Of each round.
      orders: See `new_accountant`. Any orders give a bound; more give a better one.
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
    """Returns epsilon, and the Renyi order that gives it."""
    if not counted:
      return 0.0, float(self._orders[-1])
    found, order = dp_accounting.rdp.compute_epsilon(
      self._orders, counted * self._of_one, self._terms.delta
    )
    return float(found), float(order)

  def epsilon_after(self, rounds: int) -> float:
    """Returns epsilon after this many rounds, none of them repeated."""
    return self.epsilon(self._terms.counted_once(rounds))

  def orders_near_best(self, rounds: int) -> list[float]:
    """Returns the order that gives `epsilon_after`, and some on each side."""
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
    z, the multiplier of all releases of a round together. With it a run spends at most
    the budget, and usually more than 99 % of it. dp_accounting's orders begin above 1
    and end at 1,024: if the best order is beyond them, more of the budget may be left.

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
        f'epsilon is {epsilon:g} with delta {delta:g}; no noise keeps {rounds} '
        'rounds within it, so epsilon must be larger.'
      )
  z = least(_FEW_ORDERS, low, high, 1.01)
  for _ in range(_REFINED):
    # By all orders, as a run's spending is counted. The search continues with the best
    # order and its neighbours.
    full = accountant(z, None)
    if full.epsilon_after(rounds) >= (1 - _LEFT) * epsilon:
      break
    z = least(full.orders_near_best(rounds), _LEAST, z, 1.0005)
  return z
