"""Published data sets in miniature, and folders of pictures."""

from collections.abc import Iterable
import csv
import json
import pathlib
import tarfile

import numpy as np
from PIL import Image

from tests.worlds import pictures


def fill(
  folder: pathlib.Path, names: Iterable[str], step: int = 20, **options: object
) -> pathlib.Path:
  """Writes a JPEG of each name into a folder, of brightness 0, `step`, ..."""
  folder.mkdir(parents=True, exist_ok=True)
  for k, name in enumerate(names):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(pictures.jpeg(step * k % 250, **options))
  return folder


def write_csv(path: pathlib.Path, header: str, rows: list[str]) -> None:
  """Writes lines of comma-separated cells under a header."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open('w', newline='') as file:
    csv.writer(file).writerows(line.split(',') for line in [header, *rows])


# Six lesions of two diagnoses, two of them with two images.
HAM_ROWS = (
  'L0,I00,nv',
  'L0,I01,nv',
  'L1,I02,nv',
  'L2,I03,nv',
  'L3,I04,mel',
  'L4,I05,mel',
  'L4,I06,mel',
  'L5,I07,mel',
)


def ham_folder(path: pathlib.Path) -> pathlib.Path:
  """HAM10000 as it is published, in miniature."""
  write_csv(path / 'HAM10000_metadata.csv', 'lesion_id,image_id,dx', list(HAM_ROWS))
  for k, row in enumerate(HAM_ROWS):
    part = path / f'HAM10000_images_part_{1 + k // 4}'
    part.mkdir(exist_ok=True)
    (part / f'{row.split(",")[1]}.jpg').write_bytes(pictures.jpeg(20 * k))
  return path


# What the records of `HAM_ROWS` say: age, sex, localization.
HAM_RECORDS = (
  '80.0,male,scalp',
  '80.0,male,scalp',
  '30.0,female,back',
  ',unknown,unknown',
  '0.0,female,face',
  '50.0,male,lower extremity',
  '50.0,male,lower extremity',
  '85.0,male,ear',
)


def ham_records(path: pathlib.Path) -> pathlib.Path:
  """`ham_folder` with the columns of records, as they are published."""
  ham_folder(path)
  rows = [f'{row},{cells}' for row, cells in zip(HAM_ROWS, HAM_RECORDS, strict=True)]
  header = 'lesion_id,image_id,dx,age,sex,localization'
  write_csv(path / 'HAM10000_metadata.csv', header, rows)
  return path


def tar_of(folder: pathlib.Path, target: pathlib.Path, mode: str = 'w') -> pathlib.Path:
  """An archive of a folder's content."""
  with tarfile.open(target, mode) as tar:
    for path in sorted(folder.iterdir()):
      tar.add(path, path.name)
  return target


def emoji_package(path: pathlib.Path) -> pathlib.Path:
  """A package in the format of emoji-datasource: eight pictures, one without an image.

  The picture at (column, row) has the colour (40 column, 100 row, 7), half transparent
  in its lower half, and a border of another colour.
  """

  def entry(name, column, row, category, subcategory, **others):
    return {
      'name': name.upper(),
      'unified': name,
      'short_names': [name.replace(' ', '_')],
      'category': category,
      'subcategory': subcategory,
      'sheet_x': column,
      'sheet_y': row,
      'has_img_google': True,
      **others,
    }

  tones = {
    code: {'sheet_x': 2 + place, 'sheet_y': 0, 'has_img_google': True}
    for place, code in enumerate(('1F3FB', '1F3FB-1F3FF'))
  }
  listed = [
    entry('dog face', 0, 0, 'Animals & Nature', 'animal-mammal'),
    entry('waving hand', 1, 0, 'People & Body', 'hand-open', skin_variations=tones),
    entry('cat', 0, 1, 'Animals & Nature', 'animal-mammal'),
    entry(
      'rose', 1, 1, 'Animals & Nature', 'plant-flower', short_names=['rose', 'red']
    ),
    entry('family', 2, 1, 'People & Body', 'family'),
    entry('ghost', 3, 1, 'People & Body', 'family', has_img_google=False),
    entry('skin-tone-2', 0, 0, 'Component', 'skin-tone'),
  ]
  sheet = np.full((2 * 34, 4 * 34, 4), 255, np.uint8)
  for row in range(2):
    for column in range(4):
      y, x = 34 * row + 1, 34 * column + 1
      sheet[y : y + 32, x : x + 32] = (40 * column, 100 * row, 7, 255)
      sheet[y + 16 : y + 32, x : x + 32, 3] = 0
  (path / 'img/google/sheets').mkdir(parents=True)
  Image.fromarray(sheet).save(path / 'img/google/sheets/32.png')
  (path / 'emoji.json').write_text(json.dumps(listed))
  return path
