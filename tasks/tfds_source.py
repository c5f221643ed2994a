"""Data sets by TensorFlow Datasets: prepared ones as they are, or a download."""

from collections.abc import Callable, Iterator
import os
import pathlib
from typing import Any

import numpy as np

from tasks import cache
from tasks import task as task_lib

# Images and labels.
Arrays = tuple[np.ndarray, np.ndarray]

_READ_BATCH = 1000


class Source:
  """One data set in TFDS's folder.

  Attributes:
    name: TFDS's name for it.
  """

  def __init__(
    self, name: str, data_dir: str | os.PathLike[str] | None, download: bool
  ):
    """Prepares the data set if it is not prepared.

    Args:
      name: TFDS's name for it.
      data_dir: TFDS's folder; None for its default ($TFDS_DATA_DIR,
        ~/tensorflow_datasets).
      download: Whether TFDS may download and prepare missing data.

    Raises:
      ValueError: The data set is not prepared, and may not or cannot be downloaded.
    """
    default = os.environ.get('TFDS_DATA_DIR', '~/tensorflow_datasets')
    self.name = name
    self._root = pathlib.Path(data_dir or default).expanduser()
    self._download = download
    self._builder: Any = None
    if not _is_prepared(self._root / name):
      self._builder = _prepare(name, self._root, download)

  def builder(self) -> Any:
    """Returns a builder whose data are prepared."""
    return self._builder or _prepare(self.name, self._root, self._download)

  def fetch(
    self, build: Callable[[pathlib.Path], dict[str, Any]], image_size: int | None
  ) -> cache.Entry:
    """Returns the arrays in the cache, built if they are not there; see `cache`.

    Args:
      build: Writes the arrays into a folder and returns JSON values.
      image_size: Part of the entry's name.
    """
    stamp = _stamp(self._root / self.name)
    entry_name = f'{self.name}-{image_size or "native"}-{stamp}'
    return cache.fetch(cache.root_for(self._root), entry_name, build)


def load_task(
  source: Source, image_size: int | None, read: Callable[[Any, str], Arrays]
) -> task_lib.Task:
  """Loads the task of a data set, from the cache or by reading it.

  Args:
    source: The data set.
    image_size: Height and width, in pixels; None for the native size.
    read: (builder, 'train' or 'test') -> images uint8 [n, image_size, image_size, C]
      and labels int32 [n], in an order that does not depend on the machine.

  Returns:
    The task; examples are numbered in the order of `read`, first the training split.
  """

  def build(folder: pathlib.Path) -> dict[str, Any]:
    builder = source.builder()
    for split in ('train', 'test'):
      for kind, array in zip(('image', 'label'), read(builder, split), strict=True):
        np.save(folder / f'{split}_{kind}.npy', array)
    return {'label_names': builder.info.features['label'].names}

  entry = source.fetch(build, image_size)
  train = _examples(entry, 'train', first_id=0)
  test = _examples(entry, 'test', first_id=len(train))
  return task_lib.Task(source.name, tuple(entry.info['label_names']), train, test)


def _examples(entry: cache.Entry, split: str, first_id: int) -> task_lib.Examples:
  label = entry.arrays[f'{split}_label']
  ids = np.arange(first_id, first_id + len(label), dtype=np.int64)
  fields = {task_lib.IMAGE: entry.arrays[f'{split}_image']}
  return task_lib.Examples(fields, label, ids, case=ids)


def batches(builder: Any, split: str) -> Iterator[dict[str, Any]]:
  """Yields the examples of a split as batches of arrays, in the order of the files."""
  dataset = builder.as_dataset(split=split, shuffle_files=False)
  yield from dataset.batch(_READ_BATCH).as_numpy_iterator()


def _is_prepared(folder: pathlib.Path) -> bool:
  return any(folder.rglob('dataset_info.json'))


def _stamp(folder: pathlib.Path) -> str:
  """A digest of the prepared files, which needs no import of TFDS."""
  files = sorted(path for path in folder.rglob('*') if path.is_file())
  stats = [(path, path.stat()) for path in files]
  return cache.fingerprint(
    *((str(p.relative_to(folder)), s.st_size, s.st_mtime_ns) for p, s in stats)
  )


def _prepare(name: str, root: pathlib.Path, download: bool) -> Any:
  """A builder whose data are prepared in `root`."""
  how = (
    'on a machine with a network connection, prepare it with `python -c "import '
    f"tensorflow_datasets as tfds; tfds.load('{name}', data_dir='{root}')\"` and "
    f'copy {root / name} here'
  )
  if not download and not _is_prepared(root / name):
    raise ValueError(
      f'{name} is not prepared in {root} and may not be downloaded; {how}.'
    )
  # Imported here: it loads TensorFlow, which a start from the cache does not need.
  import tensorflow_datasets as tfds

  builder = tfds.builder(name, data_dir=str(root))
  if builder.is_prepared():
    return builder
  if not download:
    raise ValueError(
      f'{name} {builder.version} is not prepared in {root} and may not be '
      f'downloaded; {how}.'
    )
  try:
    builder.download_and_prepare()
  # TFDS may raise anything: no network, a wrong checksum, no space.
  except Exception as error:
    reason = str(error).strip().split('\n')[0]
    raise ValueError(
      f'{name} {builder.version} is not prepared in {root} and cannot be downloaded '
      f'({type(error).__name__}: {reason}); {how}.'
    ) from error
  return builder
