"""HAM10000: 10,015 photographs of 7,470 skin lesions, seven diagnoses.

Philipp Tschandl, Cliff Rosendahl, Harald Kittler, "The HAM10000 dataset, a large
collection of multi-source dermatoscopic images of common pigmented skin lesions",
Scientific Data 5 (2018). Read as it is published: HAM10000_metadata.csv next to the
images *.jpg, in whatever folders (HAM10000_images_part_1 and _2), or a .tar of that.
Not downloaded: its licence (Creative Commons, non-commercial) is yours to accept.

One lesion, with 1 to 6 images, is one case. A fifth of the lesions of every diagnosis
is the test split.
"""

import os
import pathlib

import numpy as np

from tasks import cases
from tasks import manifest as manifest_lib
from tasks import sources
from tasks import task as task_lib

DIAGNOSES = ('akiec', 'bcc', 'bkl', 'df', 'mel', 'nv', 'vasc')
# The first name is that of the ISIC archive and Kaggle, the second Dataverse's.
_METADATA = ('HAM10000_metadata.csv', 'HAM10000_metadata')


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
) -> task_lib.Task:
  """Loads HAM10000.

  Args:
    data_dir: The folder, or .tar file, that holds HAM10000_metadata.csv and images.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split into train and test lesions.

  Returns:
    The task; a lesion is what is classified.

  Raises:
    ValueError: The data are missing or not HAM10000's.
  """
  source, metadata = _open(data_dir)
  return cases.build_task(
    'ham10000',
    source,
    metadata,
    _rows(source, metadata),
    image_size=image_size or cases.IMAGE_SIZE,
    seed=seed,
    label_names=DIAGNOSES,
  )


def hospitals(data_dir: str | os.PathLike[str]) -> np.ndarray:
  """Tells where each image was taken, by the metadata's column `dataset`.

  Dataverse's metadata have it (rosendahl, vidir_modern, vidir_molemax, vienna_dias),
  the ISIC archive's and Kaggle's have not.

  Args:
    data_dir: As of `load`.

  Returns:
    str [N], by example_id.

  Raises:
    ValueError: The data are missing or not HAM10000's, or lack the column.
  """
  source, metadata = _open(data_dir)
  table = manifest_lib.read_table(
    metadata, source.read(metadata), ('image_id', 'dataset')
  )
  # An example_id is the place of an image among all listed ones, sorted by name.
  by_image = {cells['image_id']: cells['dataset'] for cells in table}
  rows = sorted(row.image for row in _rows(source, metadata))
  return np.array([by_image[pathlib.PurePosixPath(image).stem] for image in rows])


def _open(
  data_dir: str | os.PathLike[str] | None,
) -> tuple[sources.FolderSource | sources.TarSource, str]:
  """Returns the files, and the name of the metadata."""
  if data_dir is None:
    raise ValueError(
      'Task ham10000 needs data_dir: the folder or .tar that holds '
      'HAM10000_metadata.csv and the images (https://doi.org/10.7910/DVN/DBW86T).'
    )
  path = pathlib.Path(data_dir).expanduser()
  source = sources.open_source(path)
  metadata = sources.shallowest(source, _METADATA)
  if metadata is None:
    raise ValueError(f'{path} holds no HAM10000_metadata.csv.')
  return source, metadata


def _rows(source: sources.Source, metadata: str) -> list[manifest_lib.Row]:
  """The metadata as a manifest."""
  # Kaggle's copy holds every image twice; the first in order is taken.
  files = {
    name.rpartition('/')[2]: name
    for name in sorted(source.names, reverse=True)
    if name.endswith('.jpg')
  }
  rows = []
  table = manifest_lib.read_table(
    metadata, source.read(metadata), ('lesion_id', 'image_id', 'dx')
  )
  for cells in table:
    image = f'{cells["image_id"]}.jpg'
    if cells['dx'] not in DIAGNOSES:
      raise ValueError(
        f'{metadata} gives {image} the diagnosis {cells["dx"]!r}; allowed are '
        f'{", ".join(DIAGNOSES)}.'
      )
    # An unknown name goes on as it is, to be reported with all others.
    rows.append(
      manifest_lib.Row(files.get(image, image), cells['lesion_id'], cells['dx'])
    )
  return rows
