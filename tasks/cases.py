"""Any folder or .tar of images with a manifest that says whose the images are.

The columns of the manifest are `image,client_id[,case_id][,label][,split]`. The client
is the holder of an image (a patient, a hospital). Images of one case are classified
together; without that column each image is classified by itself. A manifest may also
have the columns `image,case_id[,label][,split]`: each case is then a client. If
`classify` is 'image', images are classified one by one, whatever their cases.

The manifest is `manifest.csv`, or any CSV file whose path is given. Images are named
relative to it, and so are their masks, in a column `mask` (see `masks`). Without a
column `split`, a fifth of the clients (or cases) of every label is the test split; a
client counts for its most frequent label. Images become squares of one size (see
`images.decode`); unreadable ones are counted, named and left out.
"""

from collections.abc import Sequence
import dataclasses
import os
import pathlib

import numpy as np

from tasks import decoding
from tasks import images
from tasks import manifest as manifest_lib
from tasks import rows as rows_lib
from tasks import sources
from tasks import splits as splits_lib
from tasks import task as task_lib

IMAGE_SIZE = 64
_COLUMNS = 'image,client_id[,case_id][,label][,split][,mask]'
_TEST_FRACTION = 0.2
IMAGE_SUFFIXES = images.SUFFIXES
# Ending of the name of a mask among images; before it comes the image's name.
MASK_SUFFIX = '_segmentation.png'


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
  classify: str | None = None,
  reading: images.Reading = images.AS_USUAL,
) -> task_lib.Task:
  """Loads a folder of images with a manifest.

  Args:
    data_dir: The folder or .tar that holds manifest.csv, or the path of a CSV file
      in the folder of the images.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split, if the manifest gives none.
    classify: 'image' or 'case', what is classified; None: cases if the manifest has
      them.
    reading: How images are read.

  Returns:
    The task.

  Raises:
    ValueError: The manifest or an image it names is missing or wrong.
  """
  source, manifest = _open(data_dir)
  rows = manifest_lib.parse(
    manifest, source.read(manifest), folder=manifest.rpartition('/')[0]
  )
  return build_task(
    'cases',
    source,
    manifest,
    rows,
    image_size=image_size or IMAGE_SIZE,
    seed=seed,
    classify=manifest_lib.what_is_classified(manifest, rows, classify),
    reading=reading,
  )


def columns(data_dir: str | os.PathLike[str] | None) -> list[str]:
  """Returns the columns of the manifest without reading its rows; see `load`."""
  top = pathlib.Path(data_dir or '').expanduser()
  if top.is_dir() and data_dir is not None:
    top /= 'manifest.csv'
  if top.suffix == '.csv' and top.is_file() and not top.is_symlink():
    # No manifest can be nearer, so no files need to be listed.
    return rows_lib.header(top.name, top.read_bytes())
  source, manifest = _open(data_dir)
  return rows_lib.header(manifest, source.read(manifest))


def _open(
  data_dir: str | os.PathLike[str] | None,
) -> tuple[sources.FolderSource | sources.TarSource, str]:
  """Returns the files, and the name of the manifest."""
  if data_dir is None:
    raise ValueError(
      'Task cases needs data_dir: a folder or .tar with images and manifest.csv '
      f'({_COLUMNS}), or the path of such a CSV file.'
    )
  path = pathlib.Path(data_dir).expanduser()
  if path.suffix == '.csv' and path.is_file():
    return sources.open_source(path.parent), path.name
  source = sources.open_source(path)
  manifest = sources.shallowest(source, ('manifest.csv',))
  if manifest is None:
    raise ValueError(
      f'{path} holds no manifest.csv ({_COLUMNS}); without one, use the task folder.'
    )
  return source, manifest


def build_task(
  name: str,
  source: sources.Source,
  manifest: str,
  rows: list[manifest_lib.Row],
  *,
  image_size: int,
  seed: int,
  label_names: tuple[str, ...] | None = None,
  classify: str = manifest_lib.CASE,
  reading: images.Reading = images.AS_USUAL,
) -> task_lib.Task:
  """Makes a task of images whose clients, cases, labels and splits are listed.

  An example_id is the place of an image among all listed images, sorted by name.
  Unreadable images count too, so that repairing one changes no other id.

  Args:
    name: Name of the task.
    source: Where the images are.
    manifest: What to call the list in errors.
    rows: The list.
    image_size: Height and width of the images.
    seed: Seed of the split, if the list gives none.
    label_names: The classes; None for the listed ones, sorted.
    classify: What is classified, one of `manifest.CLASSIFIED`.
    reading: How images are read.

  Returns:
    The task.

  Raises:
    ValueError: The list does not fit the source, or no image can be read.
  """
  manifest_lib.check(manifest, rows, source.names, classify)
  rows = sorted(rows, key=lambda row: row.image)
  names = tuple(row.image for row in rows)
  label_names = label_names or tuple(sorted({r.label for r in rows if r.label}))
  numbers = {label: number for number, label in enumerate(label_names)} | {'': -1}
  label = np.array([numbers[row.label] for row in rows], np.int32)
  belonging = _belonging(rows, classify)
  split = np.array([row.split for row in rows])
  if not rows[0].split:
    try:
      held_out = _hold_out(belonging, label, seed)
    except ValueError as error:
      raise ValueError(f'{manifest}: {error}') from error
    split = np.where(held_out, 'test', 'train')
  # Split by split, so that each split is one piece of the memory-mapped cache.
  order = np.concatenate([np.flatnonzero(split == p) for p in manifest_lib.SPLITS])
  ordered = tuple(names[place] for place in order)
  decoded = decoding.decode_all(source, ordered, image_size, reading)
  kept = order[np.array([image not in decoded.unreadable for image in ordered])]
  examples = _by_split(manifest, decoded.pixels, kept, split, label, belonging)
  return task_lib.Task(
    name=name,
    label_names=label_names,
    train=examples['train'],
    test=examples['test'],
    validation=examples['validation'] if len(examples['validation']) else None,
    case_level=classify == manifest_lib.CASE,
    report=_report(source, rows, decoded),
    case_names=belonging.case_names,
    client_names=belonging.client_names,
    files=task_lib.Files(source.path, names, _masks(rows), reading.fit),
    measured=tuple(map(_measured, decoded.measured)),
  )


