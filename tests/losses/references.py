"""Losses and measures of encodings in NumPy, after their papers: what tests expect."""

import numpy as np


def unit(x: np.ndarray) -> np.ndarray:
  """Returns the rows at length 1."""
  return x / np.linalg.norm(x, axis=1, keepdims=True)


def encoding_std(x: np.ndarray) -> float:
  """Returns the deviation of the unit rows, 1 for directions at random."""
  return unit(x).std(axis=0).mean() * np.sqrt(x.shape[1])


def effective_rank(eigenvalues: np.ndarray) -> float:
  """Returns exp of the entropy of eigenvalues; those of rounding errors are 0."""
  p = eigenvalues[eigenvalues > 1e-12] / eigenvalues.sum()
  return float(np.exp(-np.sum(p * np.log(p))))


def spectrum(x: np.ndarray) -> np.ndarray:
  """Returns the eigenvalues of the covariance of rows."""
  return np.linalg.eigvalsh(np.cov(x, rowvar=False, bias=True))


def nt_xent(
  f: np.ndarray, g: np.ndarray, temperature: float, negatives: np.ndarray | None = None
) -> float:
  """Algorithm 1 of SimCLR by loops, with further negatives in each denominator."""
  n = len(f)
  z = unit(np.concatenate([f, g, *([] if negatives is None else [negatives])]))
  losses = []
  for i in range(2 * n):
    similarity = np.exp(z @ z[i] / temperature)
    positive = similarity[(i + n) % (2 * n)]
    losses.append(-np.log(positive / (similarity.sum() - similarity[i])))
  return float(np.mean(losses))


def info_nce(queries, keys, negatives_of, temperature: float) -> float:
  """Eq. 1 of MoCo by a loop.

  Args:
    queries: [n, d].
    keys: [n, d].
    negatives_of: Position of a query -> the unit rows that it must reject.
    temperature: tau.
  """
  q, k = unit(queries), unit(keys)
  losses = []
  for i in range(len(q)):
    positive = np.exp(q[i] @ k[i] / temperature)
    negatives = np.exp(negatives_of(i) @ q[i] / temperature).sum()
    losses.append(-np.log(positive / (positive + negatives)))
  return float(np.mean(losses))


def cco(f: np.ndarray, g: np.ndarray, weight: float = 20.0) -> float:
  """Eq. 1 of DCCO by explicit loops over centred encodings."""
  d = f.shape[1]
  f, g = f - f.mean(axis=0), g - g.mean(axis=0)
  std_f = np.sqrt((f**2).mean(axis=0) + 1e-5)
  std_g = np.sqrt((g**2).mean(axis=0) + 1e-5)
  loss = 0.0
  for i in range(d):
    for j in range(d):
      c = (f[:, i] * g[:, j]).mean() / (std_f[i] * std_g[j])
      loss += (1.0 - c) ** 2 if i == j else weight / (d - 1) * c**2
  return loss


def sinkhorn(
  scores: np.ndarray, epsilon: float = 0.05, iterations: int = 3
) -> np.ndarray:
  """Appendix A.1 of SwAV, with its constant factors; by default its values."""
  q = np.exp(scores / epsilon).T
  q /= q.sum()
  k, n = q.shape
  for _ in range(iterations):
    q *= (np.ones(k) / k / q.sum(axis=1))[:, np.newaxis]
    q *= (np.ones(n) / n / q.sum(axis=0))[np.newaxis, :]
  return (q / q.sum(axis=0, keepdims=True)).T
