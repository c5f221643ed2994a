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
from tasks import tfds_source

NAMES = ('cifar10', 'cifar100')
_SPLITS = ('train', 'test')


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
  source = tfds_source.Source(name, data_dir, download)

  def build(folder: pathlib.Path) -> dict[str, Any]:
    builder = source.builder()
    for split in _SPLITS:
      image, label = _read(builder, split)
      np.save(folder / f'{split}_image.npy', images.resize(image, image_size))
      np.save(folder / f'{split}_label.npy', label)
    return {'label_names': builder.info.features['label'].names}

  entry = source.fetch(build, image_size)
  train = _examples(entry, 'train', first_id=0)
  test = _examples(entry, 'test', first_id=len(train))
  return task_lib.Task(name, tuple(entry.info['label_names']), train, test)


def _examples(entry: cache.Entry, split: str, first_id: int) -> task_lib.Examples:
  label = entry.arrays[f'{split}_label']
  ids = np.arange(first_id, first_id + len(label), dtype=np.int64)
  return task_lib.Examples(entry.arrays[f'{split}_image'], label, ids, case=ids)


def _read(builder: Any, split: str) -> tuple[np.ndarray, np.ndarray]:
  """Images uint8 [n, 32, 32, 3] and labels int32 [n], by TFDS's id."""
  batches = list(tfds_source.batches(builder, split))
  order = np.argsort(np.concatenate([batch['id'] for batch in batches]))
  image = np.concatenate([batch['image'] for batch in batches])
  label = np.concatenate([batch['label'] for batch in batches])
  return image[order], label[order].astype(np.int32)
