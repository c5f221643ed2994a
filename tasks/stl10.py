"""STL-10 by TensorFlow Datasets, with its own unlabelled split.

Adam Coates, Andrew Ng, Honglak Lee. An Analysis of Single-Layer Networks in
Unsupervised Feature Learning. AISTATS 2011. 5,000 labelled images of 96 x 96, 100,000
unlabelled ones, and 8,000 to test on. The training split of the task holds the labelled
images first, and then the unlabelled ones (label -1).

TFDS gives these images no ids. They are read in the order of the prepared files, which
is the same wherever the same version of the data set was prepared.
"""

import os
from typing import Any

import numpy as np

from tasks import images
from tasks import task as task_lib
from tasks import tfds_source

NAME = 'stl10'
_UNLABELLED = 'unlabelled'
# TFDS's splits that make each split of the task.
_PARTS = {'train': ('train', _UNLABELLED), 'test': ('test',)}


def load(
  data_dir: str | os.PathLike[str] | None = None,
  image_size: int | None = None,
  download: bool = True,
) -> task_lib.Task:
  """Loads STL-10.

  Args:
    data_dir: TFDS's folder; None for its default ($TFDS_DATA_DIR,
      ~/tensorflow_datasets).
    image_size: Height and width, in pixels; None for 96. All 105,000 training images
      take 2.9 GB at 96 x 96, and 0.3 GB at 32 x 32.
    download: Whether TFDS may download and prepare missing data.

  Returns:
    The task.

  Raises:
    ValueError: The data set is not prepared, and may not or cannot be downloaded.
  """
  source = tfds_source.Source(NAME, data_dir, download)

  def read(builder: Any, split: str) -> tfds_source.Arrays:
    parts = [_read(builder, part, image_size) for part in _PARTS[split]]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

  return tfds_source.load_task(source, image_size, read)


def _read(builder: Any, split: str, image_size: int | None) -> tfds_source.Arrays:
  """Images uint8 [n, size, size, 3] and labels int32 [n], -1 for none."""
  read: list[tuple[np.ndarray, np.ndarray]] = [
    (images.resize(batch['image'], image_size), batch['label'].astype(np.int32))
    for batch in tfds_source.batches(builder, split)
  ]
  image = np.concatenate([batch[0] for batch in read])
  label = np.concatenate([batch[1] for batch in read])
  # Whatever TFDS writes if there is no label.
  return image, np.full_like(label, -1) if split == _UNLABELLED else label
