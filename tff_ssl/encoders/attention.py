"""Dense layers and multi-head self-attention, on tensors.

Source: Vaswani et al.: Attention Is All You Need. NeurIPS 2017. Section 3.2.
"""

from typing import Any

import tensorflow as tf


def dense(x: Any, kernel: Any, bias: Any | None) -> tf.Tensor:
  """Multiplies the last axis by a matrix.

  Args:
    x: [n, ..., inputs], of static shape but for n.
    kernel: [inputs, units].
    bias: [units], or None.

  Returns:
    [n, ..., units].
  """
  # One product of two matrices: of more axes, TensorFlow makes a batch of products that
  # all read the kernel, and sums as many gradients of it.
  rows = x if x.shape.rank == 2 else tf.reshape(x, [-1, x.shape[-1]])
  y = tf.linalg.matmul(rows, kernel)
  y = y if bias is None else tf.nn.bias_add(y, bias)
  return y if x.shape.rank == 2 else tf.reshape(y, [-1, *x.shape[1:-1], y.shape[-1]])


def self_attention(
  x: Any, qkv: tuple[Any, Any], output: tuple[Any, Any], heads: int
) -> tf.Tensor:
  """Lets every token of an example look at all of them.

  Args:
    x: [n, tokens, units].
    qkv: kernel [units, 3 * units] and bias [3 * units]: queries, keys and values side
      by side, and in each the heads.
    output: kernel [units, units] and bias [units] after the heads.
    heads: number of heads, a divisor of units.

  Returns:
    [n, tokens, units].
  """
  tokens, units = x.shape[1:]
  size = units // heads
  projected = tf.reshape(dense(x, *qkv), [-1, tokens, 3, heads, size])
  q, k, v = tf.unstack(tf.transpose(projected, [2, 0, 3, 1, 4]))
  weights = tf.nn.softmax(tf.linalg.matmul(q * size**-0.5, k, transpose_b=True))
  mixed = tf.transpose(tf.linalg.matmul(weights, v), [0, 2, 1, 3])
  return dense(tf.reshape(mixed, [-1, tokens, units]), *output)
