"""Encodings of images for TensorBoard's embedding projector.

The projector finds `projector_config.pbtxt` in the folder of a run's event files. It
names, relative to itself, the encodings (one line of numbers each), what is known about
each image (a table with a header), and the sprite: the images as tiles of one picture.
"""

from collections.abc import Iterable, Mapping, Sequence
import math
import os
import pathlib

import numpy as np
import tensorflow as tf

from tff_ssl.computing import inert
from tff_ssl.storage import files

CONFIG = 'projector_config.pbtxt'
# Two projections of a task show the same images, whatever the runs' seeds.
_SEED = 0
_MAX_EXAMPLES = 1000
_MAX_TILE = 32
# Side of the largest sprite that browsers show, in pixels, according to TensorBoard.
_MAX_SPRITE = 8192
# Digits of an encoding: the projection is looked at, not computed with.
_DIGITS = 4
_TEXT = """embeddings {{
  tensor_name: "encodings"
  tensor_path: "projector/encodings.tsv"
  metadata_path: "projector/examples.tsv"
{sprite}}}
"""
_SPRITE = """  sprite {{
    image_path: "projector/sprite.png"
    single_image_dim: {width}
    single_image_dim: {height}
  }}
"""


def choose(num_examples: int, max_examples: int = _MAX_EXAMPLES) -> np.ndarray:
  """Chooses examples to show, the same ones each time.

  Args:
    num_examples: How many there are.
    max_examples: How many are shown at most.

  Returns:
    int64 [min(num_examples, max_examples)], increasing positions.
  """
  order = np.random.default_rng(_SEED).permutation(num_examples)
  return np.sort(order[:max_examples]).astype(np.int64)


def write(
  folder: str | os.PathLike[str],
  encodings: np.ndarray,
  images: np.ndarray | None,
  examples: Mapping[str, Sequence[str]],
) -> None:
  """Writes the files of a projection; the configuration last, because it names them.

  Args:
    folder: Where the event files of the run are; made if missing.
    encodings: float [n, d], n at least 1.
    images: uint8 [n, H, W, 1 or 3]; None: there is nothing to show, and no sprite.
    examples: Columns of what is known about each example, such as its label; n values
      each. At least two columns: the projector does not read the name of a single one.

  Raises:
    ValueError: The numbers of examples differ, or are 0 or too large.
  """
  shown = [] if images is None else [len(images)]
  sizes = [len(encodings), *shown, *map(len, examples.values())]
  if len(set(sizes)) > 1 or not sizes[0]:
    raise ValueError(
      f'encodings, images and the columns of examples have {sizes} entries; all must '
      'have the same number, at least 1.'
    )
  sprite, config = None, _TEXT.format(sprite='')
  if images is not None:
    tiles = make_tiles(images)
    _, height, width, _ = tiles.shape
    sprite = make_sprite(tiles)
    config = _TEXT.format(sprite=_SPRITE.format(height=height, width=width))
  folder = pathlib.Path(folder)
  (folder / 'projector').mkdir(parents=True, exist_ok=True)
  if sprite is not None:
    files.write(folder / 'projector' / 'sprite.png', tf.io.encode_png(sprite).numpy())
  lines = ('\t'.join(f'{x:.{_DIGITS}g}' for x in row) for row in encodings)
  files.write(folder / 'projector' / 'encodings.tsv', _lines(lines))
  table = [list(examples), *zip(*examples.values(), strict=True)]
  lines = (
    '\t'.join(inert.line(' '.join(cell.split())) for cell in row) for row in table
  )
  files.write(folder / 'projector' / 'examples.tsv', _lines(lines))
  files.write(folder / CONFIG, config)


def make_tiles(images: np.ndarray, largest: int = _MAX_TILE) -> np.ndarray:
  """Returns the images, uint8 [n, h, w, 3], none larger than a tile may be.

  Args:
    images: uint8 [n, H, W, 1 or 3].
    largest: Side of a tile in pixels, at most.
  """
  _, height, width, _ = images.shape
  scale = min(1.0, largest / max(height, width))
  size = max(1, round(scale * height)), max(1, round(scale * width))
  # Each pixel is the mean of what it covers: an image that fits stays as it is.
  small = tf.image.resize(images, size, method='area').numpy()
  return np.broadcast_to(np.rint(small).astype(np.uint8), (*small.shape[:3], 3))


def make_sprite(tiles: np.ndarray) -> np.ndarray:
  """Lays tiles out in a square, row by row.

  Args:
    tiles: uint8 [n, h, w, 3].

  Returns:
    uint8 [side * h, side * w, 3], where side is the root of n, rounded up.

  Raises:
    ValueError: The sprite would be larger than browsers show.
  """
  count, height, width, channels = tiles.shape
  side = math.ceil(math.sqrt(count))
  if side * max(height, width) > _MAX_SPRITE:
    raise ValueError(
      f'{count} images of {height} x {width} make a sprite of {side} x {side} tiles; '
      f'it may have {_MAX_SPRITE} pixels per side.'
    )
  grid = np.zeros([side * side, height, width, channels], np.uint8)
  grid[:count] = tiles
  grid = grid.reshape(side, side, height, width, channels).swapaxes(1, 2)
  return grid.reshape(side * height, side * width, channels)


def _lines(lines: Iterable[str]) -> str:
  return ''.join(f'{line}\n' for line in lines)
