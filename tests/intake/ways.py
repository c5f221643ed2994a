"""Ways in which people's folders of photographs are broken, a function of each.

The docstring of a way says what is wrong, for the table of docs/broken_pictures.md.
"""

from collections.abc import Callable
import dataclasses
import os
import pathlib
import unicodedata

import numpy as np
from PIL import Image

from tests.intake import whole

Break = Callable[[whole.Folder], None]


@dataclasses.dataclass(frozen=True)
class Way:
  """How to break a folder.

  Attributes:
    task: The task that reads it: `folder`, whose folders are classes, or `cases`.
    apply: Breaks it.
    loses: Whether something is lost even if all photographs are read as meant, so that
      a line must say it.
  """

  task: str
  apply: Break
  loses: bool

  @property
  def what(self) -> str:
    """What is wrong, as a part of a sentence."""
    return (self.apply.__doc__ or '').rstrip('.')


WAYS: dict[str, Way] = {}


def of(task: str, loses: bool = False) -> Callable[[Break], Break]:
  """Returns a decorator that lists a function in `WAYS`; see `Way`."""

  def add(apply: Break) -> Break:
    WAYS[apply.__name__] = Way(task, apply, loses)
    return apply

  return add


_folder, _losing_folder = of('folder'), of('folder', loses=True)

# Files that are no pictures, or hardly.


