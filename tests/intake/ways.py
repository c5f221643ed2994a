"""Ways in which people's folders of photographs are broken: a row of each.

A row says what is wrong, for the table of docs/broken_pictures.md, and how to break a
folder so.
"""

from collections.abc import Callable
import os
from typing import NamedTuple
import unicodedata

import numpy as np
from PIL import Image

from tests.intake import whole
from tests.worlds import pictures as made


class Way(NamedTuple):
  """How to break a folder.

  Attributes:
    what: What is wrong, as a part of a sentence.
    apply: Breaks it.
    loses: Whether something is lost even if all photographs are read as meant, so that
      a line must say it.
  """

  what: str
  apply: Callable[[whole.Folder], object]
  loses: bool = False


def _page(data: whole.Folder) -> None:
  data.put(0, b'<!DOCTYPE html><html><body>404 Not Found</body></html>')


def _postscript(data: whole.Folder) -> None:
  data.replace(
    0, '.png', b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n'
  )


def _rare_suffixes(data: whole.Folder) -> None:
  data.replace(0, '.JPE', data.read(0))
  data.replace(1, '.jfif', data.read(1))


def _several(suffix: str, kind: str, *others: int) -> Callable[[whole.Folder], None]:
  """Returns what puts other photographs behind the first one, in its file."""

  def apply(data: whole.Folder) -> None:
    more = [data.picture(k) for k in others]
    options = {'save_all': True, 'append_images': more}
    data.replace(0, suffix, made.of(data.picture(0), kind, **options))

  return apply


def _of_numbers(data: whole.Folder, scale: float, offset: float, dtype: type) -> None:
  """Stores all photographs with other numbers."""
  for k in range(len(data.names)):
    share = np.asarray(data.picture(k, 'L'), np.float32) / 255
    values = (share * scale + offset).astype(dtype)
    data.replace(k, '.tif', made.of(Image.fromarray(values), 'TIFF'))


def _twelve_bits(data: whole.Folder) -> None:
  _of_numbers(data, 4095, 0, np.uint16)
  for k in (0, 5):
    values = np.array(Image.open(data.path / data.names[k]))
    values[0, 0] = 65535
    data.put(k, made.of(Image.fromarray(values), 'TIFF'))


def _transparent(data: whole.Folder) -> None:
  for k in (0, 1):
    picture = np.array(data.picture(k, 'RGBA'))
    half = picture.shape[0] // 2
    picture[:half] = (7, 99, 0, 0)
    seen = picture[..., :3].copy()
    seen[:half] = 255
    data.changed[f'{k:03d}'] = Image.fromarray(seen)
    data.replace(k, '.png', made.of(Image.fromarray(picture), 'PNG'))


def _on_its_side(data: whole.Folder) -> None:
  exif = Image.Exif()
  exif[0x0112] = 6
  turned = data.picture(0).transpose(Image.Transpose.ROTATE_90)
  data.put(0, made.of(turned, 'JPEG', exif=exif))


def _huge(data: whole.Folder) -> None:
  slide = data.picture(0, 'L').point(lambda value: 255 * (value > 127), '1')
  slide = slide.resize((8_300, 8_200), Image.Resampling.NEAREST)
  data.changed['000'] = slide.resize((64, 64))
  data.replace(0, '.png', made.of(slide, 'PNG', compress_level=1))


def _panorama(data: whole.Folder) -> None:
  for k in range(len(data.names)):
    wide = data.picture(k).resize((240, 24))
    data.changed[f'{k:03d}'] = wide.crop((108, 0, 132, 24))
    data.replace(k, '.png', made.of(wide, 'PNG'))


def _linked(name: str) -> Callable[[whole.Folder], None]:
  """Returns what moves a file or folder elsewhere, and leaves a link to it."""

  def apply(data: whole.Folder) -> None:
    outside = data.path.with_name('outside')
    (data.path / name).rename(outside)
    (data.path / name).symlink_to(outside)

  return apply


def _others(data: whole.Folder, *names: str) -> None:
  """Writes pictures that are no copies, byte for byte, of the photographs 0, 2, ..."""
  for k, name in enumerate(names):
    data.write(name, data.read(2 * k)[:-2] + b'\0\xff\xd9')


def _hidden_folder(data: whole.Folder) -> None:
  (data.path / 'dog').rename(data.path / '.dog')
  _others(data, 'fox/900.jpg', 'fox/901.jpg')


def files(content: bytes, *names: str) -> Callable[[whole.Folder], None]:
  """Returns what writes files of one content."""
  return lambda data: [data.write(name, content) for name in names]


def _copies(*names: str) -> Callable[[whole.Folder], None]:
  """Returns what copies the first photograph."""
  return lambda data: [data.write(name, data.read(0)) for name in names]


def _in_two_splits(data: whole.Folder) -> None:
  data.split('train', 'test')
  data.write('test/dog/copy.jpg', data.read(1))


def _classes_by_case(data: whole.Folder) -> None:
  data.move(0, 'Cat/000.jpg')
  data.move(2, 'Cat/002.jpg')


def _classes_by_form(data: whole.Folder) -> None:
  for k, form in ((0, 'NFC'), (2, 'NFC'), (4, 'NFD'), (6, 'NFD')):
    data.move(k, f'{unicodedata.normalize(form, "café")}/{k:03d}.jpg')
    data.meant[f'{k:03d}'] = ('café', '', None)


def _class_of_one(data: whole.Folder) -> None:
  data.move(0, 'fox/000.jpg')
  data.meant['000'] = ('fox', '', None)


