"""HAM10000: 10,015 photographs of 7,470 skin lesions, seven diagnoses.

Philipp Tschandl, Cliff Rosendahl, Harald Kittler, "The HAM10000 dataset, a large
collection of multi-source dermatoscopic images of common pigmented skin lesions",
Scientific Data 5 (2018). It is read as published: HAM10000_metadata.csv next to the
images *.jpg, in any folders (HAM10000_images_part_1 and _2), or a .tar of these. It is
not downloaded: its licence (Creative Commons, non-commercial) is yours to accept.

One lesion, with 1 to 6 images, is one case. A fifth of the lesions of every diagnosis
is the test split.

`load_records` has two modalities: the photograph as `left`, and the lesion's record,
from the same metadata, as `right`. The diagnosis is the label and not in the record.
"""

import dataclasses
import os
import pathlib

import numpy as np

from tasks import cases
from tasks import csv_rows
from tasks import images as images_lib
from tasks import manifest
from tasks import sources
from tasks import subset
from tasks import task_types

DIAGNOSES = ('akiec', 'bcc', 'bkl', 'df', 'mel', 'nv', 'vasc')
# The name at Dataverse, where there are more columns, and that in the ISIC archive and
# at Kaggle.
_METADATA = ('HAM10000_metadata', 'HAM10000_metadata.csv')
# The columns of a record, and the values of two of them. Ages are known to five years.
_AGE, _SEX, _PLACE = 'age', 'sex', 'localization'
_UNKNOWN = 'unknown'
_SEXES = ('female', 'male', _UNKNOWN)
_PLACES = (
  'abdomen',
  'acral',
  'back',
  'chest',
  'ear',
  'face',
  'foot',
  'genital',
  'hand',
  'lower extremity',
  'neck',
  'scalp',
  'trunk',
  'upper extremity',
  _UNKNOWN,
)
_NO_AGE = ('', 'na', 'nan', _UNKNOWN)
# Constants, not statistics of the data, which no client would know.
_MIDDLE_AGE, _AGE_SCALE, _MOST_AGE = 50.0, 20.0, 120.0
# The numbers of a record, in their order.
RECORD = (
  _AGE,
  'age is unknown',
  *(f'{_SEX} {value}' for value in _SEXES),
  *(f'{_PLACE} {value}' for value in _PLACES),
)


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
  reading: images_lib.Reading = images_lib.AS_USUAL,
  follow_links: bool = False,
  limits: subset.Limits = subset.ALL,
) -> task_types.Task:
  """Loads HAM10000.

  Args:
    data_dir: The folder, or .tar file, that holds HAM10000_metadata.csv and images.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split into train and test lesions.
    reading: How images are read.
    follow_links: Whether links that lead out of the folder are followed.
    limits: How many images are taken; others are not read.

  Returns:
    The task; lesions are classified.

  Raises:
    ValueError: The data are missing or not HAM10000's.
  """
  source, metadata = _open(data_dir, follow_links)
  return cases.build_task(
    'ham10000',
    source,
    metadata,
    _rows(source, metadata),
    image_size=image_size,
    seed=seed,
    label_names=DIAGNOSES,
    reading=reading,
    follow_links=follow_links,
    limits=limits,
  )


def load_records(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
  reading: images_lib.Reading = images_lib.AS_USUAL,
  follow_links: bool = False,
  limits: subset.Limits = subset.ALL,
) -> task_types.Task:
  """Loads HAM10000 as two modalities: photographs are `left`, records are `right`.

  Args:
    data_dir: As in `load`, like all arguments below.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split into train and test lesions.
    reading: How images are read.
    follow_links: Whether links that lead out of the folder are followed.
    limits: How many images are taken; others are not read.

  Returns:
    The task; `right` is float32 [n, 20], as `RECORD` says: (age - 50 years) / 20 years,
    or 0 if it is unknown; 1 if it is unknown; and sex and localization one-hot.

  Raises:
    ValueError: The data are missing or not HAM10000's.
  """
  images = load(data_dir, image_size, seed, reading, follow_links, limits)
  source, metadata = _open(data_dir, follow_links)
  listed = _by_example(source, metadata, ('image_id', _SEX, _PLACE))
  if _AGE not in listed[0]:
    raise ValueError(
      f'{metadata} lacks the column {_AGE}, which is needed for the records.'
    )
  records = np.stack([_record(metadata, cells) for cells in listed])

  def paired(examples: task_types.Examples) -> task_types.Examples:
    right = records[examples.example_id]
    return dataclasses.replace(
      examples, fields={'left': examples.image, 'right': right}
    )

  return dataclasses.replace(
    images,
    name='ham10000_records',
    train=paired(images.train),
    test=paired(images.test),
  )


