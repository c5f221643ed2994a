"""How good an encoder is, without a label: numbers that follow from sums over examples.

Each example is encoded twice, from two random views; z and z' are its features of
length 1. Clients send the means of z, of z z^T, of z z'^T, the traces of both, and the
means of 2 m waves cos(w z) and sin(w z), in all 2 d^2 + d + 2 m + 2 numbers;
`algorithms.view_moments` collects them, `moments` computes them from features at hand.
From the means follow:

  rank         RankMe: exp of the entropy of the singular values of all z, normalised
  spread       trace of the covariance of z, from 0: all the same, to 1
  alignment    mean of |z - z'|^2, from 0: views do not matter, to 4
  uniformity   log of the mean of exp(-2 |z_i - z_j|^2) over pairs of examples
  decay        alpha of lambda_j ~ j^-alpha, the eigenvalues of the covariance of z
  lidar        exp of the entropy of the eigenvalues of the covariance between examples,
               relative to that between views of one example
  view_ratio   variance between examples over variance between views of one example

Sources:
  rank: Garrido, Balestriero, Najman, LeCun. RankMe: Assessing the Downstream
    Performance of Pretrained Self-Supervised Representations by Their Rank. ICML 2023,
    Eq. 2 and 3.
  alignment, uniformity: Wang, Isola. Understanding Contrastive Representation Learning
    through Alignment and Uniformity on the Hypersphere. ICML 2020 (see
    `losses.hypersphere`).
  decay: Agrawal, Mondal, Ghosh, Richards. alpha-ReQ: Assessing Representation Quality
    in Self-Supervised Learning by Measuring Eigenspectrum Decay. NeurIPS 2022.
  lidar: Thilak et al. LiDAR: Sensing Linear Probing Performance in Joint Embedding SSL
    Architectures. ICLR 2024, Eq. 1 to 4.

Deviations:
  Features have length 1, so that an example's share of each mean is bounded: by 1 for
    the first three and their traces, and by sqrt(m) for the waves, which are sent over
    that (`share_bound`). RankMe and alpha-ReQ take features as they are; kNN, alignment
    and uniformity take these.
  Uniformity needs pairs of examples of different clients, which no sum has. By
    Bochner's theorem exp(-2 |x|^2) is the mean of cos(w x) over normal w of variance 4,
    here over m = 256 that are drawn once (Rahimi and Recht, NeurIPS 2007), and the mean
    of cos(w (z_i - z_j)) over pairs follows from the means of waves.
  The decay is a least-squares line through all eigenvalues above a thousandth of the
    largest: encoders of tests have few.
  LiDAR has q = 2 views for 50, and classes that are the examples.
  Of means with the noise of privacy (`Moments.deviation`):
    Squares of noise are taken off. The trace of z z^T, which is 1 of finite features,
      replaces a number of examples that was only expected.
    Noise of deviation s in the entries of a [d, d] matrix, made symmetric, moves an
      eigenvalue x above t = s sqrt(d / 2) to x + t^2 / x, and smaller ones to within
      2 t of 0, where they cannot be told apart (Capitaine, Donati-Martin, Feral. The
      Largest Eigenvalues of Finite Rank Deformation of Large Wigner Matrices. Annals
      of Probability 2009, theorem 2.1). For the rank, the former are moved back, and
      what the latter have of the trace is taken to be in equal parts.
      That is the largest entropy that they can have: where noise hides much, the rank
      is too high on average.
    There is no decay and no LiDAR, which need the small eigenvalues, and no ratio whose
      denominator is below three of its deviations: its mean has no finite value.
"""

import collections
import functools
import math
from typing import NamedTuple

import numpy as np
import scipy.linalg

NAMES = (
  'rank',
  'spread',
  'alignment',
  'uniformity',
  'decay',
  'lidar',
  'view_ratio',
)
# m, the number of frequencies of waves.
WAVES = 256
# t of uniformity, in exp(-t |x|^2).
_T = 2.0
# Eigenvalues up to this share of the largest do not count in the decay.
_LEAST = 1e-3
# LiDAR's delta, which is added to the covariance between views; features have length 1.
_DELTA = 1e-4
# A denominator of as many deviations of its noise is told from 0.
_CLEAR = 3.0
# Variance up to which features of length 1 are the same: rounding of float32.
_ROUNDING = 1e-6


