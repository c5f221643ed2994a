"""The masks of a task's images: which pixels show the object, such as a lesion.

A mask is an image file of its image's size or proportions; `mask_values` says which of
its pixels show the object. Masks are cropped, or otherwise become squares, as their
images do. They are found in one of three ways:

- In a folder of masks, by the image's name with any suffix, with or without
  `_segmentation` after it (HAM10000: ISIC_0024306.jpg and
  ISIC_0024306_segmentation.png): in the same folders as the image, or anywhere if only
  one image has that name.
- By the column `mask` of the manifest.
- Among the images, by their names (see `masks_beside`).
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import concurrent.futures
import dataclasses
import os
import pathlib
import posixpath
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tasks import cache
from tasks import image_opening
from tasks import images
from tasks import intake
from tasks import mask_values
from tasks import masks_beside
from tasks import sources
from tasks import task_types

_MARK = '_segmentation'


@dataclasses.dataclass(frozen=True, eq=False)
class Masks:
  """The masks of some of a task's images.

  Attributes:
    pixels: bool [m, size, size].
    rows: int64 [n], by example_id: the row of each image's mask, -1 if it has none.
    report: Lines that say what was left out.
  """

  pixels: np.ndarray
  rows: np.ndarray
  report: tuple[str, ...] = ()

  def of(self, examples: task_types.Examples) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions of the examples that have a mask, int64 [k], and the masks.

    Args:
      examples: Examples of the task.
    """
    rows = self.rows[examples.example_id]
    positions = np.flatnonzero(rows >= 0)
    return positions, np.asarray(self.pixels[rows[positions]])


def load(
  task: task_types.Task, mask_dir: str | os.PathLike[str] | None = None
) -> Masks:
  """Loads the masks of a task's images, resized to the size of the images.

  Args:
    task: A task whose images are files.
    mask_dir: The folder or .tar of masks; None: the manifest names them, or they are
      among the images.

  Raises:
    ValueError: The task has no files, no image of a split has a mask, or a mask has
      other proportions than its image.
  """
  files = task.files
  if files is None:
    raise ValueError(
      f'The images of the task {task.name!r} are not files, so masks cannot belong to '
      'them; those of ham10000, cases and folder are.'
    )
  images_in = sources.open_source(files.path, files.follow_links)
  if mask_dir is not None:
    source = sources.open_source(pathlib.Path(mask_dir).expanduser())
    # A folder of masks may hold the images too, and none is a mask.
    own = {*_places(images_in, files.images)}
    places = zip(_places(source, source.names), source.names, strict=True)
    names = [name for place, name in places if place not in own]
    mask_names = _matched(files.images, dict.fromkeys(names, ''), str(mask_dir))
  elif files.masks:
    source, mask_names = images_in, dict(enumerate(files.masks))
  else:
    source = images_in
    beside = masks_beside.find(source.names)
    mask_names = _matched(files.images, beside, str(files.path))
  # Images that cannot be read are in no split.
  used = np.zeros([len(files.images)], bool)
  for examples in task.splits().values():
    used[examples.example_id] = True
  mask_names = {k: name for k, name in sorted(mask_names.items()) if name and used[k]}
  where = files.path if mask_dir is None else mask_dir
  if not mask_names:
    raise ValueError(
      f'{where} holds no mask of an image of {task.name!r}; its name must be the '
      "image's, with or without _segmentation, as in ISIC_0024306_segmentation.png."
    )
  pixels, reasons = _decode_all(
    images_in, source, files.images, mask_names, _size(task), files.fit
  )
  readable = [k for k, why in zip(mask_names, reasons, strict=True) if why is None]
  rows = np.full([len(files.images)], -1, np.int64)
  rows[readable] = np.arange(len(readable))
  # Several images may share a mask.
  wrong = {
    mask: why for mask, why in zip(mask_names.values(), reasons, strict=True) if why
  }
  for split, examples in task.splits().items():
    if not np.any(rows[examples.example_id] >= 0):
      raise ValueError(f'{where} has no mask of a {split} image of {task.name!r}.')
  shown = {mask: pixels[rows[k]] for k, mask in mask_names.items() if rows[k] >= 0}
  return Masks(pixels, rows, _report(task, rows, wrong, shown))


def _places(source: sources.Source, names: Iterable[str]) -> list[str]:
  """Returns where files of a source are, without links in the way to it."""
  folder = os.path.realpath(source.path)
  return [f'{folder}/{name}' for name in names]


def _size(task: task_types.Task) -> int:
  height, width, _ = task.image_shape
  assert height == width
  return height


def _matched(
  names: Sequence[str], files: Mapping[str, str], where: str
) -> dict[int, str]:
  """Returns the mask of each image that has one, by the image's number.

  Args:
    names: The images' files.
    files: The image of each mask's file, '' where its name must say it.
    where: What to call their place.

  Raises:
    ValueError: An image has two masks.
  """
  by_place, by_name = collections.defaultdict(list), collections.defaultdict(list)
  for file, image in files.items():
    if image:
      by_place[posixpath.splitext(image)[0]].append(file)
    elif file.lower().endswith(images.SUFFIXES):
      place = posixpath.splitext(file)[0]
      if place.lower().endswith(_MARK):
        place = place[: -len(_MARK)]
      by_place[place].append(file)
      by_name[posixpath.basename(place)].append(file)
  count = collections.Counter(map(_stem, names))
  mask_names = {}
  for number, image in enumerate(names):
    masks = by_place.get(posixpath.splitext(image)[0], [])
    # A name that several images share does not say whose mask it is.
    if not masks and count[_stem(image)] == 1:
      masks = by_name.get(_stem(image), [])
    if len(masks) > 1:
      raise ValueError(
        f'{where} holds {len(masks)} masks of {image}: {intake.some(masks)}; '
        'an image can have only one.'
      )
    if masks:
      mask_names[number] = masks[0]
  return mask_names


