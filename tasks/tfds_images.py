"""CIFAR-10, CIFAR-100 and STL-10 by TensorFlow Datasets, with their published splits.

Alex Krizhevsky, "Learning Multiple Layers of Features from Tiny Images" (2009): 60,000
images of 32 x 32. They are ordered by the ids that TFDS gives them, so that an
example_id means the same image however the data were prepared.

Adam Coates, Andrew Ng, Honglak Lee. An Analysis of Single-Layer Networks in
Unsupervised Feature Learning. AISTATS 2011. 5,000 labelled images of 96 x 96, 100,000
unlabelled ones, and 8,000 to test on. The training split of the task holds the labelled
images first, and then the unlabelled ones (label -1). TFDS gives these images no ids.
They are read in the order of the prepared files, which is the same wherever the same
version of the data set was prepared.

Data already prepared in the data folder are used as they are, without network.
"""

import os
import pathlib
from typing import Any

import numpy as np

from tasks import array_tasks
from tasks import cache
from tasks import images
from tasks import task_types

_UNLABELLED = 'unlabelled'
_CIFAR: dict[str, tuple[str, ...]] = {'train': ('train',), 'test': ('test',)}
# name -> TFDS's splits that make each split of the task.
_PARTS: dict[str, dict[str, tuple[str, ...]]] = {
  'cifar10': _CIFAR,
  'cifar100': _CIFAR,
  'stl10': {'train': ('train', _UNLABELLED), 'test': ('test',)},
}
NAMES = (*_PARTS,)
_READ_BATCH = 1000


def load(
  name: str,
  data_dir: str | os.PathLike[str] | None = None,
  image_size: int | None = None,
  download: bool = True,
) -> task_types.Task:
  """Loads a data set, from the cache or by reading it.

  Args:
    name: One of `NAMES`.
    data_dir: TFDS's folder; None for its default ($TFDS_DATA_DIR,
      ~/tensorflow_datasets).
    image_size: Height and width, in pixels; None for 32, or 96 of STL-10. All its
      105,000 training images take 2.9 GB at 96 x 96, and 0.3 GB at 32 x 32.
    download: Whether TFDS may download and prepare missing data.

  Returns:
    The task; examples are numbered in their order, first the training split.

  Raises:
    ValueError: The data set is not prepared, and may not or cannot be downloaded.
  """
  default = os.environ.get('TFDS_DATA_DIR', '~/tensorflow_datasets')
  root = pathlib.Path(data_dir or default).expanduser()
  if not _is_prepared(root / name):
    _prepare(name, root, download)

  def build(folder: pathlib.Path) -> dict[str, Any]:
    builder = _prepare(name, root, download)
    for split, parts in _PARTS[name].items():
      read = [_read(builder, part, image_size) for part in parts]
      for kind, arrays in zip(('image', 'label'), zip(*read, strict=True), strict=True):
        np.save(folder / f'{split}_{kind}.npy', np.concatenate(arrays))
    return {'label_names': builder.info.features['label'].names}

  entry_name = f'{name}-{image_size or "native"}-{_stamp(root / name)}'
  entry = cache.fetch(cache.root_for(root), entry_name, build)
  train, test = (
    ({task_types.IMAGE: entry.arrays[f'{split}_image']}, entry.arrays[f'{split}_label'])
    for split in ('train', 'test')
  )
  return task_types.Task(
    name,
    tuple(entry.info['label_names']),
    array_tasks.numbered(*train),
    array_tasks.numbered(*test, first_id=len(train[1])),
  )


def _read(
  builder: Any, split: str, image_size: int | None
) -> tuple[np.ndarray, np.ndarray]:
  """Returns images uint8 [n, size, size, 3] and labels int32 [n], -1 for none."""
  dataset = builder.as_dataset(split=split, shuffle_files=False)
  # Resized batch by batch: all images of STL-10 would take 2.9 GB.
  read = [
    (images.resize(batch['image'], image_size), batch['label'], batch.get('id', []))
    for batch in dataset.batch(_READ_BATCH).as_numpy_iterator()
  ]
  image, label, ids = map(np.concatenate, zip(*read, strict=True))
  if split == _UNLABELLED:
    # Whatever TFDS writes if there is no label.
    label = np.full_like(label, -1)
  if len(ids):
    order = np.argsort(ids)
    image, label = image[order], label[order]
  return image, label.astype(np.int32)


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