class Moments(NamedTuple):
  """Means over examples: all that the signals need.

  Attributes:
    examples: n, their number.
    mean: float64 [d], of z and z'.
    second: float64 [d, d], of z z^T and z' z'^T.
    cross: float64 [d, d], of z z'^T and z' z^T.
    waves: float64 [2 m], of cos(w z), then of sin(w z), of the first view.
    deviation: Standard deviation of the noise of privacy in each entry; in those of
      waves sqrt(m) times as much.
    traces: float64 [2], of `second` and `cross`, with noise of their own; None: without
      noise they follow.
  """

  examples: float
  mean: np.ndarray
  second: np.ndarray
  cross: np.ndarray
  waves: np.ndarray
  deviation: float = 0.0
  traces: np.ndarray | None = None

  def with_noise(self, generator: np.random.Generator) -> 'Moments':
    """Returns these means with as much noise again, to see what noise does to them.

    Args:
      generator: Draws it.
    """

    def noised(value: np.ndarray, scale: float = 1.0) -> np.ndarray:
      return value + generator.normal(0.0, scale * self.deviation, value.shape)

    return Moments(
      self.examples,
      noised(self.mean),
      noised(self.second),
      noised(self.cross),
      noised(self.waves, math.sqrt(WAVES)),
      math.sqrt(2) * self.deviation,
      noised(_traces(self)),
    )


def _traces(means: Moments) -> np.ndarray:
  if means.traces is not None:
    return means.traces
  return np.array([np.trace(means.second), np.trace(means.cross)])


def share_bound() -> float:
  """Returns the largest l2 norm of one example's share of what a client sends.

  Its shares of the three moments and the two traces have norms of at most 1, and so
  have its waves over sqrt(m). n_k examples of a client add at most n_k times this, the
  norm to clip to (`aggregations.private(..., statistics_clip=...)`); clipping then
  changes nothing.
  """
  return math.sqrt(6)


@functools.cache
def frequencies(num_features: int) -> np.ndarray:
  """Returns the frequencies w of waves, the same for every client and round.

  Args:
    num_features: d.

  Returns:
    float64 [d, m].
  """
  normal = np.random.RandomState(0).normal(size=(num_features, WAVES))
  return math.sqrt(2 * _T) * normal


def moments(first: np.ndarray, second: np.ndarray) -> Moments:
  """Computes the means from features at hand.

  Args:
    first: [n, d], features of the examples' first views; n at least 1.
    second: [n, d], of their second views.

  Raises:
    ValueError: The shapes differ, or there is no example.
  """
  if first.shape != second.shape or first.ndim != 2 or not len(first):
    raise ValueError(
      f'The features of two views are {list(first.shape)} and {list(second.shape)}; '
      'both must be [n, d] with at least one example.'
    )
  z, other = _of_length_one(first), _of_length_one(second)
  angles = z @ frequencies(z.shape[1])
  count = len(z)
  cross = z.T @ other / count
  return Moments(
    float(count),
    np.mean(z + other, axis=0) / 2,
    (z.T @ z + other.T @ other) / (2 * count),
    (cross + cross.T) / 2,
    np.concatenate([np.mean(np.cos(angles), axis=0), np.mean(np.sin(angles), axis=0)]),
  )


def _of_length_one(features: np.ndarray) -> np.ndarray:
  features = features.astype(np.float64)
  length = np.linalg.norm(features, axis=1, keepdims=True)
  return features / np.where(length > 0, length, 1.0)


def signals(means: Moments) -> collections.OrderedDict[str, float]:
  """Returns the signals by name, in the order of `NAMES`.

  Args:
    means: Of at least two examples.

  Returns:
    Numbers; those that noise would hide are left out. All are NaN if a mean is not
    finite, as of an encoder that has diverged; with noise, where such examples count as
    0, if these are most.
  """
  sent = (means.mean, means.second, means.cross, means.waves)
  if not all(np.all(np.isfinite(each)) for each in sent):
    return collections.OrderedDict.fromkeys(NAMES, math.nan)
  length, agreement = _traces(means)
  if means.deviation:
    return _of_noised(means, length, agreement)
  outer = np.outer(means.mean, means.mean)
  covariance = means.second - outer
  within, between = means.second - means.cross, means.cross - outer
  traces = _of_traces(length, agreement, float(np.sum(means.mean**2)))
  return collections.OrderedDict(
    rank=_effective_rank(np.sqrt(_eigenvalues(means.second))),
    spread=traces['spread'],
    alignment=traces['alignment'],
    uniformity=_uniformity(means),
    decay=_decay(_eigenvalues(covariance)),
    lidar=_lidar(between + within / 2, within) if traces['spread'] > _ROUNDING else 1.0,
    view_ratio=traces['view_ratio'],
  )


