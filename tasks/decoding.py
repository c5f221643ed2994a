"""Decodes all images of a data set once, with threads, into the cache."""

import concurrent.futures
import hashlib
import os
import pathlib
import shutil
from typing import Any, NamedTuple

import numpy as np
import tqdm

from tasks import cache
from tasks import images
from tasks import sources

# What `Decoded.notes` says of a file.
PLAIN = 'have a single colour'


class Decoded(NamedTuple):
  """The images of some files, and what was noticed while they were read.

  Attributes:
    pixels: uint8 [m, image_size, image_size, 3], memory-mapped: the m images that can
      be read, in the order in which their files were given.
    unreadable: The reason for each of the other files.
    notes: What must be said about files that were read: by what is true of them
      (`PLAIN`, ...), their names, sorted.
    digests: By the name of each readable file, a digest of its content.
  """

  pixels: np.ndarray
  unreadable: dict[str, str]
  notes: dict[str, list[str]]
  digests: dict[str, str]


def decode_all(
  source: sources.Source, names: tuple[str, ...], image_size: int
) -> Decoded:
  """Decodes images, or finds them in the cache.

  Args:
    source: Where the images are.
    names: The images' files.
    image_size: Height and width of the result, in pixels.

  Raises:
    ValueError: There is no space for the result.
  """
  # Each thread holds one image at a time.
  images.check_fits(os.cpu_count() or 1, image_size)

  def build(folder: pathlib.Path) -> dict[str, Any]:
    return _decode_into(folder / 'image.npy', source, names, image_size)

  stamp = cache.fingerprint('noted', names, source.stamp(names), image_size)
  entry = cache.fetch(
    cache.root_for(source.path), f'{source.path.name}-{image_size}-{stamp}', build
  )
  unreadable = entry.info['unreadable']
  pixels = entry.arrays['image'][: len(names) - len(unreadable)]
  return Decoded(pixels, unreadable, entry.info['notes'], entry.info['digests'])


def _decode_into(
  path: pathlib.Path, source: sources.Source, names: tuple[str, ...], image_size: int
) -> dict[str, Any]:
  """Writes the pixels into a .npy file, and returns all else that `Decoded` has."""
  shape = (len(names), image_size, image_size, 3)
  # Writing to a memory map on a full disk would end the process by a signal.
  if shutil.disk_usage(path.parent).free <= np.prod(shape):
    raise ValueError(
      f'{path.parent.parent} lacks space for {len(names):,} decoded images, '
      f'{np.prod(shape) / 2**20:,.0f} MiB.'
    )
  pixels = np.lib.format.open_memmap(path, 'w+', np.uint8, shape)
  # In the order in which the source is read fastest.
  places = {name: place for place, name in enumerate(names)}
  ordered = [name for name in source.names if name in places]
  plain: list[str] = []
  digests: dict[str, str] = {}

  def decode_one(name: str) -> str | None:
    try:
      content = source.read(name)
      image = images.decode(content, image_size)
    except MemoryError:
      raise
    # Decoders may raise anything for a damaged file; it is counted and named.
    except Exception as error:
      return images.why_unreadable(error)
    pixels[places[name]] = image
    digests[name] = hashlib.sha256(content).hexdigest()[:32]
    if np.all(image == image[0, 0]):
      plain.append(name)
    return None

  with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    progress = tqdm.tqdm(
      pool.map(decode_one, ordered),
      desc=f'decoding {source.path.name}',
      total=len(ordered),
      unit='image',
      delay=1,
      # Only on a terminal.
      disable=None,
    )
    reasons = dict(zip(ordered, progress, strict=True))
  unreadable = {name: reason for name, reason in sorted(reasons.items()) if reason}
  _close_gaps(pixels, np.array([name not in unreadable for name in names]))
  pixels.flush()
  notes = {PLAIN: sorted(plain)} if plain else {}
  return {'unreadable': unreadable, 'notes': notes, 'digests': digests}


def _close_gaps(pixels: np.ndarray, kept: np.ndarray) -> None:
  """Moves the rows that are kept to the front, in their order; the others are zero.

  Each split is then one piece of the file, which stays memory-mapped.

  Args:
    pixels: [n, ...], changed in place.
    kept: bool [n].
  """
  rows = np.flatnonzero(kept)
  for place, row in enumerate(rows):
    if place != row:
      pixels[place] = pixels[row]
  pixels[len(rows) :] = 0
