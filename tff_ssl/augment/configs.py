"""The configuration that views of images are drawn from, and its named choices."""

import collections
from collections.abc import Sequence
import dataclasses
from typing import Annotated

from tff_ssl.computing import checks
from tff_ssl.computing import kinds

NUM_VIEWS = 2


@dataclasses.dataclass(frozen=True)
class AugmentConfig(kinds.Kind):
  """What the two views are drawn from; the defaults are BYOL's.

  A probability or strength of 0, or a crop scale of (1, 1), removes the operation from
  the graph. All of them together leave the image unchanged.

  Attributes:
    image_size: Side of the square views, in pixels; None keeps the images' own size.
    crop_scale: Least and greatest area of a crop, in parts of the image's. (1, 1)
      keeps the whole image, whatever the ratio.
    crop_ratio: Least and greatest width over height of a crop.
    flip_probability: How often left and right are mirrored.
    jitter_probability: How often brightness, contrast, saturation and hue change.
    brightness: Greatest shift, in units of the full range.
    contrast: Greatest departure of the factor from 1.
    saturation: Greatest departure of the factor from 1.
    hue: Greatest shift, in full turns.
    grey_probability: How often the colour is dropped.
    blur_probability: How often the first and the second view are blurred; later views
      are like the second.
    blur_sigma: Least and greatest standard deviation of the blur, in pixels.
    solarize_probability: How often the two are solarized, likewise.
    solarize_threshold: Values from here up are inverted.

  Raises:
    ValueError: If a field is out of its range.

  Source: Grill et al. 2020, Appendix B, Table 6.
  """

  image_size: kinds.Count | None = None
  crop_scale: tuple[float, float] = (0.08, 1.0)
  crop_ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0)
  flip_probability: kinds.Fraction = 0.5
  jitter_probability: kinds.Fraction = 0.8
  brightness: kinds.Fraction = 0.4
  contrast: kinds.Fraction = 0.4
  saturation: kinds.Fraction = 0.2
  hue: Annotated[float, kinds.Range(0, 0.5)] = 0.1
  grey_probability: kinds.Fraction = 0.2
  blur_probability: tuple[kinds.Fraction, kinds.Fraction] = (1.0, 0.1)
  blur_sigma: tuple[float, float] = (0.1, 2.0)
  solarize_probability: tuple[kinds.Fraction, kinds.Fraction] = (0.0, 0.2)
  solarize_threshold: kinds.Fraction = 0.5

  def __post_init__(self) -> None:
    super().__post_init__()
    for name in ('blur_probability', 'solarize_probability'):
      values = getattr(self, name)
      if len(values) != NUM_VIEWS:
        raise ValueError(f'{name} is {values}; it must be {NUM_VIEWS} numbers.')
    self._check_interval('crop_scale', self.crop_scale, 1.0)
    self._check_interval('crop_ratio', self.crop_ratio, 100.0)
    self._check_interval('blur_sigma', self.blur_sigma, 1000.0)

  def _check_interval(self, name: str, value: Sequence[float], high: float) -> None:
    if len(value) != 2 or not 0.0 < value[0] <= value[1] <= high:
      raise ValueError(
        f'{name} is {value}; it must be (least, greatest), with 0 < least <= greatest '
        f'<= {high:g}.'
      )

  @property
  def jitters(self) -> bool:
    """Whether any colour can change."""
    strengths = (self.brightness, self.contrast, self.saturation, self.hue)
    return (self.jitter_probability > 0 and any(strengths)) or self.grey_probability > 0


BYOL = AugmentConfig()
# DCCO: "all the data augmentations from Grill et al. (2020) except blur".
BYOL_NO_BLUR = AugmentConfig(blur_probability=(0.0, 0.0))
FLIP = AugmentConfig(
  crop_scale=(1.0, 1.0),
  jitter_probability=0.0,
  grey_probability=0.0,
  blur_probability=(0.0, 0.0),
  solarize_probability=(0.0, 0.0),
)
NONE = dataclasses.replace(FLIP, flip_probability=0.0)
# Not BYOL's: for small images whose orientation shows the class, such as digits.
MILD = dataclasses.replace(
  BYOL_NO_BLUR,
  crop_scale=(0.4, 1.0),
  flip_probability=0.0,
  brightness=0.2,
  contrast=0.2,
  grey_probability=0.0,
  solarize_probability=(0.0, 0.0),
)
# A Simple Framework for Contrastive Learning of Visual Representations (Chen et al.,
# 2020), Appendix A, at strength 1.
SIMCLR = AugmentConfig(
  brightness=0.8,
  contrast=0.8,
  saturation=0.8,
  hue=0.2,
  blur_probability=(0.5, 0.5),
  solarize_probability=(0.0, 0.0),
)
# The same, Appendix B.9, for CIFAR-10: at strength 0.5 and without blur. Dec-SSL (Wang
# et al., ICLR 2023, Section C.1) uses it on CIFAR and does not name the strength.
SIMCLR_NO_BLUR = dataclasses.replace(
  SIMCLR,
  brightness=0.4,
  contrast=0.4,
  saturation=0.4,
  hue=0.1,
  blur_probability=(0.0, 0.0),
)
# Not a paper's: for photographs of at most 32 pixels. A crop of 8 % of 16 x 16 pixels
# has a side of four or five.
SMALL = dataclasses.replace(
  SIMCLR_NO_BLUR,
  crop_scale=(0.2, 1.0),
  brightness=0.2,
  contrast=0.2,
  saturation=0.2,
  hue=0.05,
)
# Momentum Contrast (He et al., 2020), Section 4: crops, grey, jitter always, flips.
MOCO_V1 = dataclasses.replace(
  BYOL_NO_BLUR,
  crop_scale=(0.2, 1.0),
  jitter_probability=1.0,
  saturation=0.4,
  hue=0.4,
  solarize_probability=(0.0, 0.0),
)
# Improved Baselines with Momentum Contrastive Learning (Chen et al., 2020), and SimSiam
# after it: with blur, and less hue.
MOCO_V2 = dataclasses.replace(
  MOCO_V1, jitter_probability=0.8, hue=0.1, blur_probability=(0.5, 0.5)
)
# Masked Autoencoders Are Scalable Vision Learners (He et al., 2022), Section 4.1, "Data
# augmentation": only crops and flips; the crops' area is the published program's.
MAE = dataclasses.replace(FLIP, crop_scale=(0.2, 1.0))
CONFIGS = collections.OrderedDict(
  byol=BYOL,
  byol_no_blur=BYOL_NO_BLUR,
  simclr=SIMCLR,
  simclr_no_blur=SIMCLR_NO_BLUR,
  moco_v1=MOCO_V1,
  moco_v2=MOCO_V2,
  mae=MAE,
  mild=MILD,
  small=SMALL,
  flip=FLIP,
  none=NONE,
)


def by_name(name: str) -> AugmentConfig:
  """One of `CONFIGS`.

  Raises:
    ValueError: If there is no configuration of that name.
  """
  checks.one_of(CONFIGS, augmentation=name)
  return CONFIGS[name]
