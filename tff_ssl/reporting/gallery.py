"""A map of images by their features, as a picture and as a page to explore.

Images with similar features are near each other. The map is t-SNE (van der Maaten,
Hinton. Visualizing Data using t-SNE. JMLR 2008) of the standardised features: what is
near in the map is similar, but distances between groups, and their sizes, mean nothing.
Neighbours are taken from the features themselves, by cosine similarity as in kNN
evaluation.
"""

import base64
import collections
from collections.abc import Sequence
import os
from typing import NamedTuple

from matplotlib import colors as mpl_colors
from matplotlib import lines as lines_lib
import numpy as np
from sklearn import manifold
import tensorflow as tf
import threadpoolctl

from tff_ssl.computing import inert
from tff_ssl.reporting import look
from tff_ssl.reporting import pages
from tff_ssl.reporting import projection

_NEIGHBOURS = 8
_TILE = 48
_PERPLEXITY = 30.0
# Fewer images have no neighbourhoods to keep: principal components lay them out.
_FEWEST = 8
_EXACT = 100
# Side of a panel of the picture, and of a thumbnail in it, in pixels.
_SIDE, _SMALL = 1000, 32
_MARGIN = 0.03
# Width of a coloured frame, in pixels, and of the legend beside the panels, in inches.
_FRAME, _LEGEND = 3, 2.4
_DIGITS = 4


class Panel(NamedTuple):
  """One encoder's view of the images.

  Attributes:
    title: Title of the encoder.
    places: float [n, 2] in [0, 1], the place of each image; y grows upwards.
    neighbours: int [n, k], the most similar images, nearest first.
  """

  title: str
  places: np.ndarray
  neighbours: np.ndarray


class Coloring(NamedTuple):
  """Colours of the images' frames, by a value of each.

  Attributes:
    legend: Name and colour of each group; the last is that of all other values.
    groups: int [n], the group of each image.
    values: The value of each image, '' for none.
  """

  legend: tuple[tuple[str, str], ...]
  groups: np.ndarray
  values: tuple[str, ...]


def coloring(values: Sequence[str]) -> Coloring:
  """Gives the most frequent values colours that can be told apart.

  Args:
    values: A value for each image, '' for none.
  """
  counts = collections.Counter(value for value in values if value)
  # Equal ones in the order of their names: colours do not depend on that of images.
  ordered = sorted(counts, key=lambda value: (-counts[value], value))
  named = ordered[: len(look.COLORS)]
  legend = [
    (f'{name} ({counts[name]:,})', color)
    for name, color in zip(named, look.COLORS, strict=False)
  ]
  rest = len(values) - sum(counts[name] for name in named)
  if rest:
    others = len(ordered) - len(named)
    legend.append(
      (f'{f"{others:,} others" if others else "none"} ({rest:,})', look.FAINT)
    )
  of_value = {name: k for k, name in enumerate(named)}
  groups = np.array([of_value.get(value, len(named)) for value in values], np.int64)
  return Coloring(tuple(legend), groups, tuple(values))


def panel(title: str, features: np.ndarray) -> Panel:
  """Lays images out by their features.

  Args:
    title: Title of the encoder.
    features: float [n, d], finite.

  Raises:
    ValueError: There are fewer than 2 images, or a feature is not finite.
  """
  if len(features) < 2:
    raise ValueError(f'There are {len(features)} images; a map needs at least 2.')
  if not np.all(np.isfinite(features)):
    raise ValueError(f'The features of {title} are not all finite.')
  return Panel(title, layout(features), neighbours(features))


def layout(features: np.ndarray) -> np.ndarray:
  """Returns the place of each image, float64 [n, 2] in [0, 1].

  Args:
    features: float [n, d], n at least 2.
  """
  x = features.astype(np.float64) - np.mean(features, axis=0, dtype=np.float64)
  deviation = np.std(x, axis=0)
  # A constant feature carries no information; its rounding must not be scaled up.
  x = np.where(deviation > 1e-9, x / np.maximum(deviation, 1e-9), 0.0)
  u, s, _ = np.linalg.svd(x, full_matrices=False)
  components = np.zeros([len(x), 2])
  components[:, : min(2, len(s))] = (u * s)[:, :2]
  places = components
  if len(x) >= _FEWEST and s[0] > 0:
    start = components / np.std(components[:, 0]) * 1e-4
    tsne = manifold.TSNE(
      perplexity=min(_PERPLEXITY, (len(x) - 1) / 3),
      init=start.astype(np.float32),
      learning_rate='auto',
      # For few images the exact gradient is faster.
      method='exact' if len(x) <= _EXACT else 'barnes_hut',
      random_state=0,
    )
    # With some thousand images, threads wait for each other: six times as long.
    with threadpoolctl.threadpool_limits(1):
      places = tsne.fit_transform(x.astype(np.float32))
  low, high = places.min(axis=0), places.max(axis=0)
  span = np.where(high > low, high - low, 1.0)
  return np.where(high > low, (places - low) / span, 0.5).astype(np.float64)


