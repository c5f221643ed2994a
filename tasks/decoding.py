"""Decodes all images of a data set once, with threads, into the cache."""

import collections
from collections.abc import Callable
import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import shutil
from typing import Any, NamedTuple

import numpy as np
import tqdm

from tasks import brightness
from tasks import cache
from tasks import image_opening
from tasks import images
from tasks import sources

# What `Decoded.notes` says of a file.
PLAIN = 'have a single colour, or nearly'
# How the note of a range begins that depends on all files; the range follows.
MEASURED_RANGE = 'have more than 8 bits, scaled from the range of all such images'
# Of 256 steps of brightness, those of a picture that is nearly of one.
_STEPS = 8
# Share of the pixels, lost by the crop, from which it is said: that of 4:3.
_CROPPED = 0.25


class Decoded(NamedTuple):
  """The images of some files, and what was noticed while they were read.

  Attributes:
    pixels: uint8 [m, image_size, image_size, 3], memory-mapped: the m images that can
      be read, in the order in which their files were given.
    unreadable: The reason for each of the other files.
    notes: What must be said about files that were read: by what is true of them
      (`PLAIN`, ...), their names, sorted.
    digests: A digest of the content of each readable file, by name.
    measured: The ranges that depend on several files, with their keys: those that were
      measured over all, one for each of `brightness.MEASURED`, and the medians of
      series whose files state different ones.
  """

  pixels: np.ndarray
  unreadable: dict[str, str]
  notes: dict[str, list[str]]
  digests: dict[str, str]
  measured: brightness.Ranges = ()


def decode_all(
  source: sources.Source,
  names: tuple[str, ...],
  image_size: int,
  reading: images.Reading = images.AS_USUAL,
  root: pathlib.Path | None = None,
) -> Decoded:
  """Decodes images, or finds them in the cache.

  Args:
    source: Where the images are.
    names: The images' files.
    image_size: Height and width of the result, in pixels.
    reading: How they are read.
    root: The cache folder; None: that of the data set (`cache.root_for`).

  Raises:
    ValueError: There is no space for the result.
  """
  # Each thread holds one image at a time.
  images.check_fits(os.cpu_count() or 1, image_size)

  def build(folder: pathlib.Path) -> dict[str, Any]:
    decoding = _Decoding(source, names, image_size, reading)
    return decoding.write(folder / 'image.npy')

  def still_holds(info: dict[str, Any]) -> bool:
    return all(
      _fails(source, name, image_size, reading) == info['unreadable'][name]
      for name in info['may_pass']
    )

  stamp = cache.fingerprint(
    'few steps of brightness, failures tried again',
    names,
    source.stamp(names),
    image_size,
    dataclasses.astuple(reading),
  )
  root = root or cache.root_for(source.path)
  name = f'{source.path.name}-{image_size}-{stamp}'
  entry = cache.fetch(root, name, build, still_holds)
  info = entry.info
  unreadable = info['unreadable']
  pixels = entry.arrays['image'][: len(names) - len(unreadable)]
  measured = tuple((key, (low, high)) for key, low, high in info['measured'])
  return Decoded(pixels, unreadable, info['notes'], info['digests'], measured)


def _fails(
  source: sources.Source, name: str, image_size: int, reading: images.Reading
) -> str | None:
  """Returns why a file cannot be read now; None if it can."""
  try:
    images.read(source.read(name), image_size, reading, lambda numbers: numbers.stated)
  except MemoryError:
    raise
  # As in `_Decoding`.
  except Exception as error:
    return images.why_unreadable(error)
  return None


