"""Clients that differ in how their images were taken: rotated or stylised by source.

Wang et al. (Dec-SSL, ICLR 2023), Section B.4 and Figures 10 and 11, after Ghosh et al.,
"An Efficient Framework for Clustered Federated Learning" (2020): the examples are dealt
IID to K sources, and the images of source k are rotated by 2 pi k / K, or given a style
of their own. Labels stay IID. Source 0 keeps its images as they are. Client k is source
k, or sources are mixed over clients (see `mixed_sources`): an image is changed by its
source, whichever client holds it.

Deviations:
  Style: the paper applies the style transfer of Geirhos et al. (2019), a network and a
    set of paintings. Here a style is a palette and a tone, see `stylise`: a function of
    the source alone, which changes colours only, while paintings also change textures.
"""

from collections.abc import Callable, Sequence
import dataclasses
from typing import TypeAlias

import numpy as np

from tff_ssl.partition import iid
from tff_ssl.partition import mixed_sources

# (images uint8 [n, H, W, C], source, number of sources) -> images of the same shape.
Transform: TypeAlias = Callable[[np.ndarray, int, int], np.ndarray]

# Images changed at a time, so that their float copies stay small.
_CHUNK = 64


@dataclasses.dataclass(frozen=True)
class RotationConfig(mixed_sources.MixedConfig):
  """Sources whose images are rotated, each by its own angle."""

  kind = 'rotation'


@dataclasses.dataclass(frozen=True)
class StyleConfig(mixed_sources.MixedConfig):
  """Sources whose images are stylised, each in its own style."""

  kind = 'style'


def draw(
  config: mixed_sources.MixedConfig, num_examples: int, rng: np.random.Generator
) -> np.ndarray:
  """Deals examples to sources, IID.

  Args:
    config: Says how many sources there are.
    num_examples: Number of all examples.
    rng: Source of the shuffle.

  Returns:
    int64 [num_examples], the source of each.

  Raises:
    ValueError: There are fewer examples than sources.
  """
  held = iid.build(iid.IidConfig(clients=config.num_sources), num_examples, rng)
  source = np.zeros(num_examples, np.int64)
  for k, positions in enumerate(held.values()):
    source[positions] = k
  return source


def rotate(images: np.ndarray, source: int, num_sources: int) -> np.ndarray:
  """Rotates images about their centre by source / num_sources of a turn.

  Counter-clockwise, like `np.rot90`, which it equals for square images and right
  angles; bilinear; black where the original has no pixel.

  Args:
    images: uint8 [n, H, W, C].
    source: Number of the source, in [0, num_sources).
    num_sources: Number of sources.

  Returns:
    uint8 [n, H, W, C].

  Raises:
    ValueError: The images or the source are not such.

  Source: Dec-SSL, Section B.4.
  """
  _check(images, source, num_sources)
  _, height, width, _ = images.shape
  angle = 2 * np.pi * source / num_sources
  # Rounded, so that a right angle maps pixels onto pixels.
  cos, sin = np.round((np.cos(angle), np.sin(angle)), 12)
  middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
  y = np.arange(height)[:, np.newaxis] - middle_y
  x = np.arange(width)[np.newaxis] - middle_x
  # Where each pixel comes from, in images with a black frame of one pixel; pixels from
  # farther outside come from the frame.
  from_y = np.clip(cos * y + sin * x + middle_y + 1, 0, height + 1)
  from_x = np.clip(cos * x - sin * y + middle_x + 1, 0, width + 1)
  top, left = np.floor(from_y).astype(int), np.floor(from_x).astype(int)
  bottom, right = np.minimum(top + 1, height + 1), np.minimum(left + 1, width + 1)
  down = (from_y - top)[..., np.newaxis].astype(np.float32)
  across = (from_x - left)[..., np.newaxis].astype(np.float32)
  framed = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
  upper = framed[:, top, left] * (1 - across) + framed[:, top, right] * across
  lower = framed[:, bottom, left] * (1 - across) + framed[:, bottom, right] * across
  return np.rint(upper * (1 - down) + lower * down).astype(np.uint8)


def stylise(images: np.ndarray, source: int, num_sources: int) -> np.ndarray:
  """Gives images the palette and the tone of their source.

  With u = source / num_sources: the hues of images of three channels are rotated by
  2 pi u about the grey axis, and then a pixel p in [0, 1] of any image becomes
  p^(2^e). As u grows, e goes from 0 to 1 and then from -1 to 0, so that no two sources
  have the same e.

  Args:
    images: uint8 [n, H, W, C].
    source: Number of the source, in [0, num_sources).
    num_sources: Number of sources.

  Returns:
    uint8 [n, H, W, C].

  Raises:
    ValueError: The images or the source are not such.
  """
  _check(images, source, num_sources)
  share = source / num_sources
  pixels = images.astype(np.float32) / 255
  if images.shape[-1] == 3:
    rotation = hue_rotation(2 * np.pi * share).astype(np.float32)
    pixels = np.clip(pixels @ rotation.T, 0, 1)
  exponent = 2 * ((share + 0.5) % 1) - 1
  return np.rint(255 * pixels ** (2**exponent)).astype(np.uint8)


def hue_rotation(angle: float) -> np.ndarray:
  """The rotation of colours about the axis of greys.

  Args:
    angle: Radians; a third of a turn moves red to green, green to blue, blue to red.

  Returns:
    float64 [3, 3], to be multiplied with (red, green, blue).
  """
  axis = np.ones(3) / np.sqrt(3)
  cross = np.cross(np.eye(3), axis)
  # Rodrigues' formula.
  return (
    np.cos(angle) * np.eye(3)
    + np.sin(angle) * cross
    + (1 - np.cos(angle)) * np.outer(axis, axis)
  )


def change(
  transform: Transform,
  images: np.ndarray,
  held: Sequence[np.ndarray],
) -> np.ndarray:
  """Changes the images of each source.

  Args:
    transform: `rotate` or `stylise`.
    images: uint8 [n, H, W, C], in memory or memory-mapped.
    held: Positions of the images of each source, int [n_k].

  Returns:
    uint8 [n, H, W, C], in memory: the images as changed by their sources. Images of no
    source are unchanged.
  """
  changed = np.array(images)
  for source, positions in enumerate(held):
    for start in range(0, len(positions), _CHUNK):
      rows = positions[start : start + _CHUNK]
      changed[rows] = transform(images[rows], source, len(held))
  return changed


def _check(images: np.ndarray, source: int, num_sources: int) -> None:
  if images.ndim != 4 or images.dtype != np.uint8:
    raise ValueError(
      f'images are {images.dtype} {list(images.shape)}; they must be uint8 '
      '[n, H, W, C].'
    )
  if not 0 <= source < num_sources:
    raise ValueError(
      f'source is {source} of {num_sources} sources; it must be in [0, {num_sources}).'
    )
