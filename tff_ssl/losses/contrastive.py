"""NT-Xent, the contrastive loss of SimCLR.

Ting Chen, Simon Kornblith, Mohammad Norouzi, Geoffrey Hinton. A Simple Framework for
Contrastive Learning of Visual Representations. ICML 2020.
"""

import tensorflow as tf


def nt_xent(
  f: tf.Tensor,
  g: tf.Tensor,
  temperature: float = 0.1,
  mask: tf.Tensor | None = None,
) -> tf.Tensor:
  """Normalised-temperature cross-entropy over the 2n views of n examples.

  Each view must pick the other view of its example out of the 2n - 1 other views by
  cosine similarity.

  Args:
    f: [n, d] encodings of the first view; n may be 0.
    g: [n, d] encodings of the second view.
    temperature: Divides the cosine similarities; above 0.
    mask: Optional [n] of 0 and 1 (any numeric dtype, or bool); examples with 0 are
      padding: neither anchors nor negatives.

  Returns:
    Mean loss over the views that count, a scalar. 0 without examples, and 0 with one
    example, whose views have no negatives.

  Raises:
    ValueError: If the temperature is not above 0 or the shapes differ.

  Source: Chen et al. 2020, Eq. 1 and Algorithm 1.
  """
  if temperature <= 0.0:
    raise ValueError(f'The temperature must be above 0, got {temperature}.')
  if f.shape.rank != 2 or not f.shape.is_compatible_with(g.shape):
    raise ValueError(
      f'The encodings f and g must both be [n, d], got shapes {f.shape} and {g.shape}.'
    )
  n = tf.shape(f)[0]
  keep = tf.ones([n], tf.bool) if mask is None else tf.cast(mask, tf.bool)
  # Padding is blanked before it can reach a product: 0 * NaN is NaN.
  f = tf.where(keep[:, tf.newaxis], f, tf.zeros_like(f))
  g = tf.where(keep[:, tf.newaxis], g, tf.zeros_like(g))
  keep = tf.concat([keep, keep], axis=0)
  # The default epsilon keeps the gradient of a zero vector finite.
  views = tf.math.l2_normalize(tf.concat([f, g], axis=0), axis=1)
  logits = tf.matmul(views, views, transpose_b=True) / temperature

  candidates = keep[tf.newaxis, :] & ~tf.eye(2 * n, dtype=tf.bool)
  # The lowest finite number, not -inf: a row of -inf has a gradient of NaN.
  masked = tf.where(candidates, logits, tf.fill(tf.shape(logits), logits.dtype.min))
  positive = tf.reduce_sum(views * tf.roll(views, n, axis=0), axis=1) / temperature
  losses = tf.reduce_logsumexp(masked, axis=1) - positive

  total = tf.reduce_sum(tf.where(keep, losses, tf.zeros_like(losses)))
  return tf.math.divide_no_nan(total, tf.reduce_sum(tf.cast(keep, f.dtype)))
