# %% [markdown]
# # What linear encoders learn from skewed clients
#
# Theorem 3.2 and Proposition 4.1 of "Does Learning from Decentralized Non-IID Unlabeled
# Data Benefit from Self Supervision?" (Dec-SSL, Wang et al., ICLR 2023), computed.
# [The page on Dec-SSL](../dec_ssl.md#the-linear-theory) reads the numbers.
#
# To run all of it, after `make venv` (30 seconds of CPU time):
#
# ```console
# $ PYTHONPATH=. .venv/bin/python docs/notebooks/linear_theory.py
# ```

# %% tags=["parameters"]
DIMENSIONS = (50, 100, 200, 400)
SOURCES = 3
BETA = 0.2
SEED = 0
FIGURE = 'linear_theory.png'

# %% [markdown]
# ## Data
#
# K sources share 2K classes in R^d. Source k has 4d examples of each of classes 2k-1
# and 2k, and d^beta of class 2i-1 for each other i. With tau = d^(1/5), mu = d^(-1/5),
# q uniform in {0, 1} and xi ~ N(0, I), its examples are (Section 3.2)
#
# ```text
# class 2k-1    e_k - sum_i q_i tau e_i + mu xi    over i in [K] but k
# class 2k     -e_k - sum_i q_i tau e_i + mu xi
# class 2i-1    e_i + mu xi
# ```

# %%
import numpy as np
import pandas as pd
from scipy import optimize

from tff_ssl.reporting import look


def source_data(d, k):
  """Draws the examples [n, d] and classes [n] of a source; both count from 0."""
  random = np.random.default_rng([SEED, k])
  others = np.delete(np.arange(SOURCES), k)
  sizes = [4 * d, 4 * d, *(max(1, round(d**BETA)) for _ in others)]
  y = np.repeat([2 * k, 2 * k + 1, *(2 * others)], sizes)
  signal = np.zeros([len(y), d])
  signal[np.arange(len(y)), y // 2] = np.where(y % 2, -1, 1)
  signal[: 8 * d, others] = -(d**0.2) * random.integers(0, 2, [8 * d, len(others)])
  return signal + d**-0.2 * random.normal(size=signal.shape), y


# %% [markdown]
# ## Without labels: a closed form
#
# With X the mean of x x^T, a source minimises |X - w^T w|^2 / 2 (Appendix E.1), so the
# rows of w span the eigenvectors of the m largest eigenvalues of X; here m = 2K. The
# representability of e_i is r_i = |Pi(e_i)|^2, where Pi projects on this span
# (Definition 3.1).


# %%
def learn_without_labels(x):
  """Returns r_i and |w e_i|^2 of each direction, [2, d]."""
  values, vectors = np.linalg.eigh(x.T @ x / len(x))
  squares = vectors[:, -2 * SOURCES :] ** 2
  return np.array([np.sum(squares, axis=1), squares @ values[-2 * SOURCES :]])


# %% [markdown]
# ## With labels: margins
#
# Scores w x = v u x have margins of at least 1 and least norm (E.19), u = S^(1/2) V^T
# with the singular values S of w. More than some 2d noisy examples cannot all have such
# margins. The objective is therefore |w|^2 / 2 plus half the squares of what they lack.


# %%
def margin_classifier(x, y):
  """Minimises |w|^2 / 2 + sum_(n, j != y) max(0, 1 + w_j x - w_y x)^2 / 2 over w."""
  right = np.eye(2 * SOURCES)[y]

  def excess(w):
    scores = x @ w.reshape(2 * SOURCES, -1).T
    return scores - np.sum(right * scores, axis=1, keepdims=True)

  def transposed(slope):
    return np.ravel((slope - right * np.sum(slope, axis=1, keepdims=True)).T @ x)

  def loss(w):
    lacking = np.maximum(0, 1 - right + excess(w))
    return (np.sum(w**2) + np.sum(lacking**2)) / 2, w + transposed(lacking)

  def curvature(w, direction):
    return direction + transposed((1 - right + excess(w) > 0) * excess(direction))

  start = np.zeros(2 * SOURCES * x.shape[1])
  found = optimize.minimize(loss, start, (), 'trust-krylov', True, hessp=curvature)
  # The curvature is at least 1, so the minimum is at most this far away.
  assert np.linalg.norm(found.jac) <= 1e-4 * np.linalg.norm(found.x), found.message
  return found.x.reshape(2 * SOURCES, -1)


def learn_with_labels(x, y):
  """Returns r_i and |u e_i|^2 of each direction, [2, d]."""
  _, values, rows = np.linalg.svd(margin_classifier(x, y), full_matrices=False)
  # Smaller values are the solver's error, not features.
  is_feature = values > 1e-3 * values[0]
  squares = rows[is_feature] ** 2
  return np.array([np.sum(squares, axis=0), values[is_feature] @ squares])


# %% [markdown]
# ## Each source, all together, and the bounds
#
# Theorem 3.2, without labels: 1 - r_i = O(d^(-4/5)) at source k for other i, and
# O(d^(-2/5)) together. Noise turns these directions, of eigenvalues above tau^2 / 4, by
# at most mu tau sqrt(d / n) over that (Davis and Kahan), so 1 - r_i is at most about
# 16 d^(-4/5) d / n = 2 d^(-4/5). Proposition 4.1, with labels: |u e_i|^2 = O(d^(-1/10))
# at source k for other i, and |u e_k|^2 >= 1 - O(d^(-1/10)).

# %%
bounds, others = [], ~np.eye(SOURCES, dtype=bool)
for d in DIMENSIONS:
  data = [source_data(d, k) for k in range(SOURCES)]
  # Sources have equal sizes: the union's objective is the mean of theirs.
  data.append(tuple(np.concatenate(arrays) for arrays in zip(*data)))
  learned = {
    'self-supervised': np.array([learn_without_labels(x) for x, _ in data]),
    'supervised': np.array([learn_with_labels(x, y) for x, y in data]),
  }
  *lost, lost_together = 1 - learned['self-supervised'][:, 0, :SOURCES]
  strength = learned['supervised'][:-1, 1, :SOURCES]
  found = np.max(np.array(lost)[others]), 2 * d**-0.8, np.max(lost_together)
  bounds.append([*found, np.max(strength[others]), np.min(np.diag(strength)), d**-0.1])
names = ['1 - r_i', '2 d^(-4/5)', 'together', '|u e_i|^2', '|u e_k|^2', 'd^(-1/10)']
print(pd.DataFrame(bounds, DIMENSIONS, names).to_string(float_format='{:.4g}'.format))

figure = look.new(10, 3.4)
for plot, (learning, values) in zip(figure.subplots(1, 2), learned.items()):
  bars = np.c_[values[:, 0, :SOURCES], np.mean(values[:, 0, SOURCES:], axis=1)]
  for k, heights in enumerate(bars):
    name = f'source {k + 1}' if k < SOURCES else 'together'
    print(f'{learning}, {name}, r_i and the mean of the rest:', np.round(heights, 4))
    plot.bar(np.arange(SOURCES + 1) + 0.2 * k, heights, 0.18, label=name)
  plot.set_title(f'{learning}: r_i, and the mean of the rest, d = {d}', **look.TITLE)
  look.style_axes(plot)
  plot.legend(**look.LEGEND)
look.save(figure, FIGURE)
