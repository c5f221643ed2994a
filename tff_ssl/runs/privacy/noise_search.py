"""The noise that a budget needs: the least with which a run's rounds stay within it."""

from collections.abc import Sequence
import functools
import math
import pathlib
from typing import Any

import numpy as np

from tff_ssl.computing import checks
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import divergences
from tff_ssl.runs.privacy import privacy_ledger

# The search looks between these noise multipliers of a round.
_LEAST, _MOST = 1e-2, 1e6
# The share of a budget that the search may leave unspent, and at most how often it
# chooses new orders to get there.
_LEFT, _REFINED = 0.005, 5
# How close to the least noise by the privacy loss the search comes.
_CLOSE = 2e-4
# Less than this share of a budget is worth a word.
_ENOUGH = 0.95


@functools.lru_cache(maxsize=32)
def solve(
  population: int,
  cohort: int,
  rounds: int,
  epsilon: float,
  delta: float,
  amplified: bool = True,
  sampling: str = accounting.FIXED,
  gaussian: bool = True,
  is_renyi: bool = False,
) -> float:
  """Returns the least noise of a round with which a run stays within a budget.

  Args:
    population: N.
    cohort: K.
    rounds: Number of rounds of the run.
    epsilon: The budget, positive.
    delta: Below 1 / N.
    amplified: See `accounting.Terms`.
    sampling: See `accounting.Terms`.
    gaussian: See `accounting.Terms`.
    is_renyi: Whether Renyi divergences alone count, as earlier versions counted.

  Returns:
    z, the multiplier of all releases of a round together. With it a run spends at most
    the budget, and usually more than 99 % of it; `why_unspent` says why if it does not.

  Raises:
    ValueError: If a number is out of range, or no noise is enough.
  """
  checks.positive(epsilon=epsilon)
  checks.at_least(1, rounds=rounds)

  def accountant(z: float, orders: Sequence[float] | None) -> accounting.Accountant:
    terms = accounting.Terms(
      population, cohort, {'round': z}, delta, amplified, sampling, gaussian
    )
    return accounting.Accountant(terms, orders)

  def is_enough(z: float, orders: Sequence[float] | None) -> bool:
    counting = accountant(z, orders)
    spent = counting.epsilon_after if orders else counting.losses_after
    return spent(rounds) <= epsilon

  def least(
    orders: Sequence[float] | None, low: float, high: float, factor: float
  ) -> float:
    """Returns noise that is enough to within a factor, by orders or by the loss."""
    if is_enough(low, orders):
      low = _LEAST
    while high > factor * low:
      middle = float(np.sqrt(low * high))
      low, high = (low, middle) if is_enough(middle, orders) else (middle, high)
    return high

  # The terms check all numbers but these, delta among them.
  accountant(1.0, [2.0])
  every, few = (divergences.orders(gaussian, few=each) for each in (False, True))
  useful = divergences.useful_orders(few, epsilon, delta)
  low, high = _LEAST, 1.0
  while not is_enough(high, useful):
    low, high = high, 2.0 * high
    if high > _MOST:
      least_epsilon = accountant(_MOST, every).epsilon_after(rounds)
      raise ValueError(
        f'epsilon is {epsilon:g} with delta {delta:g}; it must be at least '
        f'{least_epsilon:.3g}, which is what can be shown of {rounds} rounds with '
        f'noise of {_MOST:g} clip norms.'
      )
  z, step = least(useful, low, high, 1.01), 5e-4
  for _ in range(_REFINED):
    # By all orders, as a run's spending is counted. The search continues with the best
    # order and its neighbours, in smaller steps: epsilon may be steep.
    full = accountant(z, every)
    if full.epsilon_after(rounds) >= (1 - _LEFT) * epsilon:
      break
    z, step = least(full.orders_near_best(rounds), z / 1.1, z, 1 + step), step / 10
  return z if is_renyi else least(None, z / 1.1, z, 1 + _CLOSE)


def of_run(folder: str | None, *asked: Any) -> float:
  """Returns the noise of a run's round, which an earlier version may have chosen.

  Args:
    folder: The run folder, which may have a ledger.
    *asked: Arguments of `solve`.
  """
  if folder and (pathlib.Path(folder) / privacy_ledger.NAME).is_file():
    terms = accounting.Terms.from_json(privacy_ledger.read(folder))
    earlier = solve(*asked, is_renyi=True)
    if math.isclose(terms.of_round, earlier, rel_tol=1e-9):
      return earlier
  return solve(*asked)


def why_unspent(terms: accounting.Terms, rounds: int, epsilon: float) -> str:
  """Says why the noise that `solve` chose leaves more than 5 % of a budget.

  Args:
    terms: With that noise.
    rounds: Number of rounds of the run.
    epsilon: The budget.

  Returns:
    A part of a sentence; empty if the budget is spent.
  """
  spent = accounting.Accountant(terms).epsilon_after(rounds)
  if spent >= _ENOUGH * epsilon:
    return ''
  if terms.of_round <= 1.01 * _LEAST:
    reason = f'no less noise than {_LEAST:g} clip norms is chosen'
  else:
    reason = 'with less noise, more than the budget could be shown'
  return f'{spent / epsilon:.0%} of the budget, because {reason}'
