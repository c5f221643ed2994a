"""Unbalanced optimal transport between encodings and points spread over a sphere.

Lenaic Chizat, Gabriel Peyre, Bernhard Schmitzer, Francois-Xavier Vialard. Scaling
Algorithms for Unbalanced Optimal Transport Problems. Mathematics of Computation 87,
2018. As a regulariser of encodings: FedU2 (`algorithms.fedu2`).
"""

import tensorflow as tf

from tff_ssl.losses import lengths


def plan(
  cost: tf.Tensor, epsilon: float = 0.05, tau: float = 1.0, iterations: int = 20
) -> tf.Tensor:
  """Returns the entropic plan between two sets of points of equal masses.

  It minimises, with a = 1/n and b = 1/m,

      <pi, C> + epsilon KL(pi | a b) + tau KL(pi 1 | a) + tau KL(pi' 1 | b).

  Args:
    cost: [n, m], C; n and m may be 0.
    epsilon: Weight of the plan's entropy, above 0.
    tau: Weight of both marginals, above 0: the smaller it is, the less mass is moved
      where that is costly. Without bound both marginals are kept.
    iterations: Times that both potentials are computed, at least 1.

  Returns:
    pi [n, m], positive. No gradient flows through it.

  Raises:
    ValueError: If the cost is not a matrix.

  Source: Chizat et al. 2018, the scaling algorithm for Kullback-Leibler divergences of
  both marginals, on logarithms.
  """
  if cost.shape.rank != 2:
    raise ValueError(f'The cost has shape {cost.shape}; it must be [n, m].')
  scaled = -tf.stop_gradient(cost) / epsilon
  shape = tf.cast(tf.maximum(tf.shape(cost), 1), cost.dtype)
  log_a, log_b = tf.unstack(-tf.math.log(shape))
  damping = tau / (tau + epsilon)

  def body(i: tf.Tensor, f: tf.Tensor, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
    del f
    f = -damping * tf.reduce_logsumexp(scaled + g + log_b, axis=1, keepdims=True)
    g = -damping * tf.reduce_logsumexp(scaled + f + log_a, axis=0, keepdims=True)
    return i + 1, f, g

  start = (tf.constant(0), tf.zeros_like(scaled[:, :1]), tf.zeros_like(scaled[:1]))
  _, f, g = tf.while_loop(lambda i, *_: i < iterations, body, start)
  return tf.stop_gradient(tf.exp(scaled + f + g + log_a + log_b))


def dispersion(
  x: tf.Tensor,
  points: tf.Tensor,
  epsilon: float = 0.05,
  tau: float = 1.0,
  iterations: int = 20,
) -> tf.Tensor:
  """Cost of moving normalised encodings to points of the unit sphere.

  Its gradient is that of the whole minimum of `plan` (the plan is optimal: what it
  changes adds nothing).

  Args:
    x: [n, d] encodings; n may be 0.
    points: [m, d] of unit length, spread over the sphere.
    epsilon: See `plan`, also for the two that follow.
    tau: Weight of both marginals.
    iterations: Number of iterations.

  Returns:
    Scalar <pi, C>, C half the squared distances, at least 0; 0 for n = 0.
  """
  cost = 1.0 - tf.matmul(lengths.unit(x, axis=1), points, transpose_b=True)
  return tf.reduce_sum(plan(cost, epsilon, tau, iterations) * cost)
