"""Losses after their papers, in loops; tests/losses/references.py has more of them.

What has no gradient is a separate argument, if a loss has such parts.
"""

import numpy as np

from tests.losses import references


def softmax(x):
  e = np.exp(x - x.max(axis=-1, keepdims=True))
  return e / e.sum(axis=-1, keepdims=True)


def cosine(a, b):
  """The mean cosine of rows."""
  cosines = [x @ y / np.sqrt((x @ x) * (y @ y)) for x, y in zip(a, b, strict=True)]
  return float(np.mean(cosines))


def consensus(p1, p2, q1, q2):
  return -np.mean([cosine(p, q) for p in (p1, p2) for q in (q1, q2)])


def alignment(f, g):
  f, g = references.unit(f), references.unit(g)
  return np.mean([np.sum((a - b) ** 2) for a, b in zip(f, g, strict=True)])


def uniformity(x, t):
  """Of ordered pairs; 0 without a pair."""
  x = references.unit(x)
  pairs = [(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
  return float(
    np.log(np.mean([np.exp(-t * np.sum((a - b) ** 2)) for a, b in pairs] or [1.0]))
  )


def vicreg_terms(f, g, epsilon=1e-4):
  """(s, v + v', c + c') of Eqs. 1 to 5, with population covariances."""
  d = f.shape[1]
  invariance = np.mean(np.sum((f - g) ** 2, axis=1))
  hinge = redundancy = 0.0
  for z in (f, g):
    centred = z - z.mean(axis=0)
    covariance = centred.T @ centred / len(z)
    hinge += np.mean(np.maximum(0.0, 1.0 - np.sqrt(np.diag(covariance) + epsilon)))
    redundancy += np.sum((covariance - np.diag(np.diag(covariance))) ** 2) / d
  return np.array([invariance, hinge, redundancy])


def spectral(f, g):
  """By all pairs of views."""
  views = np.concatenate([f, g])
  pairs = [(a @ b) ** 2 for a in views for b in views]
  return -2 * np.mean([a @ b for a, b in zip(f, g, strict=True)]) + np.mean(pairs)


def lejepa(f, g, directions, knots, weight):
  """Over real numbers, by the trapezoidal rule between +- the last of the knots."""
  total = np.mean(((f - g) / 2) ** 2)
  widths = np.where(knots == knots[-1], 1.0, 2.0) * (knots[1] - knots[0])
  for a in directions.T:
    for t, width in zip(knots, widths, strict=True):
      phases = [t * view @ a for view in (f, g)]
      real = np.mean(np.cos(phases)) - np.exp(-(t**2) / 2)
      imaginary = np.mean(np.sin(phases))
      scale = weight / directions.shape[1] * width * np.exp(-(t**2) / 2)
      total += scale * (real**2 + imaginary**2)
  return total


def dino(teacher, student, centre, teacher_temperature, temperature):
  """Of all pairs of two views of a teacher without gradient."""
  total, pairs = 0.0, 0
  for i, t in enumerate(teacher):
    for j, s in enumerate(student):
      if i != j:
        p = softmax((t - centre) / teacher_temperature)
        total -= (p * np.log(softmax(s / temperature))).sum(axis=1).mean()
        pairs += 1
  return total / pairs


def fixmatch(weak, strong, threshold):
  """Of the weak views' labels, which have no gradient."""
  total = 0.0
  for q, p in zip(softmax(weak), softmax(strong), strict=True):
    total -= np.log(p[q.argmax()]) if q.max() >= threshold else 0.0
  return total / len(weak)


def divergence(helpers, logits):
  """The mean of KL(p || q) over helpers, without gradient, and examples."""
  p, q = softmax(helpers), softmax(logits)
  return (p * np.log(p / q)).sum(axis=-1).mean()


def swapped(first, second, of_first, of_second, temperature=0.1):
  """Cross-entropies with the other view's assignments, which have no gradient."""
  return -np.mean(
    [
      (q * np.log(softmax(scores / temperature))).sum(axis=1)
      for q, scores in ((of_second, first), (of_first, second))
    ]
  )
