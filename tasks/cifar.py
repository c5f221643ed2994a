"""CIFAR-10 and CIFAR-100 by TensorFlow Datasets, with their published splits.

Alex Krizhevsky, "Learning Multiple Layers of Features from Tiny Images" (2009). Data
already prepared in the data folder are used as they are, without network. The examples
are ordered by the ids that TFDS gives them, so that an example_id means the same image
however the data were prepared.
"""

import os
from typing import Any

import numpy as np

from tasks import images
from tasks import task as task_lib
from tasks import tfds_source

NAMES = ('cifar10', 'cifar100')


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
    download: Whether TFDS may download and prepare missing data.

  Returns:
    The task.

  Raises:
    ValueError: The data set is not prepared, and may not or cannot be downloaded.
  """
  source = tfds_source.Source(name, data_dir, download)

  def read(builder: Any, split: str) -> tfds_source.Arrays:
    image, label = _read(builder, split)
    return images.resize(image, image_size), label

  return tfds_source.load_task(source, image_size, read)


def _read(builder: Any, split: str) -> tfds_source.Arrays:
  """Images uint8 [n, 32, 32, 3] and labels int32 [n], by TFDS's id."""
  batches = list(tfds_source.batches(builder, split))
  order = np.argsort(np.concatenate([batch['id'] for batch in batches]))
  image = np.concatenate([batch['image'] for batch in batches])
  label = np.concatenate([batch['label'] for batch in batches])
  return image[order], label[order].astype(np.int32)
