"""Spherical k-means with clusters of nearly equal size.

Ekdeep Singh Lubana, Chi Ian Tang, Fahim Kawsar, Robert P. Dick, Akhil Mathur.
Orchestra: Unsupervised Federated Learning via Globally Consistent Clustering. ICML
2022; after Aude Genevay, Gabriel Dulac-Arnold, Jean-Philippe Vert.
Differentiable Deep Clustering with Cluster Size Constraints, 2019.
"""

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.losses import lengths
from tff_ssl.losses import sinkhorn


def centroids(
  x: tf.Tensor,
  start: tf.Tensor,
  iterations: int = 5,
  epsilon: float = 0.04,
  scalings: int = 10,
) -> tf.Tensor:
  """Clusters points of the unit sphere.

  In each iteration a point goes to the cluster of its largest share in a Sinkhorn-Knopp
  assignment, whose clusters are equally large; a cluster's centroid becomes the mean of
  its points, scaled to unit length.

  Args:
    x: [n, d], rows of unit length, n >= 1.
    start: [k, d], the first centroids, of unit length, k >= 1.
    iterations: At least 1; the authors' 5.
    epsilon: Weight of the assignments' entropy; the authors' 1/25.
    scalings: Iterations of Sinkhorn-Knopp; the authors' 10.

  Returns:
    [k, d] of unit length; a cluster without points keeps its centroid. No gradient
    flows through it.

  Raises:
    ValueError: If the number of iterations is below 1; see `sinkhorn.assignments`.
  """
  checks.at_least(1, iterations=iterations)
  x = tf.stop_gradient(x)

  def body(i: tf.Tensor, means: tf.Tensor) -> tuple[tf.Tensor, ...]:
    scores = tf.matmul(x, means, transpose_b=True)
    nearest = tf.argmax(sinkhorn.assignments(scores, epsilon, scalings), axis=1)
    members = tf.one_hot(nearest, tf.shape(means)[0], dtype=x.dtype)
    sums = tf.matmul(members, x, transpose_a=True)
    filled = tf.reduce_sum(sums**2, axis=1, keepdims=True) > 0
    return i + 1, tf.where(filled, lengths.unit(sums, axis=1), means)

  _, means = tf.while_loop(
    lambda i, _: i < iterations, body, (tf.constant(0), tf.stop_gradient(start))
  )
  return means
