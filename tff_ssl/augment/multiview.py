"""Random views of examples of any kind, as many as an objective wants.

Images are augmented by `byol`, vectors by `vectors`; the configuration says which. View
v of an example is drawn from (round seed, example id, v) alone: neither the number of
views nor the configurations of the others change it.
"""

import collections
from collections.abc import Sequence
import dataclasses
from typing import TypeAlias

import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.augment import vectors
from tff_ssl.computing import checks

Config: TypeAlias = byol.AugmentConfig | vectors.VectorConfig
CONFIGS: 'collections.OrderedDict[str, Config]' = collections.OrderedDict(
  **byol.CONFIGS, **vectors.CONFIGS
)


def by_name(name: str) -> Config:
  """Returns one of `CONFIGS`.

  Raises:
    ValueError: If there is no configuration of that name.
  """
  checks.one_of(CONFIGS, augmentation=name)
  return CONFIGS[name]


def local_crop(config: Config, image_size: int) -> Config:
  """Returns the configuration of the small crops of multi-crop.

  Args:
    config: What large crops are drawn from. Vectors have no crops: theirs is returned
      unchanged.
    image_size: Side of the small crops, in pixels.

  Source: Caron et al. SwAV. NeurIPS 2020, and DINO. ICCV 2021: areas of 0.05 to 0.4,
  blurred half of the time, never solarized.
  """
  if not isinstance(config, byol.AugmentConfig):
    return config
  return dataclasses.replace(
    config,
    image_size=image_size,
    crop_scale=(0.05, 0.4),
    blur_probability=(0.5, 0.5) if any(config.blur_probability) else (0.0, 0.0),
    solarize_probability=(0.0, 0.0),
  )


def views(
  inputs: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  configs: Sequence[Config],
) -> list[tf.Tensor]:
  """Returns random views of each example, one for each configuration.

  Multi-crop is two configurations of large crops and some of small ones, with an
  `image_size` of their own. Views of equal configurations go through the ops together.

  Args:
    inputs: Images [n, H, W, C] or vectors [n, d], as the configurations take them; n
      may be unknown or 0.
    example_id: int64 [n], unique over the whole data set.
    round_seed: int32 [2].
    configs: What each view is drawn from; one or more.

  Returns:
    As many views, each float32 [n, ...].

  Raises:
    ValueError: If there is no configuration, or one is not for such inputs.
  """
  if not configs:
    raise ValueError('configs is empty; it must have one configuration for each view.')
  numbers = collections.defaultdict(list)
  for number, config in enumerate(configs):
    numbers[config].append(number)
  made: dict[int, tf.Tensor] = {}
  for config, own in numbers.items():
    made.update(
      zip(own, _views_of(inputs, example_id, round_seed, config, own), strict=True)
    )
  return [made[number] for number in range(len(configs))]


def one_view(
  inputs: tf.Tensor, example_id: tf.Tensor, round_seed: tf.Tensor, config: Config
) -> tf.Tensor:
  """Returns the first view of each example; see `views`."""
  return views(inputs, example_id, round_seed, (config,))[0]


def _views_of(
  inputs: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  config: Config,
  numbers: Sequence[int],
) -> list[tf.Tensor]:
  """Returns the views with these numbers, all by one configuration."""
  if isinstance(config, byol.AugmentConfig):
    return byol.views_of(inputs, example_id, round_seed, config, numbers)
  return [
    vectors.view(inputs, example_id, round_seed, config, number) for number in numbers
  ]
