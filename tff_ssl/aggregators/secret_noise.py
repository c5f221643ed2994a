"""Noise that nobody can draw again: its seeds are secret.

What TensorFlow draws without a seed comes from one generator per process, which begins
with 32 bits of the system's. All 2^32 streams can be tried: numbers of a run that may
be given away, such as clip norms that follow noised counts, show which one it was, and
with it all other noise. So noise is drawn by operations that take a seed, of 128 bits:

  seed = (what is drawn without a seed) XOR (secret bits of the graph)

The first part is another in each call: in each round, on each client. The secret bits
come from the operating system when a graph is made, anew for each tensor. A run that is
resumed makes its graphs anew. The bits are in no file. Where the server makes the
graphs that clients compute, it knows the bits; the first part alone is then secret.

The generator of these operations, Philox, is not cryptographic.
"""

import secrets

import dp_accounting
import tensorflow as tf
import tensorflow_privacy


def seed() -> tf.Tensor:
  """Returns a seed for one tensor of noise, int64 [2]: another in each call."""
  # As signed numbers.
  own = [secrets.randbits(64) - 2**63 for _ in range(2)]
  drawn = tf.random.uniform([2], tf.int64.min, tf.int64.max, tf.int64)
  return tf.bitwise.bitwise_xor(drawn, tf.constant(own, tf.int64))


class GaussianSumQuery(tensorflow_privacy.GaussianSumQuery):
  """tensorflow_privacy's sum with Gaussian noise, whose seeds are secret."""

  def get_noised_result(self, sample_state, global_state):
    """Adds noise to each tensor; see `tensorflow_privacy.DPQuery`."""

    def noised(total):
      noise = tf.random.stateless_normal(tf.shape(total), seed())
      return total + tf.cast(global_state.stddev * noise, total.dtype)

    event = dp_accounting.GaussianDpEvent(
      global_state.stddev / global_state.l2_norm_clip
    )
    return tf.nest.map_structure(noised, sample_state), global_state, event