@_folder
def truncated(data: whole.Folder) -> None:
  """A JPEG that ends in its middle."""
  content = data.read(0)
  data.write(data.names[0], content[: len(content) // 2])


@_folder
def empty(data: whole.Folder) -> None:
  """A JPEG of no bytes."""
  data.write(data.names[0], b'')


@_folder
def web_page(data: whole.Folder) -> None:
  """A web page that says 404, saved as .jpg."""
  data.write(data.names[0], b'<!DOCTYPE html><html><body>404 Not Found</body></html>')


@_folder
def heic(data: whole.Folder) -> None:
  """A HEIC file of a phone."""
  data.replace(0, '.heic', b'\0\0\0\x18ftypheic\0\0\0\0mif1heic' + bytes(99))


@_folder
def postscript(data: whole.Folder) -> None:
  """A PostScript program named .png."""
  data.replace(
    0, '.png', b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n'
  )


@_folder
def no_suffix(data: whole.Folder) -> None:
  """A photograph whose file has no suffix."""
  data.replace(0, '', data.read(0))


@_losing_folder
def pipe(data: whole.Folder) -> None:
  """A named pipe among the photographs."""
  os.mkfifo(data.path / 'cat' / 'camera.jpg')


# Pictures of unusual kinds.


@_folder
def wrong_suffix(data: whole.Folder) -> None:
  """A PNG that is named .jpg."""
  data.write(data.names[0], whole.encoded(data.picture(0), 'PNG'))


@_folder
def rare_suffix(data: whole.Folder) -> None:
  """Photographs named .JPE and .jfif."""
  data.replace(0, '.JPE', data.read(0))
  data.replace(1, '.jfif', data.read(1))


@_folder
def gif(data: whole.Folder) -> None:
  """A GIF."""
  data.replace(0, '.gif', whole.encoded(data.picture(0), 'GIF'))


@_losing_folder
def animated(data: whole.Folder) -> None:
  """A GIF of several frames."""
  others = [data.picture(2), data.picture(4)]
  options = {'save_all': True, 'append_images': others}
  data.replace(0, '.gif', whole.encoded(data.picture(0), 'GIF', **options))


@_losing_folder
def many_pages(data: whole.Folder) -> None:
  """A TIFF of several pages."""
  options = {'save_all': True, 'append_images': [data.picture(2)]}
  data.replace(0, '.tif', whole.encoded(data.picture(0), 'TIFF', **options))


def _numbers(data: whole.Folder, k: int) -> np.ndarray:
  """The brightness of a photograph, float32 from 0 to 1."""
  return np.asarray(data.picture(k, 'L'), np.float32) / 255


def _of_numbers(data: whole.Folder, scale: float, offset: float, dtype: type) -> None:
  """Stores all photographs with other numbers."""
  for k in range(len(data.names)):
    values = (_numbers(data, k) * scale + offset).astype(dtype)
    data.replace(k, '.tif', whole.encoded(Image.fromarray(values), 'TIFF'))


@_folder
def twelve_in_sixteen_bits(data: whole.Folder) -> None:
  """Pictures of 12 bits in 16, two with a burnt-in marker of 65535."""
  _of_numbers(data, 4095, 0, np.uint16)
  for k in (0, 5):
    values = np.array(Image.open(data.path / data.names[k]))
    values[0, 0] = 65535
    data.write(data.names[k], whole.encoded(Image.fromarray(values), 'TIFF'))


@_folder
def a_little_above_one(data: whole.Folder) -> None:
  """Floating-point numbers from 0 to 1.0003, after a resize."""
  _of_numbers(data, 1.0003, 0, np.float32)


@_folder
def negative(data: whole.Folder) -> None:
  """Computed tomography: numbers from -1000 to 1000."""
  _of_numbers(data, 2000, -1000, np.float32)


@_folder
def cmyk(data: whole.Folder) -> None:
  """A JPEG in the colours of print."""
  data.write(data.names[0], whole.encoded(data.picture(0, 'CMYK'), 'JPEG'))


@_folder
def transparent(data: whole.Folder) -> None:
  """Cut-outs, with other colours where nothing is seen."""
  for k in (0, 1):
    picture = np.array(data.picture(k, 'RGBA'))
    half = picture.shape[0] // 2
    picture[:half] = (7, 99, 0, 0)
    seen = picture[..., :3].copy()
    seen[:half] = 255
    data.changed[f'{k:03d}'] = Image.fromarray(seen)
    data.replace(k, '.png', whole.encoded(Image.fromarray(picture), 'PNG'))


@_folder
def on_its_side(data: whole.Folder) -> None:
  """A photograph stored on its side, which EXIF says."""
  exif = Image.Exif()
  exif[0x0112] = 6
  turned = data.picture(0).transpose(Image.Transpose.ROTATE_90)
  data.write(data.names[0], whole.encoded(turned, 'JPEG', exif=exif))


@_losing_folder
def one_pixel(data: whole.Folder) -> None:
  """A picture of one pixel."""
  data.replace(0, '.png', whole.encoded(Image.new('RGB', (1, 1), 'red'), 'PNG'))


@_folder
def huge(data: whole.Folder) -> None:
  """A slide of 68 million pixels."""
  slide = data.picture(0, 'L').point(lambda value: 255 * (value > 127), '1')
  slide = slide.resize((8_300, 8_200), Image.Resampling.NEAREST)
  data.changed['000'] = slide.resize((64, 64))
  data.replace(0, '.png', whole.encoded(slide, 'PNG', compress_level=1))


@_losing_folder
def panorama(data: whole.Folder) -> None:
  """Photographs ten times as wide as high."""
  for k in range(len(data.names)):
    wide = data.picture(k).resize((240, 24))
    data.changed[f'{k:03d}'] = wide.crop((108, 0, 132, 24))
    data.replace(k, '.png', whole.encoded(wide, 'PNG'))


# What other systems leave.


@_folder
def linked_file(data: whole.Folder) -> None:
  """A photograph that is a link out of the folder."""
  outside = _outside(data)
  (data.path / data.names[0]).rename(outside / 'a.jpg')
  (data.path / data.names[0]).symlink_to(outside / 'a.jpg')


@_folder
def linked_folder(data: whole.Folder) -> None:
  """A class that is a link to a folder elsewhere."""
  (data.path / 'dog').rename(_outside(data) / 'dog')
  (data.path / 'dog').symlink_to(_outside(data) / 'dog')


def _outside(data: whole.Folder) -> pathlib.Path:
  """Returns a folder beside the folder, which is made."""
  outside = data.path.with_name('outside')
  outside.mkdir(exist_ok=True)
  return outside


@_losing_folder
def linked_within(data: whole.Folder) -> None:
  """A link to a photograph of another class."""
  (data.path / 'cat' / 'same.jpg').symlink_to(data.path / data.names[1])


@_folder
def hidden_folder(data: whole.Folder) -> None:
  """A class whose folder is hidden."""
  (data.path / 'dog').rename(data.path / '.dog')
  data.write('fox/900.jpg', data.read(0)[:-2] + b'\0\xff\xd9')
  data.write('fox/901.jpg', data.read(2)[:-2] + b'\0\xff\xd9')


@_folder
def macosx(data: whole.Folder) -> None:
  """__MACOSX of an archive made on a Mac, and ._ files beside the photographs."""
  for folder in ('__MACOSX/cat', 'cat'):
    data.write(f'{folder}/._000.jpg', b'\0\5\x16\7\0\2\0\0Mac OS X' + bytes(50))


@_folder
def file_server(data: whole.Folder) -> None:
  """@eaDir with small copies, made by a file server."""
  data.write('@eaDir/000.jpg/SYNOPHOTO_THUMB_M.jpg', data.read(0))
  data.write('cat/@eaDir/000.jpg/SYNOPHOTO_THUMB_M.jpg', data.read(0))


@_folder
def thumbs(data: whole.Folder) -> None:
  """Thumbs.db, desktop.ini and .DS_Store."""
  for name in ('Thumbs.db', 'desktop.ini', '.DS_Store'):
    data.write(f'cat/{name}', b'\xd0\xcf\x11\xe0')


# Copies, and classes.


@_folder
def in_two_classes(data: whole.Folder) -> None:
  """A photograph in two classes."""
  data.write('dog/copy.jpg', data.read(0))


@_folder
def in_two_splits(data: whole.Folder) -> None:
  """A photograph in train and in test."""
  data.split('train', 'test')
  data.write('test/dog/copy.jpg', data.read(1))


@_folder
def classes_by_case(data: whole.Folder) -> None:
  """Folders cat and Cat."""
  data.move(0, 'Cat/000.jpg')
  data.move(2, 'Cat/002.jpg')


@_folder
def classes_by_form(data: whole.Folder) -> None:
  """A folder with an accent, once as one sign (Linux) and once as two (Mac)."""
  for k, form in ((0, 'NFC'), (2, 'NFC'), (4, 'NFD'), (6, 'NFD')):
    data.move(k, f'{unicodedata.normalize(form, "café")}/{k:03d}.jpg')
    data.meant[f'{k:03d}'] = ('café', '', None)


@_losing_folder
def class_of_one(data: whole.Folder) -> None:
  """A class of a single photograph."""
  data.move(0, 'fox/000.jpg')
  data.meant['000'] = ('fox', '', None)


@_losing_folder
def empty_class(data: whole.Folder) -> None:
  """The folder of a class without photographs."""
  (data.path / 'fox').mkdir()


# Splits by folders.


@_folder
def train_val(data: whole.Folder) -> None:
  """Folders train and val."""
  data.split('train', 'val')


@_folder
def capitals(data: whole.Folder) -> None:
  """Folders Train and Test."""
  data.split('Train', 'Test')


@_folder
def training_testing(data: whole.Folder) -> None:
  """Folders Training and Testing."""
  data.split('Training', 'Testing')


@_folder
def beside_splits(data: whole.Folder) -> None:
  """A folder docs with a picture beside train and test."""
  data.split('train', 'test')
  data.write('docs/figures/scan.jpg', data.read(0)[:-2] + b'\0\xff\xd9')


@_folder
def train_beside_classes(data: whole.Folder) -> None:
  """A folder train with some photographs beside those of the classes."""
  for k in (0, 2, 4, 6):
    data.move(k, f'train/{data.names[k].rpartition("/")[2]}')


@_folder
def val_only(data: whole.Folder) -> None:
  """A single folder val, with the classes in it."""
  for k in range(len(data.names)):
    data.move(k, f'val/{data.names[k]}')
  for name in whole.CLASSES:
    (data.path / name).rmdir()


@_folder
def splits_within(data: whole.Folder) -> None:
  """Folders train and test in that of each class."""
  for k, name in enumerate(tuple(data.names)):
    folder, _, file = name.partition('/')
    trains = k % 4 in (1, 2)
    data.move(k, f'{folder}/{"train" if trains else "test"}/{file}')
    data.meant[f'{k:03d}'] = (folder, '', trains)


@_folder
def outside_of_classes(data: whole.Folder) -> None:
  """A photograph beside the folders of the classes."""
  data.move(0, '000.jpg')
