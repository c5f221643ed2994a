"""Renyi divergences of one round of Gaussian noise, and the orders that they are of.

Ilya Mironov, Kunal Talwar, Li Zhang. Renyi Differential Privacy of the Sampled Gaussian
Mechanism. 2019, section 3.3. Yu-Xiang Wang, Borja Balle, Shiva Kasiviswanathan.
Subsampled Renyi Differential Privacy and Analytical Moments Accountant. AISTATS 2019,
theorem 27.

dp_accounting has the same formulas, and the tests compare. But a small epsilon needs
orders in the thousands and divergences far below one, and there its sums take seconds,
lose the divergences to rounding (Poisson), or keep a part of the theorem that no noise
makes small (fixed sizes). Here all orders are computed together and without
subtractions. Poisson cohorts at orders that are not whole are dp_accounting's.
"""

from collections.abc import Sequence
import math

import dp_accounting
import numpy as np
from scipy import special
from scipy import stats

# Moments up to this order are computed for theorem 27; higher ones are bounded.
_MOMENTS = 512
# The grid of the integral that gives them, in standard deviations: its steps, and how
# far it goes beyond the largest integrand.
_STEP, _BEYOND = 0.05, 40.0


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


def orders(gaussian: bool, few: bool = False) -> tuple[float, ...]:
  """Returns the orders alpha that are computed for a kind of noise, ascending.

  Any orders give a bound of epsilon, the best the least.

  Args:
    gaussian: Whether it is Gaussian.
    few: Whether some are enough.
  """
  if not gaussian:
    return _WHOLE
  return _FEW if few else _ALL


def useful_orders(among: Sequence[float], epsilon: float, delta: float) -> list[float]:
  """Returns the orders among which the best for a budget can be.

  A small epsilon is shown by high orders: the best is about 2 log(1 / delta) / epsilon.

  Args:
    among: Orders, ascending.
    epsilon: The budget.
    delta: delta of the budget.
  """
  near = [
    a
    for a in among
    # What they show if there is no divergence at all; the best is about twice the least
    # of them.
    if math.log1p(-1 / a) - math.log(delta * a) / (a - 1) <= epsilon
    and a <= 10 * (1 - math.log(delta) / epsilon)
  ]
  # The first also shows when the total variation is below delta.
  return sorted({among[0], *near})


def of_gaussian(noise_multiplier: float, orders: Sequence[float]) -> np.ndarray:
  """Returns the divergences without sampling: alpha / (2 z^2).

  Args:
    noise_multiplier: z, the deviation of the noise over what one client changes.
    orders: alpha, above 1.
  """
  return np.array(orders, float) / (2 * noise_multiplier**2)


def of_poisson(
  chance: float, noise_multiplier: float, orders: Sequence[float]
) -> np.ndarray:
  """Returns the divergences if each client joins independently.

  With k ~ Binomial(alpha, q): (alpha - 1) D = log E exp(k (k - 1) / (2 z^2)), for whole
  alpha.

  Args:
    chance: q, of a client to join, between 0 and 1.
    noise_multiplier: z.
    orders: alpha, above 1.
  """
  alphas = np.array(orders, float)
  is_whole = alphas == np.floor(alphas)
  divergences = np.zeros(len(alphas))
  for place in np.flatnonzero(is_whole):
    k = np.arange(2, int(alphas[place]) + 1)
    # 1 is taken from each exponential and added to the sum, so that sums near 1 keep
    # their digits.
    logs = stats.binom.logpmf(k, alphas[place], chance)
    logs += _log_expm1(k * (k - 1.0) / (2 * noise_multiplier**2))
    divergences[place] = np.logaddexp(0.0, special.logsumexp(logs)) / (
      alphas[place] - 1
    )
  if not is_whole.all():
    accountant = dp_accounting.rdp.RdpAccountant(list(alphas[~is_whole]))
    one = dp_accounting.GaussianDpEvent(noise_multiplier)
    event = dp_accounting.PoissonSampledDpEvent(chance, one)
    divergences[~is_whole] = accountant.compose(event).rdp
  return divergences


def of_fixed(
  chance: float, noise_multiplier: float, orders: Sequence[float]
) -> np.ndarray:
  """Bounds the divergences if cohorts of a fixed size are drawn without replacement.

  By theorem 27, or without sampling where that is less: a client that may be in the
  cohort loses no more than one that is. Between whole orders (alpha - 1) D is
  interpolated, of which it is a convex function.

  Args:
    chance: q = K / N, between 0 and 1.
    noise_multiplier: z, over what replacing a client changes.
    orders: alpha, above 1.
  """
  alphas = np.array(orders, float)
  moments = _log_moments(noise_multiplier, min(int(np.ceil(alphas.max())), _MOMENTS))
  whole = {int(a) for a in (*np.floor(alphas), *np.ceil(alphas)) if a > 1}
  sums = {1: 0.0}
  for order in whole:
    j = np.arange(2, order + 1)
    bounds = np.log(2) + j * (j - 1.0) / (2 * noise_multiplier**2)
    first = j[: _MOMENTS - 1]
    pairs = (moments[first // 2 - 1] + moments[(first + 1) // 2 - 1]) / 2
    bounds[: len(first)] = np.minimum(bounds[: len(first)], np.log(4) + pairs)
    combinations = special.gammaln(order + 1) - (
      special.gammaln(j + 1) + special.gammaln(order - j + 1)
    )
    logs = bounds + j * np.log(chance) + combinations
    sums[order] = np.logaddexp(0.0, special.logsumexp(logs))
  known = sorted(sums)
  sampled = np.interp(alphas, known, [sums[order] for order in known]) / (alphas - 1)
  return np.minimum(sampled, of_gaussian(noise_multiplier, orders))


def _log_moments(noise_multiplier: float, most: int) -> np.ndarray:
  """Returns log E (L - 1)^m for even m, from 2 to `most` or one more; or infinity.

  L = exp(x / z - 1 / (2 z^2)) is the ratio of the densities of two Gaussians, and x is
  normal. The integrand is smooth and vanishes at both ends, so that the trapezoidal
  rule is exact to rounding.
  """
  even = np.arange(2, most + 2, 2)
  # Where L^m is so large that the bound of its moment is the smaller of the two.
  is_large = (even - 3) / noise_multiplier**2 > 2 * np.log(2 * even)
  logs_of_moments = np.full(len(even), np.inf)
  computed = even[~is_large]
  if len(computed):
    x = np.arange(-_BEYOND, computed[-1] / noise_multiplier + _BEYOND, _STEP)
    exponents = x / noise_multiplier - 1 / (2 * noise_multiplier**2)
    with np.errstate(divide='ignore'):
      # Of |exp(u) - 1|, for both signs of u; where it is 0, it adds nothing.
      logs = np.maximum(exponents, 0) + np.log(-np.expm1(-np.abs(exponents)))
    density = stats.norm.logpdf(x) + np.log(_STEP)
    logs_of_moments[~is_large] = [
      special.logsumexp(m * logs + density) for m in computed
    ]
  return logs_of_moments


def _log_expm1(x: np.ndarray) -> np.ndarray:
  """Returns log(exp(x) - 1) of positive numbers."""
  return x + np.log(-np.expm1(-x))
