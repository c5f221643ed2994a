"""Random numbers that belong to an example and a round, not to a batch.

The same round seed gives an example the same draws, in whatever client, batch, order or
pass it is computed. A federated round can therefore be compared with the centralized
step on the union of its clients' data.
"""

import tensorflow as tf

from tff_ssl.computing import checks

# 2^64 over the golden ratio, made odd: multiplying by it modulo 2^64 maps different
# salts to different, well scattered words.
_SALT_MULTIPLIER = 0x9E3779B97F4A7C15


def _salt_word(salt: int) -> int:
  """The salt's 64 scattered bits, as a signed int64."""
  word = (salt * _SALT_MULTIPLIER) % 2**64
  return word - 2**64 if word >= 2**63 else word


def example_seeds(
  round_seed: tf.Tensor, example_id: tf.Tensor, salt: int = 0
) -> tf.Tensor:
  """Seeds for `tf.random.stateless_*`, one per example.

  Args:
    round_seed: int32 [2].
    example_id: int64 [n], unique over the whole data set; n may be 0.
    salt: Names a use of randomness. Two salts never share a seed within a round, and
      across rounds only if the rounds' seeds differ by the salts' exact bit pattern.

  Returns:
    int64 [n, 2]: the round seed's 64 bits, changed by the salt, and the example id.

  Raises:
    ValueError: If a dtype or rank is wrong.
  """
  if round_seed.dtype != tf.int32 or not round_seed.shape.is_compatible_with([2]):
    raise ValueError(
      f'The round seed is {round_seed.dtype.name} of shape {round_seed.shape}; it must '
      'be int32 of shape [2].'
    )
  if example_id.dtype != tf.int64 or not example_id.shape.is_compatible_with([None]):
    raise ValueError(
      f'The example ids are {example_id.dtype.name} of shape {example_id.shape}; they '
      'must be int64 of shape [n].'
    )
  word = tf.bitwise.bitwise_xor(
    tf.bitcast(round_seed, tf.int64), tf.constant(_salt_word(salt), tf.int64)
  )
  return tf.stack([tf.fill(tf.shape(example_id), word), example_id], axis=1)


def uniforms(
  round_seed: tf.Tensor, example_id: tf.Tensor, count: int, salt: int = 0
) -> tf.Tensor:
  """Uniform numbers in [0, 1) for each example, the same in any batch.

  Args:
    round_seed: int32 [2].
    example_id: int64 [n], unique over the whole data set; n may be 0.
    count: How many numbers each example needs.
    salt: Names a use of randomness; different salts give unrelated numbers.

  Returns:
    float32 [n, count], multiples of 2^-24.

  Raises:
    ValueError: If count is below 1, or a dtype or rank is wrong.
  """
  checks.at_least(1, count=count)

  # The loop's body holds only the op that needs a seed of its own: bits become floats
  # once, for all examples, after the loop. The op uses Philox on every kind of device;
  # `tf.random.stateless_uniform` with alg='philox' gives the same numbers with twenty
  # ops.
  @tf.autograph.experimental.do_not_convert
  def draw(seed: tf.Tensor) -> tf.Tensor:
    return tf.raw_ops.StatelessRandomUniformFullInt(
      shape=[count], seed=seed, dtype=tf.uint32
    )

  bits = tf.map_fn(
    draw,
    example_seeds(round_seed, example_id, salt),
    parallel_iterations=1,
    fn_output_signature=tf.TensorSpec([count], tf.uint32),
  )
  # 24 bits are what a float32 below 1 can hold without rounding up to 1.
  return tf.cast(
    tf.bitwise.right_shift(bits, tf.constant(8, tf.uint32)), tf.float32
  ) * (2.0**-24)
