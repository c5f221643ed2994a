"""GLD-23k: photographs of 203 landmarks by 233 photographers, each a client.

Tzu-Ming Harry Hsu, Hang Qi, Matthew Brown. Federated Visual Classification with
Real-World Data Distribution. ECCV 2020 (arXiv:2003.08082), in the smaller form of
TensorFlow Federated: 23,080 training images. It is read from the folder that
`tff.simulation.datasets.gldv2.load_data(cache_dir=..., gld23k=True)` leaves, which
downloads it once: `gld23k/train/USER`, a TFRecord file for each photographer, and
`gld23k/test.tfRecord`. The photographers of the test images are not known: all test
images belong to one client, `test`.
"""

from collections.abc import Iterator, Mapping, Sequence
import os
import pathlib
import struct
from typing import Any

import numpy as np

from tasks import cache
from tasks import cases
from tasks import images
from tasks import manifest
from tasks import sources
from tasks import subset
from tasks import task_types
from tff_ssl.storage import files

NAME = 'gld23k'
_TRAIN, _TEST = 'train', 'test.tfRecord'
_IMAGE, _CLASS = 'image/encoded_jpeg', 'class'
# Bytes before the content of a record (its length, and a checksum of the length) and
# after it (a checksum of the content).
_HEADER, _FOOTER = 12, 4
# Of a record; as of any other image (`sources`).
_MOST_BYTES = 2**30
# Images are named like files: the user or the test file, and the image's number there.
_TEST_CLIENT = 'test'


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  reading: images.Reading = images.AS_USUAL,
  limits: subset.Limits = subset.ALL,
) -> task_types.Task:
  """Loads GLD-23k.

  Args:
    data_dir: TFF's cache folder, or the folder `gld23k` in it.
    image_size: Height and width, in pixels; None for 64.
    reading: How images are read.
    limits: How many images are taken; others are not read.

  Returns:
    The task; each image is classified by itself.

  Raises:
    ValueError: The folder is missing, or a file of it is not TFF's.
  """
  path = sources.data_path(
    'gld23k',
    data_dir,
    'the cache_dir of tff.simulation.datasets.gldv2.'
    'load_data(gld23k=True), which downloads the images',
  )
  folder = path / NAME if (path / NAME).is_dir() else path
  if not (folder / _TEST).is_file() or not (folder / _TRAIN).is_dir():
    raise ValueError(
      f'{path} holds no {NAME} as TFF writes it: there must be {NAME}/{_TRAIN}/ with '
      f'a file for each user, and {NAME}/{_TEST}.'
    )
  source = _Records(folder)
  count = int(np.max(source.labels)) + 1
  if count > len(source.labels):
    raise ValueError(
      f'{folder} has an image of class {count - 1}; classes must be below the number '
      f'of images, {len(source.labels)}.'
    )
  rows = []
  for name, label in zip(source.names, source.labels.tolist(), strict=True):
    user = name.split('/')[0]
    of_test = user == _TEST
    rows.append(
      manifest.Row(
        name,
        label=str(label),
        split='test' if of_test else 'train',
        client_id=_TEST_CLIENT if of_test else user,
      )
    )
  return cases.build_task(
    NAME,
    source,
    str(folder),
    rows,
    image_size=image_size,
    label_names=tuple(map(str, range(count))),
    classify=manifest.IMAGE,
    reading=reading,
    limits=limits,
  )


class _Records:
  """The images of TFRecord files, as files; see `sources.Source`.

  Attributes:
    path: The folder.
    names: `USER/0000000`, by user and place.
    aside: None.
    empty: None.
    labels: int64 [n], the class of each.
  """

  aside: Mapping[str, Sequence[str]] = {}
  empty: Sequence[str] = ()

  def __init__(self, path: pathlib.Path) -> None:
    # It may come from a stranger.
    files.check_contained(path)
    self.path = path
    users = sorted(entry.name for entry in (path / _TRAIN).iterdir() if entry.is_file())
    self._files = {
      **{user: path / _TRAIN / user for user in users},
      _TEST: path / _TEST,
    }
    stats = [(name, file.stat()) for name, file in self._files.items()]
    self._stamp = cache.fingerprint(
      'records', [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    )
    entry = cache.fetch(
      cache.root_for(path), f'{NAME}-index-{self._stamp}', self._write_index
    )
    self.names = tuple(entry.info['names'])
    self.labels = np.asarray(entry.arrays['labels'])
    pieces = entry.arrays['pieces'].tolist()
    self._pieces = dict(zip(self.names, pieces, strict=True))

  def read(self, name: str, most: int | None = None) -> bytes:
    """Returns a JPEG file, or its first bytes."""
    begin, size = self._pieces[name]
    with self._files[name.rpartition('/')[0]].open('rb') as file:
      file.seek(begin)
      return _parsed(file.read(size), name)[0][:most]

  def stamp(self, names: tuple[str, ...]) -> str:
    """A digest of the files' sizes and times, and of the images' names."""
    return cache.fingerprint(self._stamp, names)

  def _write_index(self, folder: pathlib.Path) -> dict[str, Any]:
    """Writes where each record's content is, int64 [n, 2] in bytes, and its class."""
    names, pieces, labels = [], [], []
    for user, file in self._files.items():
      for number, (begin, content) in enumerate(_records(file)):
        names.append(f'{user}/{number:07d}')
        pieces.append((begin, len(content)))
        labels.append(_parsed(content, names[-1])[1])
    if not names:
      raise ValueError(f'{self.path} holds no images.')
    np.save(folder / 'pieces.npy', np.array(pieces, np.int64))
    np.save(folder / 'labels.npy', np.array(labels, np.int64))
    return {'names': names}


def _records(path: pathlib.Path) -> Iterator[tuple[int, bytes]]:
  """Yields the records of a TFRecord file: where the content begins, and the content.

  Raises:
    ValueError: The file is truncated, or is not a TFRecord file.
  """
  with path.open('rb') as file:
    whole, begin = os.fstat(file.fileno()).st_size, 0
    while begin < whole:
      file.seek(begin)
      header = file.read(_HEADER)
      size = struct.unpack('<Q', header[:8])[0] if len(header) == _HEADER else whole
      first = begin + _HEADER
      if first + size + _FOOTER > whole:
        raise ValueError(
          f'{path} is not a complete TFRecord file: the record at byte {begin:,} of '
          f'{whole:,} is cut off.'
        )
      if size > _MOST_BYTES:
        raise ValueError(
          f'{path} has a record of {size:,} bytes; an image must have at most '
          f'{_MOST_BYTES:,}.'
        )
      yield first, file.read(size)
      begin = first + size + _FOOTER


def _parsed(content: bytes, name: str) -> tuple[bytes, int]:
  """Returns the JPEG file and the class of a record.

  Raises:
    ValueError: The record has other features than TFF's.
  """
  # Imported here: it takes seconds, and what is in the cache needs no parsing.
  import tensorflow as tf

  try:
    features = tf.io.parse_single_example(
      content,
      {
        _IMAGE: tf.io.FixedLenFeature([], tf.string),
        _CLASS: tf.io.FixedLenFeature([], tf.int64),
      },
    )
  except tf.errors.InvalidArgumentError as error:
    raise ValueError(
      f'The record {name} of {NAME} was not written by TFF: it must have one '
      f'{_IMAGE} and one {_CLASS}.'
    ) from error
  image, label = features[_IMAGE].numpy(), int(features[_CLASS])
  if label < 0:
    raise ValueError(f'The record {name} of {NAME} has the class {label}, below 0.')
  return image, label
