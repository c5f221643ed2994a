"""Linear classifiers in closed form, from sums over examples alone: LDA and ridge.

The sums N_c, sum of f over class c, and sum of f f^T over all examples determine the
classifiers, whichever clients hold the examples. `algorithms.one_round` collects the
sums from clients; `moments` computes them from examples at hand.

  LDA    log pi_c + mu_c^T S^-1 f - mu_c^T S^-1 mu_c / 2, with class means mu_c, shares
         pi_c = N_c / N, and S the covariance within classes, pooled over them and
         shrunk: (1 - a) S + a tr(S) / d I.
  ridge  W, b = argmin sum |W^T f + b - onehot(y)|^2 / N + penalty |W|^2.

Both take standardised features, whose mean and deviation follow from the same sums, as
do the other probes (see `linear`): a penalty then means the same for every encoder.

Sources:
  Yilun Chen, Ami Wiesel, Yonina C. Eldar, Alfred O. Hero. Shrinkage Algorithms for MMSE
  Covariance Estimation. IEEE Transactions on Signal Processing, 2010: the oracle
  approximating shrinkage (OAS), of S, N and d alone.
  Gene H. Golub, Michael Heath, Grace Wahba. Generalized Cross-Validation as a Method
  for Choosing a Good Ridge Parameter. Technometrics, 1979: no validation part needed.

Deviations:
  OAS as in scikit-learn, without the terms in 2 / d, which vanish for many features; N
    counts all examples, although C means were estimated from them.
"""

from typing import NamedTuple

import numpy as np

from tff_ssl.evaluation import linear_probe

# Penalties that generalised cross-validation chooses among, in units of the mean
# variance of a standardised feature, which is 1.
PENALTIES = tuple(10.0 ** (k / 2) for k in range(-12, 3))
# A class of at least this count is present: with noise on the sums, the count of an
# absent class is not quite 0.
_PRESENT = 0.5
# Eigenvalues up to this share of the largest are rounding errors, or noise.
_RANK = 1e-10


class Moments(NamedTuple):
  """Sums over the labelled examples: all that the classifiers need.

  Attributes:
    counts: float64 [C], N_c.
    sums: float64 [C, d], of the features of each class.
    second: float64 [d, d], of f f^T over all classes.
  """

  counts: np.ndarray
  sums: np.ndarray
  second: np.ndarray


class ClosedFormHead(NamedTuple):
  """A classifier, and how strongly it was regularised.

  Attributes:
    classifier: Classifies features; a class without examples is never predicted.
    strength: LDA's shrinkage, in [0, 1], or the penalty of ridge regression.
  """

  classifier: linear_probe.LinearClassifier
  strength: float


def moments(features: np.ndarray, labels: np.ndarray, num_classes: int) -> Moments:
  """Computes the sums that the classifiers need from examples at hand.

  Args:
    features: [N, d].
    labels: int [N], each in [0, num_classes).
    num_classes: C.

  Raises:
    ValueError: Lengths differ, or a label is out of range.
  """
  if len(features) != len(labels):
    raise ValueError(
      f'There are {len(features)} features and {len(labels)} labels; each example '
      'needs one of each.'
    )
  if len(labels) and not 0 <= np.min(labels) <= np.max(labels) < num_classes:
    raise ValueError(
      f'The labels are {np.min(labels)} to {np.max(labels)}; they must be in '
      f'[0, {num_classes}).'
    )
  features = features.astype(np.float64)
  sums = np.zeros([num_classes, features.shape[1]])
  np.add.at(sums, labels, features)
  counts = np.bincount(labels, minlength=num_classes).astype(np.float64)
  return Moments(counts, sums, features.T @ features)


def fit_lda(sums: Moments, shrinkage: float | None = None) -> ClosedFormHead:
  """Solves linear discriminant analysis.

  Args:
    sums: Sums over the examples. If noise makes counts or eigenvalues of covariances
      negative, these are taken as 0.
    shrinkage: a in [0, 1]; None: by OAS. With 0, a singular covariance is inverted by
      its pseudo-inverse; without variance within classes, the nearest mean decides.

  Returns:
    The classifier, and the shrinkage.

  Raises:
    ValueError: The sums are not finite, do not fit together or hold no example, or
      `shrinkage` is out of range.
  """
  if shrinkage is not None and not 0 <= shrinkage <= 1:
    raise ValueError(f'shrinkage is {shrinkage}; it must be in [0, 1], or None.')
  stats = _standardise(sums)
  weighted = stats.shares[:, np.newaxis] * stats.means
  within = _positive(stats.covariance - stats.means.T @ weighted)
  if shrinkage is None:
    shrinkage = _oas(within, stats.examples)
  size = len(within)
  isotropic = np.trace(within) / size * np.eye(size)
  shrunk = (1 - shrinkage) * within + shrinkage * isotropic
  if not np.trace(within) > _RANK * max(np.trace(stats.covariance), _RANK):
    shrunk = np.eye(size)
  kernel = np.linalg.pinv(shrunk, rcond=_RANK, hermitian=True) @ stats.means.T
  offsets = np.sum(stats.means.T * kernel, axis=0) / 2
  with np.errstate(divide='ignore'):
    return ClosedFormHead(
      _classifier(stats, kernel, np.log(stats.shares) - offsets), shrinkage
    )


