"""Miniature image folders for the tests of this package."""

import csv
import io
import mmap
import pathlib
import tarfile

import numpy as np
from PIL import Image


def jpeg(level: int, size: tuple[int, int] = (20, 16)) -> bytes:
  """A JPEG of two colours, one above the other, width x height."""
  buffer = io.BytesIO()
  image = Image.new('RGB', size, (level, 255 - level, 128))
  image.paste((128, level, 255 - level), (0, 0, size[0], size[1] // 2))
  image.save(buffer, 'jpeg', quality=95)
  return buffer.getvalue()


def truncated_jpeg() -> bytes:
  """A JPEG of noise that ends in its middle."""
  noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)
  buffer = io.BytesIO()
  Image.fromarray(noise).save(buffer, 'jpeg')
  return buffer.getvalue()[: len(buffer.getvalue()) // 2]


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
    (part / f'{row.split(",")[1]}.jpg').write_bytes(jpeg(20 * k))
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


def is_mapped(array: np.ndarray) -> bool:
  """Whether an array is a piece of a file that is mapped into memory."""
  base = array
  while isinstance(base, np.ndarray):
    base = base.base
  return isinstance(base, mmap.mmap)
