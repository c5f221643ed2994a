"""What linear encoders learn from skewed clients: the theory of Dec-SSL, computed.

"Does Learning from Decentralized Non-IID Unlabeled Data Benefit from Self Supervision?"
(Dec-SSL), Lirui Wang, Kaiqing Zhang, Yunzhu Li, Yonglong Tian, Russ Tedrake, ICLR 2023:
Sections 3.2 and 4.2, Theorem 3.2, Proposition 4.1, Appendix E.

K sources share 2K classes in R^d, of which classes 2k-1 and 2k are nearly all that
source k has, with tau = d^(1/5), mu = d^(-1/5), q uniform in {0, 1} and xi ~ N(0, I):

  class 2k-1      e_k - sum_i q_i tau e_i + mu xi,   over i in [K] but k
  class 2k       -e_k - sum_i q_i tau e_i + mu xi
  class 2i-1      e_i + mu xi, of which source k has about d^beta for each other i; it
                  has none of class 2i

Self-supervised (E.1): with X the mean of x x^T, a source minimises
  -E (w(x + xi))^T (w(x + xi')) + |w^T w|^2 / 2 = |X - w^T w|^2 / 2 + constant,
so that the rows of w span the eigenvectors of the m largest eigenvalues of X; all
sources together have the mean of their X. Supervised (E.19): scores w x = v u x with
margins of at least 1 and least norm, where u = S^(1/2) V^T, with the singular values S
of w.

The representability of e_i is r_i = |Pi(e_i)|^2, where Pi projects on the span of the
rows of w, or of u (Definition 3.1). Theorem 3.2: for the K directions e_i that make
the data, self-supervised, r_i >= 1 - O(d^(-4/5)) at source k for i other than k, and
r_i >= 1 - O(d^(-2/5)) for all of them together. Proposition 4.1: supervised, |u e_i|^2
<= O(d^(-1/10)) at source k for i other than k, and |u e_k|^2 >= 1 - O(d^(-1/10)).

The constants, for these data: the eigenvalues of source k's directions other than e_k
are at least tau^2 / 4. Noise turns these directions by at most mu tau sqrt(d / N) over
that (Davis and Kahan), so 1 - r_i is about 16 d^(-4/5) d / N with N examples:
`local_bound`.

Deviations:
  The proof takes E X as diagonal, with tau^2 in it. With the stated distribution, it
    has tau^2 / 2 on the diagonal and tau^2 / 4 off it: the same span, and the factor
    above.
  K = O(d^(1/20)) would be one source for any d that can be computed; here K is given.
  More than about 2 d noisy examples cannot all have a margin of 1, nor can the examples
    of all sources together. The objective here is therefore |w|^2 / 2 + C / 2 times the
    squares of what the margins lack: for large C the same, if margins of 1 exist.
    Classes without examples at a source compete like the others.
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from tff_ssl.computing import checks

# At most so many steps of Newton's method on the margins, and of each system's solver.
_MAX_STEPS = 300
# How far from the minimum the solution may be, as a share of its norm.
_ACCURACY = 1e-4
# The share of a system's right side that its solver may leave.
_NEARLY = 0.05
# Singular values up to this share of the largest are the solver's error, not features.
_RANK = 1e-3


@dataclasses.dataclass(frozen=True)
class Setting:
  """The data of all sources, and the features that are learned from them.

  Attributes:
    dimension: d.
    sources: K, at least 2.
    features: m, in (K, d); None: 2K.
    tau: Scale of what classes share; None: d^(1/5).
    mu: Scale of the noise; None: d^(-1/5).
    beta: In [0, 1): each rare class has d^beta examples, rounded.
    frequent: Examples of each of a source's two classes; None: 4d.
    hinge: C: a margin of 0 instead of 1 costs C / 2, against |w|^2 / 2.
    seed: Seed of the data.
  """

  dimension: int = 400
  sources: int = 3
  features: int | None = None
  tau: float | None = None
  mu: float | None = None
  beta: float = 0.2
  frequent: int | None = None
  hinge: float = 1.0
  seed: int = 0

  def __post_init__(self) -> None:
    if self.sources < 2:
      raise ValueError(f'sources is {self.sources}; it must be at least 2.')
    if self.dimension <= 2 * self.sources:
      raise ValueError(
        f'dimension is {self.dimension}; it must be above twice the sources, '
        f'{2 * self.sources}.'
      )
    if self.features is not None and not self.sources < self.features < self.dimension:
      raise ValueError(
        f'features is {self.features}; it must be above the sources, {self.sources}, '
        f'and below the dimension, {self.dimension}.'
      )
    for name in ('tau', 'mu', 'hinge'):
      value = getattr(self, name)
      if value is not None:
        checks.positive(**{name: value})
    checks.below_one(beta=self.beta)
    if self.frequent is not None:
      checks.at_least(1, frequent=self.frequent)
    checks.at_least(0, seed=self.seed)

  @property
  def rows(self) -> int:
    """The number of features that an encoder has."""
    return self.features or 2 * self.sources

  @property
  def scales(self) -> tuple[float, float]:
    """The values of tau and mu."""
    tau, mu = self.dimension**0.2, self.dimension**-0.2
    return self.tau or tau, self.mu or mu

  @property
  def sizes(self) -> tuple[int, int]:
    """Examples of each frequent class, and of each rare one, of a source."""
    return self.frequent or 4 * self.dimension, max(1, round(self.dimension**self.beta))

  @property
  def local_bound(self) -> float:
    """The most that 1 - r_i is at a source, up to a small factor; see the module."""
    (tau, mu), (frequent, _) = self.scales, self.sizes
    return (4 * mu / tau) ** 2 * self.dimension / (2 * frequent)


class Learned(NamedTuple):
  """What one objective learns about each direction.

  Attributes:
    representability: float64 [d], r_i in [0, 1].
    strength: float64 [d], |w e_i|^2, or |u e_i|^2 of a supervised encoder.
  """

  representability: np.ndarray
  strength: np.ndarray


class Study(NamedTuple):
  """What is learned at each source, and from all of them together.

  Attributes:
    ssl: By self-supervision, at each source.
    ssl_together: By self-supervision, from the global objective.
    sl: By supervision, at each source.
    sl_together: By supervision, from the global objective.
  """

  ssl: list[Learned]
  ssl_together: Learned
  sl: list[Learned]
  sl_together: Learned


def study(setting: Setting) -> Study:
  """Draws the data of all sources and learns from each, and from all together."""
  found = [source_data(setting, k) for k in range(setting.sources)]
  # Sources have equal sizes: the mean of their objectives is the union's objective.
  together = tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))
  classes = 2 * setting.sources

  def supervised(x: np.ndarray, y: np.ndarray) -> Learned:
    return supervised_features(x, y, classes, setting.hinge)

  return Study(
    [ssl_features(x, setting.rows) for x, _ in found],
    ssl_features(together[0], setting.rows),
    [supervised(x, y) for x, y in found],
    supervised(*together),
  )


def source_data(setting: Setting, source: int) -> tuple[np.ndarray, np.ndarray]:
  """Draws the data of a source.

  Args:
    setting: Sizes and scales.
    source: k - 1, in [0, K).

  Returns:
    float64 [n, d] and the classes, int [n], numbered from 0: class 2k-1 is 2(k-1).
  """
  random = np.random.default_rng([setting.seed, source])
  (tau, mu), (frequent, rare) = setting.scales, setting.sizes
  others = [i for i in range(setting.sources) if i != source]
  x, y = [], []
  for sign, label in ((1.0, 2 * source), (-1.0, 2 * source + 1)):
    signal = np.zeros([frequent, setting.dimension])
    signal[:, source] = sign
    signal[:, others] = -tau * random.integers(0, 2, [frequent, len(others)])
    x.append(signal)
    y.append(np.full([frequent], label))
  for i in others:
    signal = np.zeros([rare, setting.dimension])
    signal[:, i] = 1.0
    x.append(signal)
    y.append(np.full([rare], 2 * i))
  clean = np.concatenate(x)
  return clean + mu * random.normal(size=clean.shape), np.concatenate(y)


def ssl_features(x: np.ndarray, rows: int) -> Learned:
  """Solves the self-supervised objective.

  Args:
    x: [n, d].
    rows: m, features of the encoder.

  Returns:
    What the w of least loss learns: w^T w is the best approximation of X of rank m.
  """
  values, vectors = np.linalg.eigh(x.T @ x / len(x))
  span, values = vectors[:, -rows:], values[-rows:]
  return Learned(np.sum(span**2, axis=1), span**2 @ values)


def supervised_features(
  x: np.ndarray, y: np.ndarray, num_classes: int, hinge: float
) -> Learned:
  """Solves the supervised objective.

  Args:
    x: [n, d].
    y: int [n], each in [0, num_classes).
    num_classes: Number of classes of all sources.
    hinge: C.

  Returns:
    What u learns, the first of two layers of least norm.
  """
  weights = margin_classifier(x, y, num_classes, hinge)
  _, values, rows = np.linalg.svd(weights, full_matrices=False)
  learned = values > _RANK * values[0]
  return Learned(
    np.sum(rows[learned] ** 2, axis=0),
    values[learned] @ rows[learned] ** 2,
  )


def margin_classifier(
  x: np.ndarray, y: np.ndarray, num_classes: int, hinge: float
) -> np.ndarray:
  """Minimises |w|^2 / 2 + C / 2 sum_(n, j != y) max(0, 1 + w_j x - w_y x)^2.

  Args:
    x: [n, d].
    y: int [n].
    num_classes: Number of classes; all compete, even those without examples.
    hinge: C.

  Returns:
    w, float64 [num_classes, d]: the only minimum, because the sum is strictly convex.

  Raises:
    ValueError: The minimum was not found to a ten-thousandth of its norm.
  """
  margins = _Margins(x, y, num_classes, hinge)
  weights = np.zeros([num_classes, x.shape[1]])
  for _ in range(_MAX_STEPS):
    value, gradient, lacking = margins.at(weights)
    # The curvature is at least 1, so the minimum is at most this far away.
    distance = float(np.linalg.norm(gradient))
    if distance <= _ACCURACY * float(np.linalg.norm(weights)):
      return weights
    curvature = functools.partial(margins.curvature, is_lacking=lacking > 0)
    step = _solve(curvature, -gradient)
    slope, size = float(np.sum(gradient * step)), 1.0
    while margins.at(weights + size * step)[0] > value + 1e-4 * size * slope:
      size /= 2
      if size < _ACCURACY**2:
        break
    weights = weights + size * step
  raise ValueError(
    f'The classifier of hinge {hinge} was found only to a distance of '
    f'{distance:.2g}; a smaller hinge is easier.'
  )


class _Margins:
  """The objective of margins and its derivatives; between kinks it is quadratic."""

  def __init__(self, x: np.ndarray, y: np.ndarray, num_classes: int, hinge: float):
    self._x, self._y, self._hinge = x, y, hinge
    self._rows = np.arange(len(y))
    # 1 for the other classes: their scores must be smaller by this margin.
    self._others = np.ones([len(y), num_classes])
    self._others[self._rows, y] = 0.0

  def at(self, weights: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Returns the value, its gradient, and what margins lack, [n, num_classes]."""
    lacking = np.maximum(0.0, self._others + self._apart(weights))
    value = (np.sum(weights**2) + self._hinge * np.sum(lacking**2)) / 2
    return float(value), weights + self._back(lacking), lacking

  def curvature(self, direction: np.ndarray, is_lacking: np.ndarray) -> np.ndarray:
    """Returns the second derivative times a direction, given which margins lack."""
    return direction + self._back(is_lacking * self._apart(direction))

  def _apart(self, weights: np.ndarray) -> np.ndarray:
    """Returns by how much each score exceeds the score of the right class."""
    scores = self._x @ weights.T
    return scores - scores[self._rows, self._y][:, np.newaxis]

  def _back(self, lacking: np.ndarray) -> np.ndarray:
    slope = self._hinge * lacking
    slope[self._rows, self._y] -= np.sum(slope, axis=1)
    return slope.T @ self._x


def _solve(
  multiply: Callable[[np.ndarray], np.ndarray], right: np.ndarray
) -> np.ndarray:
  """Solves a positive definite system approximately, by conjugate gradients."""
  solution, rest = np.zeros_like(right), right
  direction, square = rest, float(np.sum(rest**2))
  enough = square * _NEARLY**2
  for _ in range(_MAX_STEPS):
    if square <= enough:
      break
    product = multiply(direction)
    size = square / float(np.sum(direction * product))
    solution, rest = solution + size * direction, rest - size * product
    before, square = square, float(np.sum(rest**2))
    direction = rest + square / before * direction
  return solution
