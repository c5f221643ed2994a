"""The step that shortens several distances at one relative rate.

Jean-Antoine Desideri. Multiple-gradient descent algorithm (MGDA) for multiobjective
optimization. Comptes Rendus Mathematique 350, 2012: among the convex combinations of
gradients the shortest is the direction in which the slowest objective falls fastest. As
the server's step over clients: FedU2 (`algorithms.fedu2`).
"""

import tensorflow as tf

# Added to the diagonal of the cosines, which clients with the same update make
# singular.
_RIDGE = 1e-6


def weights(gram: tf.Tensor, iterations: int = 1000) -> tf.Tensor:
  """Returns the weights of K vectors g_k in the common direction.

  Moving from 0 along d shortens the squared distance to g_k at the relative rate
  2 <d, g_k> / |g_k|^2, at first. The d of a given length whose least rate is largest is
  parallel to the shortest convex combination of g_k / |g_k|^2; all rates with a
  positive weight are then equal. With y_k |g_k| in place of the unnormalised weights
  this is

      min y' C y / 2 - l' y,  y >= 0,  C the cosines and l the lengths of g_k,

  which accelerated projected gradient descent with restarts solves.

  Args:
    gram: [K, K], <g_j, g_k>; a row and column of zeros for a vector that is not there.
    iterations: Steps of the solver.

  Returns:
    [K], not negative, the weights a of d = sum a_k g_k: they sum to 1, or are all 0 if
    there is no vector. If the vectors are orthogonal they are equal.
  """
  squares = tf.maximum(tf.cast(tf.linalg.diag_part(gram), tf.float64), 0.0)
  lengths = tf.sqrt(squares)
  norms = lengths[:, tf.newaxis] * lengths
  cosines = tf.math.divide_no_nan(tf.cast(gram, tf.float64), norms)
  cosines += _RIDGE * tf.eye(tf.shape(gram)[0], dtype=tf.float64)
  linear = tf.math.divide_no_nan(lengths, tf.reduce_max(lengths))
  step = 1.0 / tf.reduce_max(tf.reduce_sum(tf.abs(cosines), axis=1))

  def body(
    i: tf.Tensor, y: tf.Tensor, ahead: tf.Tensor, t: tf.Tensor
  ) -> tuple[tf.Tensor, ...]:
    gradient = tf.linalg.matvec(cosines, ahead) - linear
    after = tf.nn.relu(ahead - step * gradient)
    # O'Donoghue and Candes 2015: without restarts the steps overshoot and swing.
    overshot = tf.tensordot(gradient, after - y, 1) > 0
    t = tf.where(overshot, tf.ones_like(t), t)
    larger = (1.0 + tf.sqrt(1.0 + 4.0 * t * t)) / 2.0
    return i + 1, after, after + (t - 1.0) / larger * (after - y), larger

  start = tf.zeros_like(linear)
  _, y, _, _ = tf.while_loop(
    lambda i, *_: i < iterations,
    body,
    (tf.constant(0), start, start, tf.constant(1.0, tf.float64)),
  )
  unnormalised = tf.math.divide_no_nan(y, lengths)
  total = tf.reduce_sum(unnormalised)
  return tf.cast(tf.math.divide_no_nan(unnormalised, total), gram.dtype)