def neighbours(features: np.ndarray, count: int = _NEIGHBOURS) -> np.ndarray:
  """Returns the most similar other images of each image, nearest first.

  Args:
    features: float [n, d]; vectors of zeros are similar to none.
    count: k, the number of neighbours; all others if there are fewer.

  Returns:
    int64 [n, min(k, n - 1)].
  """
  norms = np.linalg.norm(features.astype(np.float64), axis=1, keepdims=True)
  unit = features / np.where(norms > 0, norms, 1.0)
  similarity = unit @ unit.T
  np.fill_diagonal(similarity, -np.inf)
  order = np.argsort(-similarity, axis=1, kind='stable')
  return order[:, : min(count, len(features) - 1)]


def build_page(
  panels: Sequence[Panel],
  names: Sequence[str],
  images: np.ndarray,
  note: str,
  colors: Coloring | None = None,
) -> str:
  """Returns a page on which to look at images and click on them.

  Args:
    panels: One per encoder, of the same images.
    names: Names of the n images.
    images: uint8 [n, H, W, 1 or 3].
    note: What the images are.
    colors: Colours of frames; None: no image has one.

  Returns:
    HTML that contains everything; nothing is loaded.
  """
  tiles = projection.make_tiles(images, _TILE)
  sprite = tf.io.encode_png(projection.make_sprite(tiles)).numpy()
  data = {
    'names': [inert.line(name) for name in names],
    'tile': [int(tiles.shape[2]), int(tiles.shape[1])],
    'sprite': 'data:image/png;base64,' + base64.b64encode(sprite).decode('ascii'),
    'panels': [
      {
        'title': inert.line(each.title),
        'places': np.round(each.places, _DIGITS).tolist(),
        'neighbours': each.neighbours.tolist(),
      }
      for each in panels
    ],
  }
  if colors is not None:
    data['legend'] = [[inert.line(name), color] for name, color in colors.legend]
    data['groups'] = colors.groups.tolist()
    data['values'] = [inert.line(value) for value in colors.values]
  title = f'{len(names):,} images by their features'
  return pages.render('gallery.html', title=title, note=note, data=data)


def draw(
  panels: Sequence[Panel],
  images: np.ndarray,
  note: str,
  path: str | os.PathLike[str],
  colors: Coloring | None = None,
) -> None:
  """Writes a picture of the maps, side by side.

  Args:
    panels: One per encoder, of the same images.
    images: uint8 [n, H, W, 1 or 3].
    note: What the images are.
    path: A PNG file.
    colors: Colours of frames; None: no image has one.
  """
  beside = 0.0 if colors is None else _LEGEND
  figure = look.new(6.5 * len(panels) + beside, 7)
  axes = figure.subplots(1, len(panels), squeeze=False)[0]
  tiles = projection.make_tiles(images, _SMALL)
  # Small images are enlarged to the size of others.
  scale = max(1, _SMALL // max(tiles.shape[1:3]))
  tiles = tiles.repeat(scale, axis=1).repeat(scale, axis=2)
  if colors is not None:
    tiles = _framed(tiles, colors)
    handles = [
      lines_lib.Line2D([], [], color=color, marker='s', linestyle='')
      for _, color in colors.legend
    ]
    names = [name for name, _ in colors.legend]
    # Beside the panels: above them is the title.
    look.legend(figure, handles, names, 1, 'outside right upper', handlelength=1)
  for plot, each in zip(axes, panels, strict=True):
    plot.imshow(_picture(each.places, tiles))
    plot.set_title(look.plain(each.title), color=look.INK, fontsize=10)
    plot.set_xticks([])
    plot.set_yticks([])
    plot.spines[:].set_color(look.FAINT)
  look.title(figure, f'{len(images):,} images by their features', note)
  look.save(figure, path)


def _framed(tiles: np.ndarray, colors: Coloring) -> np.ndarray:
  """Returns thumbnails with frames, uint8 [n, h + 2 * _FRAME, w + 2 * _FRAME, 3]."""
  shades = np.array([mpl_colors.to_rgb(color) for _, color in colors.legend])
  shades = np.rint(255 * shades).astype(np.uint8)[colors.groups]
  n, height, width, _ = tiles.shape
  framed = np.empty([n, height + 2 * _FRAME, width + 2 * _FRAME, 3], np.uint8)
  framed[:] = shades[:, np.newaxis, np.newaxis]
  framed[:, _FRAME:-_FRAME, _FRAME:-_FRAME] = tiles
  return framed


def _picture(places: np.ndarray, tiles: np.ndarray) -> np.ndarray:
  """Returns tiles at their places on white, uint8 [side, side, 3]."""
  height, width = tiles.shape[1:3]
  margin = int(_MARGIN * _SIDE)
  picture = np.full([_SIDE, _SIDE, 3], 255, np.uint8)
  room = _SIDE - 2 * margin - np.array([width, height])
  corners = margin + np.rint(places * room).astype(int)
  for (x, y), tile in zip(corners, tiles, strict=True):
    top = _SIDE - y - height
    picture[top : top + height, x : x + width] = tile
  return picture
