"""Random views of examples of any kind, as many as an objective wants.

Images are augmented by `byol`, vectors by `vectors`; the configuration says which. View
v of an example is drawn from (round seed, example id, v) alone: neither the number of
views nor the configurations of the others change it.
"""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any, TypeAlias

import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.augment import randomness
from tff_ssl.augment import vectors
from tff_ssl.computing import checks
from tff_ssl.computing import kinds
from tff_ssl.settings import parts

# Names the draws of a function of one's own; the number of the view is added.
_SALT_OF_FUNCTIONS = 1000


@dataclasses.dataclass(frozen=True)
class FunctionConfig(kinds.Kind):
  """Views of images by a function that a module of one's own registers.

  Attributes:
    function: See `parts.augmentation`.
    after: What the function is applied to the views of; None: to the images.
  """

  function: Callable[..., Any]
  after: byol.AugmentConfig | None = None


Config: TypeAlias = byol.AugmentConfig | vectors.VectorConfig | FunctionConfig
CONFIGS: 'collections.OrderedDict[str, Config]' = collections.OrderedDict(
  **byol.CONFIGS, **vectors.CONFIGS
)
for _name, _config in CONFIGS.items():
  parts.augmentation(_name)(_config)


def by_name(name: str) -> Config:
  """Returns one of `CONFIGS`, or what is registered under a name.

  Raises:
    ValueError: If there is no configuration of that name.
  """
  checks.one_of(names(), augmentation=name)
  part = parts.AUGMENTATIONS[name]
  if isinstance(part.build, byol.AugmentConfig | vectors.VectorConfig):
    return part.build
  after = part.options['after']
  if isinstance(after, str):
    after = byol.by_name(after)
  return FunctionConfig(part.build, after)


def names() -> tuple[str, ...]:
  """Returns the names that `by_name` takes."""
  return (*parts.AUGMENTATIONS,)


def local_crop(config: Config, image_size: int) -> Config:
  """Returns the configuration of the small crops of multi-crop.

  Args:
    config: What large crops are drawn from. Vectors have no crops: theirs is returned
      unchanged.
    image_size: Side of the small crops, in pixels.

  Source: Caron et al. SwAV. NeurIPS 2020, and DINO. ICCV 2021: areas of 0.05 to 0.4,
  blurred half of the time, never solarized.
  """
  if isinstance(config, FunctionConfig) and config.after is not None:
    small: Any = local_crop(config.after, image_size)
    return dataclasses.replace(config, after=small)
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
  if isinstance(config, FunctionConfig):
    return _by_function(inputs, example_id, round_seed, config, numbers)
  return [
    vectors.view(inputs, example_id, round_seed, config, number) for number in numbers
  ]


def _by_function(
  inputs: tf.Tensor,
  example_id: tf.Tensor,
  round_seed: tf.Tensor,
  config: FunctionConfig,
  numbers: Sequence[int],
) -> list[tf.Tensor]:
  """Returns the views with these numbers that a function makes."""
  if config.after is None:
    before = [byol.to_float(inputs)] * len(numbers)
  else:
    before = _views_of(inputs, example_id, round_seed, config.after, numbers)
  made = []
  for number, images in zip(numbers, before, strict=True):
    salt = _SALT_OF_FUNCTIONS + number
    draws = functools.partial(randomness.uniforms, round_seed, example_id, salt=salt)
    made.append(config.function(images, draws))
  return made
