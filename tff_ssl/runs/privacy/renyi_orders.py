"""Orders alpha of Renyi divergences: any give a bound of epsilon, the best the least.

A small epsilon is shown by high orders: the best is about 2 log(1 / delta) / epsilon.
"""

from collections.abc import Sequence
import math

# Above 63 they are a factor of 2^(1/2) apart: with those between, epsilon would be at
# most 1.5 % smaller.
_HIGH = tuple(
  order for k in range(6, 14) for order in (round(2 ** (k + 0.5)), 2 ** (k + 1))
)
_ALL = (*(1 + k / 10 for k in range(1, 100)), *range(11, 64), *_HIGH)
# For noise that is not Gaussian: its divergence is known for whole orders alone.
_WHOLE = (*range(2, 64), *_HIGH)
# Some of `_ALL`, with which a search for noise begins, in a tenth of the time.
_FEW = (1.1, 1.2, 1.5, 1.8, *range(2, 33), 40, 50, 63, *_HIGH)


def of(gaussian: bool, few: bool = False) -> tuple[float, ...]:
  """Returns the orders that are taken for a kind of noise, ascending.

  Args:
    gaussian: Whether it is Gaussian.
    few: Whether some are enough.
  """
  if not gaussian:
    return _WHOLE
  return _FEW if few else _ALL


def useful(orders: Sequence[float], epsilon: float, delta: float) -> list[float]:
  """Returns the orders among which the best for a budget can be.

  Args:
    orders: Ascending.
    epsilon: The budget.
    delta: Of it.
  """
  kept = [
    a
    for a in orders
    # What they show if there is no divergence at all; the best is about twice the least
    # of them.
    if math.log1p(-1 / a) - math.log(delta * a) / (a - 1) <= epsilon
    and a <= 10 * (1 - math.log(delta) / epsilon)
  ]
  # The first also shows when the total variation is below delta.
  return sorted({orders[0], *kept})