def _of_traces(length: float, agreement: float, squared: float) -> dict[str, float]:
  """Returns the signals that follow from traces.

  Args:
    length: Of z z^T.
    agreement: Of z z'^T.
    squared: Squared length of the mean.
  """
  of_views = max(length - agreement, 0.0)
  return {
    'spread': max(length - squared, 0.0),
    'alignment': 2 * of_views,
    'view_ratio': max(agreement - squared, 0.0) / max(of_views, _ROUNDING),
  }


def _of_noised(
  means: Moments, length: float, agreement: float
) -> collections.OrderedDict[str, float]:
  """Returns the signals of means with noise, of which what is known is taken off."""
  if length + 3 * means.deviation < 0.5:
    return collections.OrderedDict.fromkeys(NAMES, math.nan)
  # How many of the expected examples there were, if their number was not told. Where
  # noise hides that too, it was not less than what is refused above.
  length = max(length, 0.5)
  deviation, second = means.deviation / length, means.second / length
  squared = float(np.sum(means.mean**2)) / length**2 - len(means.mean) * deviation**2
  traces = _of_traces(1.0, agreement / length, squared)
  waves = means._replace(waves=means.waves / length)
  # Half of the alignment, whose two traces have noise.
  of_views = 1.0 - agreement / length
  if of_views < _CLEAR * deviation * math.hypot(1.0, agreement / length):
    del traces['view_ratio']
  found = collections.OrderedDict(
    rank=_effective_rank(np.sqrt(_unhidden(second, deviation))),
    spread=traces['spread'],
    alignment=traces['alignment'],
    uniformity=_uniformity(waves, 2 * WAVES * deviation**2),
  )
  found.update((name, value) for name, value in traces.items() if name not in found)
  return found


def _unhidden(matrix: np.ndarray, deviation: float) -> np.ndarray:
  """Returns the eigenvalues of a matrix of trace 1 below noise; see the module.

  Args:
    matrix: [d, d], with noise.
    deviation: Of the noise in its entries.
  """
  found = _eigenvalues(matrix)
  hidden = deviation * math.sqrt(len(found) / 2)
  # The largest of noise alone is beyond 2 t by so much once in a hundred times (Tracy
  # and Widom, 1996).
  seen = found[found > 2 * hidden * (1 + len(found) ** (-2 / 3))]
  seen = (seen + np.sqrt(seen**2 - 4 * hidden**2)) / 2
  others = len(found) - len(seen)
  rest = max(1.0 - float(np.sum(seen)), 0.0) / max(others, 1)
  return np.concatenate([seen, np.full([others], rest)])


def _eigenvalues(matrix: np.ndarray) -> np.ndarray:
  """Returns the eigenvalues of a symmetric matrix, the largest first, none below 0."""
  return np.maximum(np.linalg.eigvalsh((matrix + matrix.T) / 2)[::-1], 0.0)


def _effective_rank(values: np.ndarray) -> float:
  """Returns exp of the entropy of values normalised to 1; 1 if all are 0."""
  total = np.sum(values)
  shares = values[values > 0] / total if total > 0 else np.ones([1])
  return float(np.exp(-np.sum(shares * np.log(shares))))


def _uniformity(means: Moments, of_noise: float = 0.0) -> float:
  """Returns the logarithm of the mean potential of pairs; 0 of a single example."""
  if means.examples < 2:
    return 0.0
  with_itself = float(np.sum(means.waves**2)) / WAVES - of_noise
  # An example's potential with itself is 1.
  potential = (means.examples * with_itself - 1) / (means.examples - 1)
  return math.log(min(max(potential, math.exp(-4 * _T)), 1.0))


def _decay(eigenvalues: np.ndarray) -> float:
  """Returns minus the slope of log eigenvalues on log ranks; 0 of fewer than two."""
  counted = eigenvalues[eigenvalues > max(_LEAST * eigenvalues[0], _ROUNDING)]
  if len(counted) < 2:
    return 0.0
  ranks = np.log(np.arange(1, len(counted) + 1))
  return -float(np.polyfit(ranks, np.log(counted), 1)[0])


def _lidar(between: np.ndarray, within: np.ndarray) -> float:
  """Returns LiDAR, of the covariances of examples' means and of their views."""
  noise = (within + within.T) / 2 + _DELTA * np.eye(len(within))
  values, vectors = np.linalg.eigh(noise)
  noise = (vectors * np.maximum(values, _DELTA)) @ vectors.T
  relative = scipy.linalg.eigh((between + between.T) / 2, noise, eigvals_only=True)
  return _effective_rank(np.maximum(relative, 0.0))
