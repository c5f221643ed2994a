"""Epsilon: what rounds with noise cost in differential privacy, by dp_accounting.

Ilya Mironov. Renyi Differential Privacy. CSF 2017. For cohorts of a fixed size:
Yu-Xiang Wang, Borja Balle, Shiva Kasiviswanathan. Subsampled Renyi Differential Privacy
and Analytical Moments Accountant. AISTATS 2019, theorem 27.

The unit of privacy is a client. How rounds are counted depends on how their cohorts are
drawn:

  - `cohort_sampling.Cohorts`: a fixed size, without replacement. The theorem compares
    populations in which one client is replaced by another. A sum over clients clipped
    to a norm C then changes by up to 2 C, so that noise of z C counts as a multiplier
    of z / 2.
  - `cohort_sampling.PoissonCohorts`: each client joins independently (Poisson sampling;
    Mironov, Talwar and Zhang, "Renyi Differential Privacy of the Sampled Gaussian
    Mechanism", 2019). Populations with one client more or less are compared, a sum
    changes by up to C, and the number of clients of a round is a secret.
  - `cohort_sampling.PassCohorts`: pass after pass through the population. Who is in a
    cohort may be known: sampling does not lower epsilon. Only how often a client takes
    part counts, which is at most once a pass. The populations compared differ in one
    client, which contributes zeros in one of them and keeps its number of examples and
    its place in the cohorts (zero-out, of Kairouz et al., "Practical and Private (Deep)
    Learning without Sampling or Shuffling", ICML 2021). A sum changes by up to C.

A round that was released r times, after kills, has one cohort (`release_history`). With
sampling it counts as one sampled round whose noise is z / sqrt(r), which costs more
than r rounds with a cohort each. Between its releases there may be those of other
rounds, and they may depend on each other: that does not change the sum (Xin Lyu,
"Composition Theorems for Interactive Differential Privacy", NeurIPS 2022).
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
import importlib.metadata
import math
from typing import Any

import dp_accounting
import numpy as np

from tff_ssl.aggregators import bounds
from tff_ssl.computing import checks
from tff_ssl.runs.privacy import divergences
from tff_ssl.runs.privacy import release_history
from tff_ssl.simulation import cohort_sampling

# The accounting library and its version, for readers who check the numbers.
NAME = f'dp_accounting {importlib.metadata.version("dp-accounting")}, Renyi'
# How cohorts are drawn.
FIXED, POISSON, PASSES = 'fixed', 'poisson', 'passes'
# By how many clip norms a client that is replaced, added or zeroed moves a sum.
_SENSITIVITY = {FIXED: 2.0, POISSON: 1.0, PASSES: 1.0}
# What of a divergence rounding may hide; a smaller one counts as this.
_ROUNDED = 1e-11
# Up to so many lines of a ledger may be torn, to be counted tightly.
_FEW_TORN = 3
# The search looks between these noise multipliers of a round.
_LEAST, _MOST = 1e-2, 1e6
# The share of a budget that the search may leave unspent, and at most how often it
# chooses new orders to get there.
_LEFT, _REFINED = 0.005, 5
# How many orders on each side of the best one it then takes.
_NEAR = 4
# Less than this share of a budget is worth a word.
_ENOUGH = 0.95


@dataclasses.dataclass(frozen=True)
class Terms:
  """What each round of a run releases, and how its cohort is drawn.

  Attributes:
    population: N, all clients.
    cohort: K, clients of a round, drawn without replacement; the mean number where each
      client joins independently.
    multipliers: By the name of what a round releases, the standard deviation of its
      noise over the clip norm.
    delta: delta of the (epsilon, delta) guarantee; below 1 / N.
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
    checks.one_of(_SENSITIVITY, sampling=self.sampling)
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
      if not 0 < value <= bounds.MOST_NOISE:
        raise ValueError(
          f'The noise multiplier of {name!r} is {value}; it must be above 0 and at '
          f'most {bounds.MOST_NOISE:g}.'
        )

  @property
  def of_round(self) -> float:
    """Returns z, the multiplier of all releases of a round together."""
    return sum(z**-2 for z in self.multipliers.values()) ** -0.5

  @property
  def shares(self) -> dict[str, float]:
    """Returns the share of the budget that each release has, by its name."""
    return {name: (self.of_round / z) ** 2 for name, z in self.multipliers.items()}

  def history(self, rounds: Iterable[int | None] = ()) -> release_history.History:
    """Returns the history of a run on these terms.

    Args:
      rounds: The round of each release, from 1; None where it is not known.
    """
    per_pass = None
    if self.sampling == PASSES:
      per_pass = cohort_sampling.rounds_of_pass(self.population, self.cohort)
    return release_history.History(per_pass, rounds)

  def counted_once(self, rounds: int) -> int:
    """Returns in how many of rounds 1 to `rounds` one client can be.

    That is all of them, except with passes: there it is at most one of each pass.
    """
    if self.sampling != PASSES:
      return rounds
    per_pass = cohort_sampling.rounds_of_pass(self.population, self.cohort)
    return -(-rounds // per_pass)

  def divergences(self, orders: Sequence[float], times: int = 1) -> np.ndarray:
    """Returns the Renyi divergences of one round that a client can be in.

    Args:
      orders: alpha, above 1.
      times: How often the round was released: each time about the same cohort.
    """
    if not self.amplified or self.cohort == self.population:
      return times * self.unsampled(orders)
    z = self.of_round / _SENSITIVITY[self.sampling] / math.sqrt(times)
    of = divergences.of_poisson if self.sampling == POISSON else divergences.of_fixed
    return of(self.cohort / self.population, z, orders)

  def unsampled(self, orders: Sequence[float]) -> np.ndarray:
    """Returns the divergences of one release that a client is known to be in.

    Args:
      orders: alpha, above 1.
    """
    return divergences.of_gaussian(self.of_round / _SENSITIVITY[self.sampling], orders)

  def as_json(self) -> dict[str, Any]:
    """Returns the terms as JSON values."""
    return {**vars(self), 'multipliers': dict(self.multipliers)}


class Accountant:
  """Epsilon of any number of releases on the same terms."""

  def __init__(self, terms: Terms, orders: Sequence[float] | None = None):
    """Initializes the accountant.

    Args:
      terms: The terms of each round.
      orders: alpha of the Renyi divergences. Any orders give a bound; more give a
        better one. None: orders that are good at any epsilon above 0.01.
    """
    self._terms = terms
    self._orders = orders or divergences.orders(terms.gaussian)
    # By how often a round was released: its divergences.
    self._of_times: dict[int, np.ndarray] = {}

  def epsilon(self, counts: release_history.Counts) -> float:
    """Returns epsilon at the delta of the terms.

    Args:
      counts: From `Terms.history`.
    """
    return self._epsilon(counts)[0]

  def epsilon_after(self, rounds: int) -> float:
    """Returns epsilon after this many rounds, none of them repeated."""
    return self._after(rounds)[0]

  def _after(self, rounds: int) -> tuple[float, float]:
    counted = self._terms.counted_once(rounds)
    return self._epsilon(release_history.Counts({1: counted} if counted else {}))

  def _epsilon(self, counts: release_history.Counts) -> tuple[float, float]:
    """Returns epsilon, and the Renyi order that gives it."""
    if not counts.releases:
      return 0.0, float(self._orders[-1])
    epsilon, order = dp_accounting.rdp.compute_epsilon(
      self._orders, self._spent(counts), self._terms.delta
    )
    return float(epsilon), float(order)

  def _spent(self, counts: release_history.Counts) -> np.ndarray:
    """Returns the divergences of all releases together."""
    if not self._terms.amplified:
      # A client may be known to be in each: all count alike.
      return counts.releases * self._of_round(1)
    spent = np.zeros(len(self._orders))
    for times, rounds in counts.rounds.items():
      spent = spent + rounds * self._of_round(times)
    if counts.torn > _FEW_TORN:
      # Whatever they are of: no release costs more than one without sampling.
      spent = spent + counts.torn * self._terms.unsampled(self._orders)
    elif counts.torn:
      # Whichever rounds they are of: each is one more of a round that was released less
      # often than this, and adds at most the largest step up to there.
      most = max(counts.rounds, default=0) + counts.torn
      up_to = [np.zeros_like(spent), *(self._of_round(n + 1) for n in range(most))]
      spent = spent + counts.torn * np.diff(up_to, axis=0).max(axis=0)
    return spent

  def _of_round(self, times: int) -> np.ndarray:
    """Returns the divergences of a round that was released some number of times."""
    if times not in self._of_times:
      per_order = self._terms.divergences(self._orders, times)
      self._of_times[times] = np.maximum(per_order, _ROUNDED)
    return self._of_times[times]

  def orders_near_best(self, rounds: int) -> list[float]:
    """Returns the order that gives `epsilon_after`, and some on each side."""
    _, best = self._after(rounds)
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
    rounds: Number of rounds of the run.
    epsilon: The budget, positive.
    delta: Below 1 / N.
    amplified: See `Terms`.
    sampling: See `Terms`.
    gaussian: See `Terms`.

  Returns:
    z, the multiplier of all releases of a round together. With it a run spends at most
    the budget, and usually more than 99 % of it; `why_unspent` says why if it does not.

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

  # The terms check all numbers but these, delta among them.
  accountant(1.0, [2.0])
  few = divergences.useful_orders(
    divergences.orders(gaussian, few=True), epsilon, delta
  )
  low, high = _LEAST, 1.0
  while accountant(high, few).epsilon_after(rounds) > epsilon:
    low, high = high, 2.0 * high
    if high > _MOST:
      least_epsilon = accountant(_MOST, None).epsilon_after(rounds)
      raise ValueError(
        f'epsilon is {epsilon:g} with delta {delta:g}; it must be at least '
        f'{least_epsilon:.3g}, which is what can be shown of {rounds} rounds with '
        f'noise of {_MOST:g} clip norms.'
      )
  z, step = least(few, low, high, 1.01), 5e-4
  for _ in range(_REFINED):
    # By all orders, as a run's spending is counted. The search continues with the best
    # order and its neighbours, in smaller steps: epsilon may be steep.
    full = accountant(z, None)
    if full.epsilon_after(rounds) >= (1 - _LEFT) * epsilon:
      break
    near = full.orders_near_best(rounds)
    low = z / 1.1
    if accountant(low, near).epsilon_after(rounds) <= epsilon:
      low = _LEAST
    z, step = least(near, low, z, 1 + step), step / 10
  return z


def why_unspent(terms: Terms, rounds: int, epsilon: float) -> str:
  """Says why the noise that `solve` chose leaves more than 5 % of a budget.

  Args:
    terms: With that noise.
    rounds: Number of rounds of the run.
    epsilon: The budget.

  Returns:
    A part of a sentence; empty if the budget is spent.
  """
  spent = Accountant(terms).epsilon_after(rounds)
  if spent >= _ENOUGH * epsilon:
    return ''
  if terms.of_round <= 1.01 * _LEAST:
    reason = f'no less noise than {_LEAST:g} clip norms is chosen'
  else:
    reason = 'with less noise, more than the budget could be shown'
  return f'{spent / epsilon:.0%} of the budget, because {reason}'