def _stem(name: str) -> str:
  return posixpath.splitext(posixpath.basename(name))[0]


class _Failure(NamedTuple):
  """Why a mask cannot be read, and whether it may be readable later."""

  reason: str
  may_pass: bool


def _decode_all(
  images_in: sources.Source,
  source: sources.Source,
  names: Sequence[str],
  mask_names: dict[int, str],
  size: int,
  fit: str,
) -> tuple[np.ndarray, list[str | None]]:
  """Decodes masks, or finds them in the cache.

  Args:
    images_in: Where the images are.
    source: Where the masks are.
    names: The images' files, by number.
    mask_names: The file of each mask, by the number of its image.
    size: Height and width of the result, in pixels.
    fit: How images become squares, one of `images.FITS`.

  Returns:
    The masks that can be read, bool [m, size, size], in the order of `mask_names`; and
    for each of these why it cannot be read, None if it can.

  Raises:
    ValueError: A mask has other proportions than its image.
  """

  def decode_one(pair: tuple[int, str]) -> np.ndarray | _Failure:
    number, mask = pair
    try:
      shape, pixels = decode(source.read(mask), size, fit)
      own = images.size_of(images_in.read(names[number]))
    except MemoryError:
      raise
    # As with images: decoders may raise anything for a damaged file.
    except Exception as error:
      return _Failure(images.why_unreadable(error), image_opening.may_pass(error))
    # A pixel more or less is rounding, if one of the two was resized.
    if abs(shape[0] * own[1] - shape[1] * own[0]) > sum(own):
      raise ValueError(
        f'The mask {mask} is {shape[0]} x {shape[1]} and its image {names[number]} '
        f'{own[0]} x {own[1]}; they must have the same proportions.'
      )
    return pixels

  def build(folder: pathlib.Path) -> dict[str, Any]:
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
      results = list(pool.map(decode_one, mask_names.items()))
    known = [pixels for pixels in results if isinstance(pixels, np.ndarray)]
    np.save(folder / 'mask.npy', np.array(known, bool).reshape([-1, size, size]))
    failed = [None if isinstance(each, np.ndarray) else each for each in results]
    return {
      'reasons': [each and each.reason for each in failed],
      'may_pass': [k for k, each in enumerate(failed) if each and each.may_pass],
    }

  def still_holds(info: dict[str, Any]) -> bool:
    pairs = list(mask_names.items())
    again = {k: decode_one(pairs[k]) for k in info['may_pass']}
    return all(
      isinstance(each, _Failure) and each.reason == info['reasons'][k]
      for k, each in again.items()
    )

  masks = tuple(mask_names.values())
  pairs = tuple(names[number] for number in mask_names)
  stamp = cache.fingerprint(
    'masks',
    'by kind of file, failures tried again',
    masks,
    source.stamp(masks),
    pairs,
    images_in.stamp(pairs),
    size,
    fit,
  )
  entry = cache.fetch(
    cache.root_for(source.path),
    f'{source.path.name}-masks-{size}-{stamp}',
    build,
    still_holds,
  )
  return entry.arrays['mask'], entry.info['reasons']


def decode(
  content: bytes, size: int, fit: str = images.CROP
) -> tuple[tuple[int, int], np.ndarray]:
  """Decodes the file of a mask.

  Args:
    content: The file, of any format that images have, apart from DICOM.
    size: Height and width of the result, in pixels.
    fit: How it becomes a square, one of `images.FITS`.

  Returns:
    Width and height of the file's image, upright; and bool [size, size]: the pixels of
    the square at least half of which shows the object.

  Raises:
    PictureError: There is no memory for it, or its numbers are not finite.
    Exception: Whatever Pillow raises for a file that it cannot read.
  """
  with image_opening.opened(content, copies=mask_values.COPIES) as (image, _):
    shown = mask_values.of_object(content, image)
    # Pillow has turned a TIFF by itself.
    turn = 1 if image.format == 'TIFF' else images.orientation(image)
  upright = images.turned(Image.fromarray(shown.astype(np.uint8) * 255), turn)
  square = images.fitted(upright, size, fit, Image.Resampling.BOX)
  return upright.size, np.asarray(square) >= 128


def _report(
  task: task_types.Task,
  rows: np.ndarray,
  wrong: dict[str, str],
  shown: dict[str, np.ndarray],
) -> tuple[str, ...]:
  """Says how many images have a mask, and which files show nothing or all, or neither.

  Args:
    task: The task.
    rows: The row of each image's mask.
    wrong: Why each file that cannot be read cannot.
    shown: The pixels of each other file.
  """
  parts = []
  for split, examples in task.splits().items():
    known = int(np.sum(rows[examples.example_id] >= 0))
    parts.append(f'{split} {known:,} of {len(examples):,} images')
  lines = [f'masks: {", ".join(parts)}']
  for what, names in (
    ('are empty', [mask for mask, each in shown.items() if not np.any(each)]),
    ('cover all of the image', [mask for mask, each in shown.items() if np.all(each)]),
  ):
    if names:
      lines.append(
        f'warning: {len(names):,} of {len(shown):,} masks {what}: {intake.some(names)}'
      )
  if wrong:
    lines.append(f'left out {len(wrong):,} masks that cannot be read:')
    lines += [f'  {mask} ({reason})' for mask, reason in wrong.items()]
  return tuple(lines)
