"""Epsilon by the privacy loss itself: exact of Gaussians, tight of Poisson cohorts.

Renyi divergences bound delta at every epsilon at once, which costs a tenth of epsilon
or more. The loss log(P / Q) of an outcome has a distribution, and losses of rounds add
up: epsilon follows from the distribution of their sum.

  - Gaussian noise without sampling: all releases together are one Gaussian, whatever
    each depends on (Dong, Roth, Su. Gaussian Differential Privacy. 2022).
  - Poisson cohorts: P = (1 - q) N(0, z^2) + q N(1, z^2) and Q = N(0, z^2), and the
    other way round. A loss between two points of a grid is moved to both so that P and
    Q keep their masses, which can only tell more (Doroshenko, Ghazi, Kamath, Kumar,
    Manurangsi. Connect the Dots. PoPETs 2022). Fourier transforms add losses up
    (Koskela, Jälkö, Honkela. AISTATS 2020). Releases of a repeated round may lie
    between those of others (Vadhan, Zhang. Concurrent Composition Theorems for
    Differential Privacy. STOC 2023).

What the grid or rounding may lose is added to delta. dp_accounting's accountant takes a
third of a second for the same; here a round is transformed once for any number of
rounds, and epsilon takes milliseconds. The tests compare.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize
from scipy import special

from tff_ssl.runs.privacy import release_history

# Points of the grid, and how many of them are losses below 0.
_POINTS = 2**15
_BELOW = 3 * _POINTS // 8
# The grid's step: this part of the deviation of a round's loss, between these two.
_PART, _FINEST, _COARSEST = 0.15, 1e-6, 4e-3
# Orders of the moments that bound losses beyond the grid.
_ORDERS = 2.0 ** np.arange(7)
# Mass that rounding may move: once, and for each round. Measured were a third and less.
_ROUNDING, _OF_ROUND = 1e-13, 2e-15
# How far below the exact epsilon a search for it may end.
_ROOT = 1e-11


class _Round(NamedTuple):
  """Logarithms of what rounds multiply, each for both directions.

  Attributes:
    transform: complex [2, n], of the Fourier transform of the loss.
    moments: [2, orders], of E exp(order * loss).
    kept: [2], of the mass of losses on the grid.
  """

  transform: np.ndarray
  moments: np.ndarray
  kept: np.ndarray


class PoissonLosses:
  """Losses of rounds that a client joins with the same chance."""

  def __init__(self, chance: float, noise_multiplier: float, delta: float):
    """Chooses the grid.

    Args:
      chance: q, of a client to join a round, between 0 and 1.
      noise_multiplier: z, of a round that is released once.
      delta: delta of epsilon.
    """
    self._chance, self._z, self._delta = chance, noise_multiplier, delta
    deviation = chance * math.sqrt(math.expm1(min(noise_multiplier**-2, 100.0)))
    self._step = min(max(_PART * deviation, _FINEST), _COARSEST)
    # By how often a round was released, and the chance.
    self._rounds: dict[tuple[int, float], _Round] = {}

  def epsilon(self, counts: release_history.Counts) -> float:
    """Returns an epsilon of all releases together; infinity: it is not known.

    Args:
      counts: How often rounds were released. A release of an unknown round counts as
        one that the client is known to be in, which costs no less.
    """
    own = [((times, self._chance), n) for times, n in sorted(counts.rounds.items())]
    own += [((counts.torn, 1.0), 1)] * bool(counts.torn)
    for key, _ in own:
      if key not in self._rounds:
        self._rounds[key] = self._of_round(*key)
    transform, moments, kept = (
      np.sum([n * self._rounds[key][field] for key, n in own], axis=0)
      for field in range(3)
    )
    lost = _ROUNDING + _OF_ROUND * sum(n for _, n in own) - np.expm1(kept)
    return max(map(self._of_direction, np.exp(transform), moments, lost))

  def _of_direction(
    self, transform: np.ndarray, moments: np.ndarray, lost: float
  ) -> float:
    """Returns the epsilon of the sum of losses in one direction."""
    losses = self._step * np.arange(_POINTS - _BELOW)
    # Losses beyond the grid appear at its other end, by the transform.
    lost += math.exp(min(0.0, np.min(moments - _ORDERS * losses[-1])))
    p = np.maximum(np.fft.irfft(transform, _POINTS)[: len(losses)], 0.0)
    p, q = (np.cumsum(each[::-1])[::-1] for each in (p, p * np.exp(-losses)))
    # With each point's loss as epsilon; it falls from one to the next.
    is_enough = lost + p - np.exp(losses) * q <= self._delta
    if not is_enough[-1]:
      return math.inf
    k = int(np.argmax(is_enough))
    return math.log((lost + p[k] - self._delta) / q[k]) if k else 0.0

  def _of_round(self, times: int, chance: float) -> _Round:
    """Returns the loss of one round that was released some number of times."""
    z, losses = self._z / math.sqrt(times), self._step * (np.arange(_POINTS) - _BELOW)
    # The outcome x of a loss: exp(loss) = 1 - q + q exp((x - 1 / 2) / z^2).
    with np.errstate(divide='ignore'):
      x = 0.5 + z**2 * np.log(np.maximum(np.exp(losses) - (1 - chance), 0) / chance)
    q, shifted = (_masses((x - moved) / z) for moved in (0.0, 1.0))
    p = (1 - chance) * q + chance * shifted
    # Between two points, and beyond both ends.
    below, above = np.exp(-losses[:-1]), np.exp(-losses[1:])
    lower = np.clip((q[1:-1] - p[1:-1] * above) / (below - above), 0.0, p[1:-1])
    joined = np.append(lower, 0.0)
    joined[1:] += p[1:-1] - lower
    # In the other direction losses have the other sign; the least are moved up.
    place = np.maximum(2 * _BELOW - np.arange(_POINTS), 0)
    other = np.bincount(place, joined * np.exp(-losses), _POINTS)
    masses = np.stack([joined, other])
    transform = np.fft.rfft(np.roll(masses, -_BELOW, axis=1))
    with np.errstate(divide='ignore'):
      moments = special.logsumexp(
        np.log(masses)[:, None] + _ORDERS[:, None] * losses, axis=2
      )
    return _Round(
      np.log(np.maximum(np.abs(transform), 1e-300)) + 1j * np.angle(transform),
      moments,
      np.log1p(-np.array([each[0] + each[-1] for each in (p, q)])),
    )


def _masses(edges: np.ndarray) -> np.ndarray:
  """Returns what a normal distribution has below, between and above edges."""
  lower, upper = special.ndtr(edges), special.ndtr(-edges)
  # Of the smaller tail, which keeps its digits.
  between = np.where(edges[1:] > 0, -np.diff(upper), np.diff(lower))
  return np.concatenate([lower[:1], between, upper[-1:]])


def gaussian_epsilon(shift: float, delta: float) -> float:
  """Returns the epsilon at which two normal distributions of equal width are private.

  Args:
    shift: mu, the distance of their means in standard deviations: 1 / z for one client
      more or less.
    delta: delta of epsilon.

  Source: Borja Balle, Yu-Xiang Wang. Improving the Gaussian Mechanism for Differential
  Privacy. ICML 2018, theorem 8.
  """

  def excess(epsilon: float) -> float:
    below = special.log_ndtr(-shift / 2 - epsilon / shift)
    return float(
      special.ndtr(shift / 2 - epsilon / shift) - math.exp(epsilon + below) - delta
    )

  if shift <= 0 or excess(0.0) <= 0:
    return 0.0
  # A normal tail beyond 40 standard deviations is negligible.
  root = float(optimize.brentq(excess, 0.0, shift * shift / 2 + 40 * shift))
  return root * (1 + _ROOT) + _ROOT
