"""Random views of vectors of features: Gaussian noise, then some features hidden.

Tabular data have no crops and colours. A feature is hidden by the value 0, which is the
mean of standardised features. Compare Dara Bahri, Heinrich Jiang, Yi Tay, Donald
Metzler. SCARF: Self-Supervised Contrastive Learning using Random Feature Corruption.
ICLR 2022.

As in `byol`, all draws of an example come from (round seed, example id), so that its
views depend neither on the batch nor on the client that it is in.

Deviations from SCARF: a hidden feature becomes 0, not the value of another example,
because a client with one example has no other; both views are corrupted; noise is
added.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.augment import randomness
from tff_ssl.computing import checks
from tff_ssl.computing import kinds

# Names the draws of the first view; the number of the view is added.
_SALT = 200


@dataclasses.dataclass(frozen=True)
class VectorConfig(kinds.Kind):
  """What views of vectors are drawn from. With 0 and 0 a view is the vector itself.

  Attributes:
    noise: Standard deviation of the noise, in the units of the features.
    mask_probability: How often each feature is hidden, independently.
  """

  noise: kinds.NotNegative = 0.1
  mask_probability: kinds.Fraction = 0.3


NOISE_MASK = VectorConfig()
NOISE = VectorConfig(mask_probability=0.0)
MASK = VectorConfig(noise=0.0)
CONFIGS = collections.OrderedDict(noise_mask=NOISE_MASK, noise=NOISE, mask=MASK)


def view(
  features: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  config: VectorConfig,
  number: int = 0,
) -> tf.Tensor:
  """Returns a random view of each vector, a function of (round seed, example id).

  Args:
    features: Floating [n, d], d known; n may be unknown or 0.
    example_id: int64 [n], unique over the whole data set.
    round_seed: int32 [2].
    config: What to draw from.
    number: Number of the view, from 0.

  Returns:
    float32 [n, d].

  Raises:
    ValueError: If the features are not as above, or the number is below 0.
  """
  if (
    not features.dtype.is_floating
    or features.shape.rank != 2
    or (features.shape[1] is None)
  ):
    raise ValueError(
      f'Features are {features.dtype.name} of shape {features.shape}; they must be '
      'floating [n, d] with a known d.'
    )
  checks.at_least(0, number=number)
  dim = features.shape[1]
  draws = randomness.uniforms(round_seed, example_id, 2 * dim, _SALT + number)
  noise, mask = tf.split(draws, 2, axis=1)
  result = tf.cast(features, tf.float32)
  if config.noise:
    # Draws are multiples of 2^-24: adding half of one keeps the quantile finite.
    # Computed in float64, so that a number does not depend on its place in a vector
    # (see `byol`).
    normal = tf.math.ndtri(tf.cast(noise, tf.float64) + 2.0**-25)
    result += tf.cast(config.noise * normal, tf.float32)
  if config.mask_probability:
    result = tf.where(mask < config.mask_probability, tf.zeros_like(result), result)
  return result
