"""SwAV: each view predicts the prototypes to which the other was assigned.

Mathilde Caron, Ishan Misra, Julien Mairal, Priya Goyal, Piotr Bojanowski, Armand
Joulin. Unsupervised Learning of Visual Features by Contrasting Cluster Assignments.
NeurIPS 2020.

Deviations: the scaling runs on logarithms, which gives the same numbers and cannot
overflow.
"""

import tensorflow as tf


def assignments(
  scores: tf.Tensor, epsilon: float = 0.05, iterations: int = 3
) -> tf.Tensor:
  """Soft assignments of a batch to prototypes, by Sinkhorn-Knopp.

  Args:
    scores: [n, K] similarities of examples and prototypes; n may be 0.
    epsilon: The weight of the assignments' entropy; above 0.
    iterations: How often the prototypes' and then the examples' shares are made equal;
      0 gives the softmax of scores / epsilon.

  Returns:
    Q [n, K], positive. Every row sums to 1; as the iterations grow, the sum of every
    column approaches n / K. No gradient flows through it.

  Raises:
    ValueError: If the scores are not a matrix.

  Source: Caron et al. 2020, Eqs. 3 to 5 and Appendix A.1; Q is transposed here, and a
  row scaled by n.
  """
  if scores.shape.rank != 2:
    raise ValueError(f'The scores have shape {scores.shape}; it must be [n, K].')
  log_q = tf.stop_gradient(scores) / epsilon
  for _ in range(iterations):
    # Each scaling cancels constant factors of the previous one, so 1/K and 1/n are left
    # out.
    log_q -= tf.reduce_logsumexp(log_q, axis=0, keepdims=True)
    log_q -= tf.reduce_logsumexp(log_q, axis=1, keepdims=True)
  return tf.nn.softmax(log_q, axis=1)


def swapped_prediction(
  scores_1: tf.Tensor,
  scores_2: tf.Tensor,
  temperature: float = 0.1,
  epsilon: float = 0.05,
  iterations: int = 3,
  earlier: tuple[tf.Tensor, tf.Tensor] | None = None,
) -> tf.Tensor:
  """Mean cross-entropy of each view's softmax against the other's assignments.

  Args:
    scores_1: [n, K] cosine similarities of the first view's encodings and the
      prototypes; n may be 0.
    scores_2: [n, K] the same for the second view.
    temperature: tau, divides the scores that predict; above 0.
    epsilon: See `assignments`, also for `iterations`.
    iterations: Number of iterations of Sinkhorn-Knopp.
    earlier: For each view, [m, K] scores of earlier examples, which are assigned with
      the batch but not predicted (the paper's queue); None: there are none.

  Returns:
    Scalar, the mean over examples of (l(z_1, q_2) + l(z_2, q_1)) / 2; 0 for n = 0.

  Raises:
    ValueError: If the shapes differ; see `assignments`.

  Source: Caron et al. 2020, Eqs. 1 and 2; the mean of the two views' terms, as in the
  authors' program.
  """
  if not scores_1.shape.is_compatible_with(scores_2.shape):
    raise ValueError(
      f'The scores of both views have shapes {scores_1.shape} and {scores_2.shape}; '
      'both must be [n, K].'
    )
  q_1, q_2 = (
    _assigned(scores, None if earlier is None else earlier[view], epsilon, iterations)
    for view, scores in enumerate((scores_1, scores_2))
  )
  log_p_1 = tf.nn.log_softmax(scores_1 / temperature, axis=1)
  log_p_2 = tf.nn.log_softmax(scores_2 / temperature, axis=1)
  total = -tf.reduce_sum(q_2 * log_p_1 + q_1 * log_p_2)
  count = tf.cast(tf.shape(scores_1)[0], total.dtype)
  return tf.math.divide_no_nan(total, 2.0 * count)


def _assigned(
  scores: tf.Tensor, earlier: tf.Tensor | None, epsilon: float, iterations: int
) -> tf.Tensor:
  """Returns the assignments of a batch, made with those of earlier examples if any."""
  if earlier is None:
    return assignments(scores, epsilon, iterations)
  together = tf.concat([scores, earlier], axis=0)
  return assignments(together, epsilon, iterations)[: tf.shape(scores)[0]]