def _measured(ends: tuple[float, float]) -> task_lib.Measured:
  low, high = ends
  return task_lib.Measured(
    f'the range of numbers that is black to white, {low:g} to {high:g}',
    '--pixel_range=LOW,HIGH, known without these pictures',
  )


def is_mask(name: str) -> bool:
  """Returns whether a file among images is a mask, by its name."""
  return name.lower().endswith(MASK_SUFFIX)


def _masks(rows: Sequence[manifest_lib.Row]) -> tuple[str, ...]:
  """Returns the mask of each image; nothing if none is listed."""
  listed = tuple(row.mask for row in rows)
  return listed if any(listed) else ()


@dataclasses.dataclass(frozen=True)
class _Belonging:
  """The case of each image, and its client if it has one, by number.

  Attributes:
    case: int64 [n].
    case_names: By number; empty if each image is its own case.
    client: int64 [n], or None.
    client_names: By number.
  """

  case: np.ndarray
  case_names: tuple[str, ...] = ()
  client: np.ndarray | None = None
  client_names: tuple[str, ...] = ()

  def of(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns case and client of some images."""
    return self.case[places], None if self.client is None else self.client[places]


def _by_split(
  manifest: str,
  pixels: np.ndarray,
  kept: np.ndarray,
  split: np.ndarray,
  label: np.ndarray,
  belonging: _Belonging,
) -> dict[str, task_lib.Examples]:
  """Returns the examples of each split, whose pixels follow each other.

  Args:
    manifest: What to call the list in errors.
    pixels: uint8 [n, height, width, channels], in the order of `kept`.
    kept: int [n], the places of the readable images among all.
    split: Name of each image's split, by place, like `label`.
    label: int32, labels of all images.
    belonging: Cases and clients of all images.

  Raises:
    ValueError: No training or no test image can be read.
  """
  examples = {}
  start = 0
  for part in manifest_lib.SPLITS:
    ids = kept[split[kept] == part].astype(np.int64)
    if not len(ids) and part != 'validation':
      raise ValueError(f'{manifest} leaves 0 readable {part} images; it needs some.')
    of_part = pixels[start : start + len(ids)]
    examples[part] = task_lib.Examples(
      {task_lib.IMAGE: of_part}, label[ids], ids, *belonging.of(ids)
    )
    start += len(ids)
  return examples


def _belonging(rows: Sequence[manifest_lib.Row], classify: str) -> _Belonging:
  """Numbers cases and clients in the order of their names."""
  if classify == manifest_lib.IMAGE:
    case = np.arange(len(rows), dtype=np.int64)
    case_names: tuple[str, ...] = ()
    if not rows[0].holder:
      return _Belonging(case)
  else:
    case, case_names = _numbered([row.case_id for row in rows])
    if not rows[0].client_id:
      return _Belonging(case, case_names)
  return _Belonging(case, case_names, *_numbered([row.holder for row in rows]))


def _numbered(names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
  """Returns the number of each name, int64 [n], and the names by number."""
  found, numbers = np.unique(names, return_inverse=True)
  return numbers.astype(np.int64), tuple(found.tolist())


def _hold_out(belonging: _Belonging, label: np.ndarray, seed: int) -> np.ndarray:
  """Returns whether each image is in the test split, as are all of its client's."""
  if belonging.client is None:
    what = 'cases' if belonging.case_names else 'images'
    return splits_lib.hold_out_cases(belonging.case, label, _TEST_FRACTION, seed, what)
  try:
    return splits_lib.hold_out_cases(
      belonging.client, label, _TEST_FRACTION, seed, 'clients'
    )
  except ValueError:
    # No label is the most frequent one of two clients: labels are ignored.
    none = np.full_like(label, -1)
    return splits_lib.hold_out_cases(
      belonging.client, none, _TEST_FRACTION, seed, 'clients'
    )


def _report(
  source: sources.Source,
  rows: Sequence[manifest_lib.Row],
  decoded: decoding.Decoded,
) -> tuple[str, ...]:
  unreadable = decoded.unreadable
  lines = []
  if unreadable:
    lines.append(
      f'left out {len(unreadable):,} of {len(rows):,} images that cannot be read:'
    )
    lines += [f'  {image} ({reason})' for image, reason in unreadable.items()]
  lines += [
    f'warning: {len(names):,} of {len(rows):,} images {what}: '
    f'{manifest_lib.some(names)}'
    for what, names in decoded.notes.items()
  ]
  listed = {name for row in rows for name in (row.image, row.mask)}
  others = [
    image
    for image in source.names
    if image not in listed
    and image.lower().endswith(IMAGE_SUFFIXES)
    and not is_mask(image)
  ]
  if others:
    lines.append(
      f'left out {len(others):,} image files that the manifest does not list: '
      f'{manifest_lib.some(others)}'
    )
  return tuple(lines)
