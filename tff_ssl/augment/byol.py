"""BYOL's image augmentations: random views of each image of a batch, usually two.

Jean-Bastien Grill, Florian Strub, Florent Altche, Corentin Tallec, Pierre H. Richemond,
Elena Buchatskaya, Carl Doersch, Bernardo Avila Pires, Zhaohan Daniel Guo, Mohammad
Gheshlaghi Azar, Bilal Piot, Koray Kavukcuoglu, Remi Munos, Michal Valko. Bootstrap Your
Own Latent: A New Approach to Self-Supervised Learning. NeurIPS 2020, Appendix B.

A view is: random resized crop, flip, colour jitter, grey, blur, solarize, in the order
of the published program. All draws of an example come from (round seed, example id), so
its views do not depend on the batch, the client or the pass it is computed in. Views of
one configuration go through the ops together: a client may hold one image, and the
number of ops then determines its time.

Deviations: the crop is bilinear, not bicubic; its place is not rounded to pixels; and
its ratio is drawn among the ratios that fit, not by rejection. Deviations of the
colours and of the blur are listed in `color` and `blur`.
"""

from collections.abc import Sequence

import tensorflow as tf

from tff_ssl.augment import blur
from tff_ssl.augment import color
from tff_ssl.augment import configs
from tff_ssl.augment import crop
from tff_ssl.augment import randomness

# What one view draws; the order is part of what a seed means.
_DRAWS = (
  'area',
  'ratio',
  'top',
  'left',
  'flip',
  'jitter',
  'brightness',
  'contrast',
  'saturation',
  'hue',
  'grey',
  'blur',
  'blur_sigma',
  'solarize',
)
# Names the draws of the third and fourth view, of the fifth and sixth, and so on: the
# number of the pair is added. The first pair has salt 0.
_PAIR_SALT = 100
# The configuration is also available here, next to the functions that take it.
AugmentConfig = configs.AugmentConfig
CONFIGS = configs.CONFIGS
by_name = configs.by_name


def to_float(images: tf.Tensor) -> tf.Tensor:
  """Images as float32 in [0, 1], any shape.

  uint8 images are in [0, 255]; floating ones are in [0, 1] already and keep their
  values.
  """
  return _in_unit_range(images, images.dtype)


def _in_unit_range(values: tf.Tensor, stored: tf.DType) -> tf.Tensor:
  """float32 in [0, 1] from values in the units of images stored as `stored`."""
  values = tf.cast(values, tf.float32)
  return values / 255.0 if stored == tf.uint8 else values


def _check_images(images: tf.Tensor) -> None:
  known = images.dtype == tf.uint8 or images.dtype.is_floating
  if not known or images.shape.rank != 4:
    raise ValueError(
      f'Images are {images.dtype.name} of shape {images.shape}; they must be uint8 or '
      'floating [n, H, W, C].'
    )
  if None in images.shape[1:].as_list() or images.shape[3] not in (1, 3):
    raise ValueError(
      f'The shape of images is {images.shape}; it must have a known size and 1 or 3 '
      'channels.'
    )


def _draws(
  round_seed: tf.Tensor, example_id: tf.Tensor, views: tuple[int, ...]
) -> dict[str, tf.Tensor]:
  """Named uniform draws, each float64 [len(views) * n], one view after another."""
  # One call draws for both views of a pair, even if only one is wanted: a view is then
  # the same alone and with any number of other views.
  pairs = {
    pair: randomness.uniforms(
      round_seed,
      example_id,
      configs.NUM_VIEWS * len(_DRAWS),
      salt=_PAIR_SALT + pair if pair else 0,
    )
    for pair in sorted({view // configs.NUM_VIEWS for view in views})
  }
  rows = []
  for view in views:
    pair, place = divmod(view, configs.NUM_VIEWS)
    rows.append(pairs[pair][:, place * len(_DRAWS) : (place + 1) * len(_DRAWS)])
  # In float32, the last bit of exp and cos of a number depends on its place in a
  # vector. What an example draws is therefore computed in float64 and then rounded: its
  # views are the same to the bit in any batch.
  columns = tf.unstack(tf.cast(tf.concat(rows, axis=0), tf.float64), axis=1)
  return dict(zip(_DRAWS, columns, strict=True))


def _views(
  images: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  config: AugmentConfig,
  views: tuple[int, ...],
) -> tf.Tensor:
  """[len(views) * n, S, S, C]: one view of all examples after another."""
  _check_images(images)
  height, width = images.shape[1:3]
  size = (config.image_size or height, config.image_size or width)
  draws = _draws(round_seed, example_id, views)

  def per_row(probability: tuple[float, float]) -> tf.Tensor:
    chosen = tf.constant([_of_view(probability, view) for view in views], tf.float64)
    return tf.repeat(chosen, tf.shape(images)[0])

  if config.crop_scale[0] < 1.0 or config.flip_probability or size != (height, width):
    result = crop.crop_and_flip(
      images,
      draws,
      size,
      config.crop_scale,
      config.crop_ratio,
      config.flip_probability,
    )
  else:
    result = tf.tile(images, [len(views), 1, 1, 1])
  # Only here: bytes are resampled as bytes, which moves a quarter of the memory.
  result = _in_unit_range(result, images.dtype)
  if config.jitters:
    strengths = (config.brightness, config.contrast, config.saturation, config.hue)
    result = color.jitter(
      result, draws, config.jitter_probability, strengths, config.grey_probability
    )
  if any(_of_view(config.blur_probability, view) for view in views):
    result = blur.gaussian_blur(
      result,
      draws['blur'],
      draws['blur_sigma'],
      per_row(config.blur_probability),
      config.blur_sigma,
    )
  if any(_of_view(config.solarize_probability, view) for view in views):
    result = color.solarize(
      result,
      draws['solarize'],
      per_row(config.solarize_probability),
      config.solarize_threshold,
    )
  return result


def _of_view(probability: tuple[float, float], view: int) -> float:
  """The probability of a view; all views after the second have the second's."""
  return probability[min(view, configs.NUM_VIEWS - 1)]


def views_of(
  images: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  config: AugmentConfig,
  numbers: Sequence[int],
) -> list[tf.Tensor]:
  """Some random views of each image, a function of (round seed, example id) alone.

  Args:
    images: [n, H, W, C], uint8 in [0, 255] or floating in [0, 1], C = 1 or 3; n may be
      unknown or 0.
    example_id: int64 [n], unique over the whole data set.
    round_seed: int32 [2].
    config: What to draw from. Its probabilities of the second view also hold for the
      views after it.
    numbers: Which views, from 0. A view is the same whichever others are made.

  Returns:
    For each number a view, float32 [n, S, S, C] in [0, 1], with S the image size of
    `config` ([n, H, W, C] where it has none).

  Raises:
    ValueError: If the images' type or shape, or a number, is not as above.
  """
  if not numbers or min(numbers) < 0:
    raise ValueError(
      f'numbers is {tuple(numbers)}; it must hold at least one view, each at least 0.'
    )
  every = _views(images, example_id, round_seed, config, tuple(numbers))
  return tf.split(every, len(numbers))
