"""Random masks over the patches of an image, for masked autoencoders.

Source: He et al.: Masked Autoencoders Are Scalable Vision Learners. CVPR 2022. Section
3, 'Masking': patches are sampled without replacement, uniformly.
"""

import tensorflow as tf

from tff_ssl.augment import randomness

# Gives other numbers than the views have, which are drawn from the same seed.
_SALT = 1


def random_order(
  round_seed: tf.Tensor, example_id: tf.Tensor, num_patches: int
) -> tf.Tensor:
  """Shuffles each example's patches, as a function of (round seed, example id) alone.

  The first k of them are a uniform sample of k patches; the rest are to be masked.

  Args:
    round_seed: int32 [2].
    example_id: int64 [n], unique over the whole data set; n may be 0.
    num_patches: Patches of an image.

  Returns:
    int32 [n, num_patches]; each row a permutation of 0 .. num_patches - 1.
  """
  draws = randomness.uniforms(round_seed, example_id, num_patches, _SALT)
  return tf.argsort(draws, axis=1, stable=True)
