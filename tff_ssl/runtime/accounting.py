"""What rounds with noise cost in differential privacy: counted by dp_accounting.

Ilya Mironov. Renyi Differential Privacy. CSF 2017; of cohorts of a fixed size Yu-Xiang
Wang, Borja Balle, Shiva Kasiviswanathan. Subsampled Renyi Differential Privacy and
Analytical Moments Accountant. AISTATS 2019, theorem 27.

The unit is a client. What is counted is what a run draws:

  - `sampling.Cohorts`, of a fixed size without replacement. The theorem for that
    compares populations in which one client is replaced by another; a sum of clients
    that are clipped to a norm C then changes by up to 2 C, so that noise of z C counts
    as a multiplier of z / 2.
  - `sampling.PoissonCohorts`, each client by a chance of its own (Poisson sampling;
    Mironov, Talwar and Zhang, "Renyi Differential Privacy of the Sampled Gaussian
    Mechanism", 2019). Populations with one client more or less are compared, a sum
    changes by up to C, and the number of clients of a round is a secret.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import importlib.metadata
import math
from typing import Any

import dp_accounting
import numpy as np

# What the numbers come from, for whoever checks them.
NAME = f'dp_accounting {importlib.metadata.version("dp-accounting")}, Renyi'
# How cohorts are drawn.
FIXED, POISSON = 'fixed', 'poisson'
# By how many clip norms a client that is replaced moves a sum, and one that is added.
_SENSITIVITY = {FIXED: 2.0, POISSON: 1.0}
_NEIGHBOURS = {
  FIXED: dp_accounting.NeighboringRelation.REPLACE_ONE,
  POISSON: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
}
# Orders alpha that noise is looked for with: a quarter of dp_accounting's in a tenth of
# its time. Epsilon by fewer orders is never smaller.
_WHOLE_ORDERS = (*range(2, 64), 128, 256, 512, 1024)
_FEW_ORDERS = (1.1, 1.25, 1.5, 1.75, *range(2, 33), 40, 50, 63)
# Where the noise of a round is looked for, as a multiplier.
_LEAST, _MOST = 1e-2, 1e6


@dataclasses.dataclass(frozen=True)
class Terms:
  """What each round of a run releases, and of whom.

  Attributes:
    population: N, all clients.
    cohort: K, clients of a round, drawn without replacement; in the mean, where each
      is drawn by itself.
    multipliers: By the name of what a round releases, the standard deviation of its
      noise over the clip norm.
    delta: Of (epsilon, delta); below 1 / N.
    amplified: Whether that cohorts are drawn counts. It does where noise is Gaussian
      and who is in a cohort is secret; else a client counts as if in every round.
    sampling: How cohorts are drawn: `FIXED` or `POISSON`.
  """

  population: int
  cohort: int
  multipliers: Mapping[str, float]
  delta: float
  amplified: bool = True
  sampling: str = FIXED

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

  def event(self) -> dp_accounting.DpEvent:
    """Returns one round: all of its releases, of one cohort."""
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
    return dp_accounting.SampledWithoutReplacementDpEvent(
      self.population, self.cohort if self.amplified else self.population, released
    )

  @classmethod
  def from_json(cls, stored: Mapping[str, Any]) -> 'Terms':
    """Returns the terms that `as_json` made of them; other names are left out.

    Raises:
      ValueError: If one is missing or none of its kind.
    """
    own = {field.name: field for field in dataclasses.fields(cls)}
    for name, field in own.items():
      if name not in stored and field.default is dataclasses.MISSING:
        raise ValueError(f'{name} is missing; there must be one.')
    try:
      return cls(**{name: stored[name] for name in own if name in stored})
    except (AttributeError, TypeError) as error:
      raise ValueError(f'a number or a name is none: {error}.') from error

  def as_json(self) -> dict[str, Any]:
    """Returns the terms as JSON values."""
    return {
      'population': self.population,
      'cohort': self.cohort,
      'multipliers': dict(self.multipliers),
      'delta': self.delta,
      'amplified': self.amplified,
      'sampling': self.sampling,
    }


def new_accountant(
  orders: Sequence[float] | None = None, sampling: str = FIXED
) -> dp_accounting.rdp.RdpAccountant:
  """Returns an accountant that compares populations as rounds are drawn of them.

  Args:
    orders: alpha of the Renyi divergences; dp_accounting's when None.
    sampling: See `Terms`.
  """
  return dp_accounting.rdp.RdpAccountant(orders, _NEIGHBOURS[sampling])


class Accountant:
  """The privacy that any number of rounds of one kind costs."""

  def __init__(self, terms: Terms, orders: Sequence[float] | None = None):
    """Counts one round, of which others are multiples.

    Args:
      terms: Of each round.
      orders: See `new_accountant`. Any give a bound; more give a better one.
    """
    if not terms.amplified:
      # What is known of other noise than Gaussian is known of whole orders.
      orders = _WHOLE_ORDERS
    one = new_accountant(orders, terms.sampling).compose(terms.event())
    self._delta = terms.delta
    self._orders = one.orders
    self._of_one = one.rdp

  def epsilon(self, rounds: int) -> float:
    """Returns epsilon after so many rounds, at the delta of the terms."""
    if not rounds:
      return 0.0
    found, _ = dp_accounting.rdp.compute_epsilon(
      self._orders, rounds * self._of_one, self._delta
    )
    return float(found)

  def rounds_within(self, epsilon: float, most: int) -> int:
    """Returns how many rounds stay within a budget, at most `most`."""
    low, high = 0, most
    while low < high:
      middle = (low + high + 1) // 2
      if self.epsilon(middle) <= epsilon:
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

  Returns:
    z, the multiplier of all releases of a round together: a little more than it need
    be, for it is looked for with few orders, and never one that exceeds the budget.

  Raises:
    ValueError: If a number is out of range, or no noise is enough.
  """
  if not (math.isfinite(epsilon) and epsilon > 0):
    raise ValueError(f'epsilon is {epsilon}; it must be positive and finite.')
  if rounds < 1:
    raise ValueError(f'rounds is {rounds}; it must be at least 1.')

  def is_enough(z: float) -> bool:
    terms = Terms(population, cohort, {'round': z}, delta, amplified, sampling)
    return Accountant(terms, _FEW_ORDERS).epsilon(rounds) <= epsilon

  low, high = _LEAST, 1.0
  while not is_enough(high):
    low, high = high, 2.0 * high
    if high > _MOST:
      raise ValueError(
        f'epsilon is {epsilon:g} with delta {delta:g}; no noise keeps {rounds} rounds '
        'within it: it must be larger.'
      )
  while high > 1.001 * low:
    middle = float(np.sqrt(low * high))
    low, high = (low, middle) if is_enough(middle) else (middle, high)
  return high