class _Decoding:
  """Decodes files with threads: first those of 8 bits, then those that need a range."""

  def __init__(
    self,
    source: sources.Source,
    names: tuple[str, ...],
    image_size: int,
    reading: images.Reading,
  ) -> None:
    self._source = source
    self._names = names
    self._shape = (len(names), image_size, image_size, 3)
    self._reading = reading
    self._unreadable: dict[str, str] = {}
    # Those of it to try again at the next start.
    self._may_pass: dict[str, str] = {}
    # By name: threads share no entry.
    self._notes: dict[str, tuple[str, ...]] = {}
    self._digests: dict[str, str] = {}
    self._lost: dict[str, float] = {}
    self._summaries: dict[str, brightness.Summary] = {}

  def write(self, path: pathlib.Path) -> dict[str, Any]:
    """Writes the pixels into a .npy file, and returns all else that `Decoded` has."""
    size = np.prod(self._shape)
    # Writing to a memory map on a full disk would end the process by a signal.
    if shutil.disk_usage(path.parent).free <= size:
      raise ValueError(
        f'{path.parent.parent} lacks space for {len(self._names):,} decoded images, '
        f'{size / 2**20:,.0f} MiB.'
      )
    pixels = np.lib.format.open_memmap(path, 'w+', np.uint8, self._shape)
    places = {name: place for place, name in enumerate(self._names)}
    # In the order in which the source is read fastest.
    ordered = [name for name in self._source.names if name in places]
    self._pass(pixels, places, ordered, 'decoding', lambda _: None)
    ranges = brightness.of_data_set([*self._summaries.values()])
    of_ranges = [name for name in ordered if name in self._summaries]
    self._pass(
      pixels, places, of_ranges, 'scaling', lambda numbers: ranges[numbers.key]
    )
    _close_gaps(
      pixels, np.array([name not in self._unreadable for name in self._names])
    )
    pixels.flush()
    of_several = brightness.of_several([*self._summaries.values()])
    return {
      'unreadable': dict(sorted(self._unreadable.items())),
      'may_pass': sorted(self._may_pass.values()),
      'notes': self._all_notes(ranges),
      'digests': self._digests,
      'measured': [(key, *ranges[key]) for key in of_several],
    }

  def _pass(
    self,
    pixels: np.ndarray,
    places: dict[str, int],
    ordered: list[str],
    what: str,
    range_of: Callable[[brightness.Numbers], brightness.Range | None],
  ) -> None:
    """Reads some files; those whose range is not known are summarized."""

    def read_one(name: str) -> None:
      try:
        content = self._source.read(name)
        picture = images.read(content, self._shape[1], self._reading, range_of)
      except MemoryError:
        raise
      # Decoders may raise anything for a damaged file; it is counted and named.
      except Exception as error:
        why = self._unreadable[name] = images.why_unreadable(error)
        if image_opening.may_pass(error):
          # What this machine lacks, one file shows for all.
          of_machine = isinstance(error, image_opening.MachineError)
          self._may_pass[why if of_machine else name] = name
        return
      if picture.pixels is None:
        assert picture.summary is not None
        self._summaries[name] = picture.summary
        return
      pixels[places[name]] = picture.pixels
      self._digests[name] = hashlib.sha256(content).hexdigest()[:32]
      self._lost[name] = picture.lost
      plain = np.ptp(picture.pixels, axis=(0, 1)).max() < _STEPS
      self._notes[name] = (*picture.notes, PLAIN) if plain else picture.notes

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
      progress = tqdm.tqdm(
        pool.map(read_one, ordered),
        desc=f'{what} {self._source.path.name}',
        total=len(ordered),
        unit='image',
        delay=1,
        # Only on a terminal.
        disable=None,
      )
      collections.deque(progress, maxlen=0)

  def _all_notes(self, ranges: dict[str, brightness.Range]) -> dict[str, list[str]]:
    """Returns the notes, also of the ranges and of what is lost by the crop."""
    notes = collections.defaultdict(list)
    for name, of_file in self._notes.items():
      for note in of_file:
        notes[note].append(name)
    for key in brightness.MEASURED:
      of_key = {n: each for n, each in self._summaries.items() if each.key == key}
      names = [name for name in of_key if name not in self._unreadable]
      if names:
        text = brightness.shown(ranges[key], [*of_key.values()])
        # Two kinds of numbers may have one range.
        notes[f'{MEASURED_RANGE} ({text})'] += names
    cropped = [name for name, share in self._lost.items() if share >= _CROPPED]
    if cropped:
      share = np.mean([self._lost[name] for name in cropped])
      note = f'lose {share:.0%} of their pixels by the crop; --data=fit=pad keeps them'
      notes[note] = cropped
    return {note: sorted(notes[note]) for note in sorted(notes)}


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