def _beside_splits(data: whole.Folder) -> None:
  data.split('train', 'test')
  _others(data, 'docs/figures/scan.jpg')


def _train_beside_classes(data: whole.Folder) -> None:
  for k in (0, 2, 4, 6):
    data.move(k, f'train/{data.names[k].rpartition("/")[2]}')


def _val_only(data: whole.Folder) -> None:
  for k, name in enumerate(tuple(data.names)):
    data.move(k, f'val/{name}')
  for name in whole.CLASSES:
    (data.path / name).rmdir()


def _splits_within(data: whole.Folder) -> None:
  for k, name in enumerate(tuple(data.names)):
    folder, _, file = name.partition('/')
    trains = k % 4 in (1, 2)
    data.move(k, f'{folder}/{"train" if trains else "test"}/{file}')
    data.meant[f'{k:03d}'] = (folder, '', trains)


# Read by the task `folder`, whose folders are classes.
FOLDERS = (
  Way(
    'A JPEG that ends in its middle',
    lambda data: data.put(0, data.read(0)[: len(data.read(0)) // 2]),
  ),
  Way('A JPEG of no bytes', lambda data: data.put(0, b'')),
  Way('A web page that says 404, saved as .jpg', _page),
  Way(
    'A HEIC file of a phone',
    lambda data: data.replace(
      0, '.heic', b'\0\0\0\x18ftypheic\0\0\0\0mif1heic' + bytes(99)
    ),
  ),
  Way('A PostScript program named .png', _postscript),
  Way(
    'A photograph whose file has no suffix',
    lambda data: data.replace(0, '', data.read(0)),
  ),
  Way(
    'A named pipe among the photographs',
    lambda data: os.mkfifo(data.path / 'cat' / 'camera.jpg'),
    loses=True,
  ),
  Way('A PNG that is named .jpg', lambda data: data.put(0, data.encoded(0, 'PNG'))),
  Way('Photographs named .JPE and .jfif', _rare_suffixes),
  Way('A GIF', lambda data: data.replace(0, '.gif', data.encoded(0, 'GIF'))),
  Way('A GIF of several frames', _several('.gif', 'GIF', 2, 4), loses=True),
  Way('A TIFF of several pages', _several('.tif', 'TIFF', 2), loses=True),
  Way('Pictures of 12 bits in 16, two with a burnt-in marker of 65535', _twelve_bits),
  Way(
    'Floating-point numbers from 0 to 1.0003, after a resize',
    lambda data: _of_numbers(data, 1.0003, 0, np.float32),
  ),
  Way(
    'Computed tomography: numbers from -1000 to 1000',
    lambda data: _of_numbers(data, 2000, -1000, np.float32),
  ),
  Way(
    'A JPEG in the colours of print',
    lambda data: data.put(0, data.encoded(0, 'JPEG', 'CMYK')),
  ),
  Way('Cut-outs, with other colours where nothing is seen', _transparent),
  Way('A photograph stored on its side, which EXIF says', _on_its_side),
  Way(
    'A picture of one pixel',
    lambda data: data.replace(
      0, '.png', made.of(Image.new('RGB', (1, 1), 'red'), 'PNG')
    ),
    loses=True,
  ),
  Way('A slide of 68 million pixels', _huge),
  Way('Photographs ten times as wide as high', _panorama, loses=True),
  Way('A photograph that is a link out of the folder', _linked('cat/000.jpg')),
  Way('A class that is a link to a folder elsewhere', _linked('dog')),
  Way(
    'A link to a photograph of another class',
    lambda data: (data.path / 'cat/same.jpg').symlink_to(data.path / data.names[1]),
    loses=True,
  ),
  Way('A class whose folder is hidden', _hidden_folder),
  Way(
    '__MACOSX of an archive made on a Mac, and ._ files beside the photographs',
    files(
      b'\0\5\x16\7\0\2\0\0Mac OS X' + bytes(50),
      '__MACOSX/cat/._000.jpg',
      'cat/._000.jpg',
    ),
  ),
  Way(
    '@eaDir with small copies, made by a file server',
    _copies(
      '@eaDir/000.jpg/SYNOPHOTO_THUMB_M.jpg', 'cat/@eaDir/000.jpg/SYNOPHOTO_THUMB_M.jpg'
    ),
  ),
  Way(
    'Thumbs.db, desktop.ini and .DS_Store',
    files(b'\xd0\xcf\x11\xe0', 'cat/Thumbs.db', 'cat/desktop.ini', 'cat/.DS_Store'),
  ),
  Way('A photograph in two classes', _copies('dog/copy.jpg')),
  Way('A photograph in train and in test', _in_two_splits),
  Way('Folders cat and Cat', _classes_by_case),
  Way(
    'A folder with an accent, once as one sign (Linux) and once as two (Mac)',
    _classes_by_form,
  ),
  Way('A class of a single photograph', _class_of_one, loses=True),
  Way(
    'The folder of a class without photographs',
    lambda data: (data.path / 'fox').mkdir(),
    loses=True,
  ),
  Way('Folders train and val', lambda data: data.split('train', 'val')),
  Way('Folders Train and Test', lambda data: data.split('Train', 'Test')),
  Way('Folders Training and Testing', lambda data: data.split('Training', 'Testing')),
  Way('A folder docs with a picture beside train and test', _beside_splits),
  Way(
    'A folder train with some photographs beside those of the classes',
    _train_beside_classes,
  ),
  Way('A single folder val, with the classes in it', _val_only),
  Way('Folders train and test in that of each class', _splits_within),
  Way(
    'A photograph beside the folders of the classes',
    lambda data: data.move(0, '000.jpg'),
  ),
)
