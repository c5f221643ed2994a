"""NT-Xent, the contrastive loss of SimCLR.

Ting Chen, Simon Kornblith, Mohammad Norouzi, Geoffrey Hinton. A Simple Framework for
Contrastive Learning of Visual Representations. ICML 2020.
"""

import tensorflow as tf

from tff_ssl.losses import lengths


def nt_xent(
  f: tf.Tensor,
  g: tf.Tensor,
  temperature: float = 0.1,
  negatives: tf.Tensor | None = None,
  negatives_mask: tf.Tensor | None = None,
) -> tf.Tensor:
  """Normalised-temperature cross-entropy over the 2n views of n examples.

  Each view must pick, by cosine similarity, the other view of its example out of the
  2n - 1 other views and the `negatives`, if any.

  Args:
    f: [n, d] encodings of the first view; n may be 0.
    g: [n, d] encodings of the second view.
    temperature: Divides the cosine similarities; above 0.
    negatives: Optional [m, d] encodings of further examples, negatives of every view; m
      may be 0.
    negatives_mask: Optional [m] of 0 and 1 (any numeric dtype, or bool); rows with 0
      are not negatives, whatever they hold.

  Returns:
    Mean loss over the views, a scalar. It is 0 without examples, and 0 with
    one example without `negatives`.

  Raises:
    ValueError: If the shapes do not fit.

  Source: Chen et al. 2020, Eq. 1 and Algorithm 1.
  """
  lengths.check_alike(f, g)
  if negatives is not None and not negatives.shape[1:].is_compatible_with(f.shape[1:]):
    raise ValueError(
      f'The negatives have shape {negatives.shape}; it must be [m, d] with the d of '
      f'the encodings, {f.shape}.'
    )
  n = tf.shape(f)[0]
  views = lengths.unit(tf.concat([f, g], axis=0), axis=1)
  logits = tf.matmul(views, views, transpose_b=True) / temperature

  candidates = ~tf.eye(2 * n, dtype=tf.bool)
  if negatives is not None:
    others, known = _blanked(negatives, negatives_mask)
    others = lengths.unit(others, axis=1)
    further = tf.matmul(views, others, transpose_b=True) / temperature
    logits = tf.concat([logits, further], axis=1)
    known = tf.broadcast_to(known[tf.newaxis, :], tf.shape(further))
    candidates = tf.concat([candidates, known], axis=1)
  # The lowest finite number, not -inf: a row of -inf has a gradient of NaN.
  masked = tf.where(candidates, logits, tf.fill(tf.shape(logits), logits.dtype.min))
  positive = tf.reduce_sum(views * tf.roll(views, n, axis=0), axis=1) / temperature
  losses = tf.reduce_logsumexp(masked, axis=1) - positive
  return tf.math.divide_no_nan(tf.reduce_sum(losses), tf.cast(2 * n, f.dtype))


def _blanked(
  encodings: tf.Tensor, mask: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns encodings with zeros for padding, and which are not padding, bool [n]."""
  if mask is None:
    return encodings, tf.ones([tf.shape(encodings)[0]], tf.bool)
  keep = tf.cast(mask, tf.bool)
  # Padding is blanked before it can reach a product: 0 * NaN is NaN.
  return tf.where(keep[:, tf.newaxis], encodings, tf.zeros_like(encodings)), keep