def fit_ridge(sums: Moments, penalty: float | None = None) -> ClosedFormHead:
  """Solves ridge regression on the classes, one-hot; the largest output decides.

  Args:
    sums: See `fit_lda`.
    penalty: Weight of |W|^2, above 0, against the mean squared error on standardised
      features; None: the one of `PENALTIES` of least generalised cross-validation.

  Returns:
    The classifier, and the penalty.

  Raises:
    ValueError: See `fit_lda`.
  """
  if penalty is not None and not 0 < penalty < float('inf'):
    raise ValueError(f'penalty is {penalty}; it must be positive and finite, or None.')
  stats = _standardise(sums)
  values, vectors = np.linalg.eigh(_positive(stats.covariance))
  # The covariance of features and one-hot labels, in the eigenvectors.
  cross = vectors.T @ (stats.shares[:, np.newaxis] * stats.means).T
  if penalty is None:
    scores = [_cross_validation(stats, values, cross, p) for p in PENALTIES]
    penalty = PENALTIES[int(np.argmin(scores))]
  kernel = vectors @ (cross / (values + penalty)[:, np.newaxis])
  return ClosedFormHead(_classifier(stats, kernel, stats.shares), penalty)


class _Standardised(NamedTuple):
  """The sums as moments of standardised features.

  Attributes:
    examples: N.
    shares: [C], N_c / N.
    mean: [d], mean of the original features.
    scale: [d], their deviation; 1 for a constant feature.
    means: [C, d], class means, standardised; 0 for an absent class.
    covariance: [d, d], of all examples, standardised.
  """

  examples: float
  shares: np.ndarray
  mean: np.ndarray
  scale: np.ndarray
  means: np.ndarray
  covariance: np.ndarray


def _standardise(moments: Moments) -> _Standardised:
  counts, sums, second = (np.asarray(x, np.float64) for x in moments)
  size = sums.shape[-1]
  if sums.shape != (len(counts), size) or second.shape != (size, size):
    raise ValueError(
      f'The moments have shapes {list(counts.shape)}, {list(sums.shape)} and '
      f'{list(second.shape)}; they must be [C], [C, d] and [d, d].'
    )
  if not all(np.all(np.isfinite(x)) for x in (counts, sums, second)):
    raise ValueError('The moments are not finite; a closed form needs finite ones.')
  present = counts >= _PRESENT
  if not np.any(present):
    raise ValueError(
      'The moments hold no labelled example; a closed form needs at least one.'
    )
  counts = np.where(present, counts, 0.0)
  sums = np.where(present[:, np.newaxis], sums, 0.0)
  count = float(np.sum(counts))
  mean = np.sum(sums, axis=0) / count
  covariance = second / count - np.outer(mean, mean)
  std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
  varies = std > linear_probe.constant_below(mean)
  scale = np.where(varies, std, 1.0)
  means = sums / np.maximum(counts, _PRESENT)[:, np.newaxis] - mean
  means = np.where(present[:, np.newaxis] & varies, means / scale, 0.0)
  covariance = np.where(np.outer(varies, varies), covariance, 0.0)
  covariance = covariance / np.outer(scale, scale)
  return _Standardised(count, counts / count, mean, scale, means, covariance)


def _positive(matrix: np.ndarray) -> np.ndarray:
  """Returns the nearest symmetric matrix without negative eigenvalues."""
  values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
  return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _oas(covariance: np.ndarray, count: float) -> float:
  """Returns the shrinkage of the oracle approximating estimator, in [0, 1]."""
  size = len(covariance)
  mean_square = np.mean(covariance**2)
  isotropic = (np.trace(covariance) / size) ** 2
  above = (count + 1) * (mean_square - isotropic / size)
  return float(min((mean_square + isotropic) / above, 1.0)) if above > 0 else 1.0


def _cross_validation(
  stats: _Standardised, values: np.ndarray, cross: np.ndarray, penalty: float
) -> float:
  """Returns the generalised cross-validation of a penalty; infinite if undefined.

  Args:
    stats: The examples' moments.
    values: [d], eigenvalues of the covariance.
    cross: [d, C], covariance with the labels in its eigenvectors.
    penalty: Weight of |W|^2.
  """
  shrunk = 1 / (values + penalty)
  explained = np.sum(cross**2, axis=1) * (2 * shrunk - values * shrunk**2)
  error = np.sum(stats.shares * (1 - stats.shares)) - np.sum(explained)
  free = 1 - (1 + np.sum(values * shrunk)) / stats.examples
  return float(error / free**2) if free > 0 else float('inf')


def _classifier(
  stats: _Standardised, kernel: np.ndarray, bias: np.ndarray
) -> linear_probe.LinearClassifier:
  """Returns a classifier that never predicts a class without examples."""
  present = stats.shares > 0
  return linear_probe.LinearClassifier(
    stats.mean.astype(np.float32),
    stats.scale.astype(np.float32),
    np.where(present, kernel, 0.0).astype(np.float32),
    np.where(present, bias, -np.inf).astype(np.float32),
  )
