"""CIFAR-10 and CIFAR-100 by TensorFlow Datasets, with their published splits.

Alex Krizhevsky, "Learning Multiple Layers of Features from Tiny Images" (2009). What
is prepared in the data folder is used as it is, without network; the examples are
ordered by the ids that TFDS gives them, so that an example_id means the same image
however the data were prepared.
"""

import os
import pathlib
from typing import Any

import numpy as np

from tasks import cache
from tasks import images
from tasks import task as task_lib

NAMES = ('cifar10', 'cifar100')
_SPLITS = ('train', 'test')
_READ_BATCH = 1000


def load(
  name: str,
  data_dir: str | os.PathLike[str] | None = None,
  image_size: int | None = None,
  download: bool = True,
) -> task_lib.Task:
  """Loads CIFAR-10 or CIFAR-100.

  Args:
    name: 'cifar10' or 'cifar100'.
    data_dir: TFDS's folder; None for its default ($TFDS_DATA_DIR,
      ~/tensorflow_datasets).
    image_size: Height and width, in pixels; None for 32.
    download: Whether TFDS may download and prepare what is not prepared.

  Returns:
    The task.

  Raises:
    ValueError: The data set is not prepared, and is not or cannot be downloaded.
  """
  default = os.environ.get('TFDS_DATA_DIR', '~/tensorflow_datasets')
  root = pathlib.Path(data_dir or default).expanduser()
  builder = None
  if not _is_prepared(root / name):
    builder = _prepare(name, root, download)
  stamp = _stamp(root / name)

  def build(folder: pathlib.Path) -> dict[str, Any]:
    prepared = builder or _prepare(name, root, download)
    for split in _SPLITS:
      image, label = _read(prepared, split)
      np.save(folder / f'{split}_image.npy', images.resize(image, image_size))
      np.save(folder / f'{split}_label.npy', label)
    return {'label_names': prepared.info.features['label'].names}

  entry_name = f'{name}-{image_size or "native"}-{stamp}'
  entry = cache.fetch(cache.root_beside(root), entry_name, build)
  train = _examples(entry, 'train', first_id=0)
  test = _examples(entry, 'test', first_id=len(train))
  return task_lib.Task(name, tuple(entry.info['label_names']), train, test)


def _examples(entry: cache.Entry, split: str, first_id: int) -> task_lib.Examples:
  label = entry.arrays[f'{split}_label']
  ids = np.arange(first_id, first_id + len(label), dtype=np.int64)
  return task_lib.Examples(entry.arrays[f'{split}_image'], label, ids, case=ids)


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
    'prepare it where there is a network with `python -c "import '
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
  # TFDS raises anything at all: no network, a wrong checksum, no space.
  except Exception as error:
    reason = str(error).strip().split('\n')[0]
    raise ValueError(
      f'{name} {builder.version} is not prepared in {root} and cannot be downloaded '
      f'({type(error).__name__}: {reason}); {how}.'
    ) from error
  return builder


def _read(builder: Any, split: str) -> tuple[np.ndarray, np.ndarray]:
  """Images uint8 [n, 32, 32, 3] and labels int32 [n], by TFDS's id."""
  batches = list(
    builder.as_dataset(split=split, shuffle_files=False)
    .batch(_READ_BATCH)
    .as_numpy_iterator()
  )
  order = np.argsort(np.concatenate([batch['id'] for batch in batches]))
  image = np.concatenate([batch['image'] for batch in batches])
  label = np.concatenate([batch['label'] for batch in batches])
  return image[order], label[order].astype(np.int32)