def hospitals(
  data_dir: str | os.PathLike[str], follow_links: bool = False
) -> np.ndarray:
  """Returns where each image was taken, by the metadata's column `dataset`.

  Dataverse's metadata have it (rosendahl, vidir_modern, vidir_molemax, vienna_dias);
  the ISIC archive's and Kaggle's do not.

  Args:
    data_dir: As in `load`.
    follow_links: Likewise.

  Returns:
    str [N], by example_id.

  Raises:
    ValueError: The data are missing or not HAM10000's, or lack the column.
  """
  listed = _by_example(*_open(data_dir, follow_links), ('image_id', 'dataset'))
  # In an array of texts each would take as much as the longest.
  return np.array([cells['dataset'] for cells in listed], object)


def _by_example(
  source: sources.Source, metadata: str, columns: tuple[str, ...]
) -> list[dict[str, str]]:
  """Returns the cells of each image by example_id; the columns must be there."""
  table = manifest.read_table(metadata, source.read(metadata), columns)
  # An example_id is the place of an image among all listed ones, sorted by name.
  by_image = {cells['image_id']: cells for cells in table}
  rows = sorted(row.image for row in _rows(source, metadata))
  return [by_image[pathlib.PurePosixPath(image).stem] for image in rows]


def _record(metadata: str, cells: dict[str, str]) -> np.ndarray:
  """Returns the record of a lesion as numbers, float32 [20]; see `load_records`."""
  known = cells[_AGE].lower() not in _NO_AGE
  age = csv_rows.number(cells[_AGE]) if known else _MIDDLE_AGE
  if not 0 <= age <= _MOST_AGE:
    raise ValueError(
      f'{metadata} gives {cells["image_id"]} the age {cells[_AGE]!r}; it must be years '
      f'from 0 to {_MOST_AGE:g}, or empty.'
    )
  numbers = [(age - _MIDDLE_AGE) / _AGE_SCALE, float(not known)]
  for column, values in ((_SEX, _SEXES), (_PLACE, _PLACES)):
    if cells[column] not in values:
      raise ValueError(
        f'{metadata} gives {cells["image_id"]} the {column} {cells[column]!r}; it must '
        f'be one of {", ".join(values)}.'
      )
    numbers += [float(cells[column] == value) for value in values]
  return np.array(numbers, np.float32)


def _open(
  data_dir: str | os.PathLike[str] | None, follow_links: bool = False
) -> tuple[sources.FolderSource | sources.TarSource, str]:
  """Returns the files, and the name of the metadata."""
  path = sources.data_path(
    'ham10000',
    data_dir,
    'the folder or .tar that holds '
    'HAM10000_metadata.csv and the images (https://doi.org/10.7910/DVN/DBW86T)',
  )
  source = sources.open_source(path, follow_links)
  metadata = sources.shallowest(source, _METADATA)
  if metadata is None:
    raise ValueError(f'{path} holds no HAM10000_metadata.csv.')
  return source, metadata


def _rows(source: sources.Source, metadata: str) -> list[manifest.Row]:
  """The metadata as a manifest."""
  # Kaggle's copy holds every image twice; the first in order is taken.
  files = {
    name.rpartition('/')[2]: name
    for name in sorted(source.names, reverse=True)
    if name.endswith('.jpg')
  }
  rows = []
  table = manifest.read_table(
    metadata, source.read(metadata), ('lesion_id', 'image_id', 'dx')
  )
  for cells in table:
    image = f'{cells["image_id"]}.jpg'
    if cells['dx'] not in DIAGNOSES:
      raise ValueError(
        f'{metadata} gives {image} the diagnosis {cells["dx"]!r}; it must be one of '
        f'{", ".join(DIAGNOSES)}.'
      )
    # An unknown name is passed on as it is, to be reported with all others.
    rows.append(manifest.Row(files.get(image, image), cells['lesion_id'], cells['dx']))
  return rows
