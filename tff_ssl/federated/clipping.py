"""Clips what clients send: one client's values, or those of many as rows of tensors."""

from typing import Any

import tensorflow as tf


def squares_of_rows(values: Any) -> tf.Tensor:
  """Returns the squared l2 norm of what each client sends, float32 [K].

  Args:
    values: A structure of floating tensors [K, ...], a row for each client.
  """
  squares = [_row_sums(tf.square(x)) for x in tf.nest.flatten(values)]
  return tf.add_n([tf.cast(s, tf.float32) for s in squares])


def sum_of_rows(
  values: Any,
  weights: tf.Tensor,
  norm: float | None = None,
  squares: tf.Tensor | None = None,
) -> Any:
  """Returns the sum over clients of weight times value, each product clipped first.

  Args:
    values: A structure of floating tensors [K, ...], a row for each client.
    weights: float32 [K]; a client of weight 0 adds nothing, whatever its values.
    norm: The l2 norm, over the whole structure, to which each client's product is
      clipped; None: it is not.
    squares: As of `squares_of_rows`, if known.

  Returns:
    The structure of tensors [...].
  """
  kept = tf.nest.map_structure(lambda x: _kept(x, weights), values)
  factors = weights
  if norm is not None:
    squares = squares_of_rows(values) if squares is None else squares
    lengths = weights * tf.sqrt(squares)
    factors = weights * tf.minimum(1.0, tf.math.divide_no_nan(norm, lengths))
    # A product of length 0, or of weight 0, needs no clipping.
    factors = tf.where(lengths > 0, factors, weights)
  return tf.nest.map_structure(
    lambda x: tf.tensordot(tf.cast(factors, x.dtype), x, axes=1), kept
  )


def of_one(value: Any, norm: float) -> Any:
  """Returns one client's structure of floating tensors, clipped to an l2 norm.

  Not by `tf.clip_by_global_norm`, which gives NaN if the square of the norm overflows.

  Args:
    value: What the client sends, finite.
    norm: Over the whole structure.
  """
  row = tf.nest.map_structure(lambda x: x[tf.newaxis], value)
  return sum_of_rows(row, tf.ones([1]), norm)


def _kept(x: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Returns the rows, zero where the weight is 0: a product would keep NaN."""
  used = tf.reshape(weights > 0, [-1, *[1] * (x.shape.rank - 1)])
  return tf.where(used, x, tf.zeros([], x.dtype))


def _row_sums(x: tf.Tensor) -> tf.Tensor:
  return tf.reduce_sum(x, list(range(1, x.shape.rank)))
