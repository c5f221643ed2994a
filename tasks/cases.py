"""Any folder or .tar of images with a manifest `image,case_id[,label][,split]`.

The manifest is `manifest.csv`, or any CSV file that is named itself; images are named
relative to it. Without a column `split`, a fifth of the cases of every label is the
test split. Images become squares of one size (see `images.decode`); unreadable ones
are counted, named and left out.
"""

import os
import pathlib

import numpy as np

from tasks import decoding
from tasks import manifest as manifest_lib
from tasks import sources
from tasks import splits as splits_lib
from tasks import task as task_lib

IMAGE_SIZE = 64
_TEST_FRACTION = 0.2
IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.tif', '.tiff', '.bmp', '.webp')


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
) -> task_lib.Task:
  """Loads a folder of images with a manifest.

  Args:
    data_dir: The folder or .tar that holds manifest.csv, or the path of a CSV file
      in the folder of the images.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split, where the manifest gives none.

  Returns:
    The task; a case is what is classified.

  Raises:
    ValueError: The manifest or an image it names is missing or wrong.
  """
  if data_dir is None:
    raise ValueError(
      'Task cases needs data_dir: a folder or .tar with images and manifest.csv '
      '(image,case_id[,label][,split]), or the path of such a CSV file.'
    )
  path = pathlib.Path(data_dir).expanduser()
  if path.suffix == '.csv' and path.is_file():
    source, manifest = sources.open_source(path.parent), path.name
  else:
    source = sources.open_source(path)
    found = sources.shallowest(source, ('manifest.csv',))
    if found is None:
      raise ValueError(f'{path} holds no manifest.csv (image,case_id[,label][,split]).')
    manifest = found
  rows = manifest_lib.parse(
    manifest, source.read(manifest), folder=manifest.rpartition('/')[0]
  )
  return build_task(
    'cases', source, manifest, rows, image_size=image_size or IMAGE_SIZE, seed=seed
  )


def build_task(
  name: str,
  source: sources.Source,
  manifest: str,
  rows: list[manifest_lib.Row],
  *,
  image_size: int,
  seed: int,
  label_names: tuple[str, ...] | None = None,
) -> task_lib.Task:
  """Makes a task of images whose cases, labels and splits are listed.

  An example_id is the place of an image among all listed ones, sorted by name; the
  unreadable ones are counted in, so that repairing one changes no other's id.

  Args:
    name: Name of the task.
    source: Where the images are.
    manifest: What to call the list in errors.
    rows: The list.
    image_size: Height and width of the images.
    seed: Seed of the split, where the list gives none.
    label_names: The classes; None for those that are listed, sorted.

  Returns:
    The task.

  Raises:
    ValueError: The list does not fit the source, or no image can be read.
  """
  manifest_lib.check(manifest, rows, source.names)
  rows = sorted(rows, key=lambda row: row.image)
  names = tuple(row.image for row in rows)
  label_names = label_names or tuple(sorted({r.label for r in rows if r.label}))
  numbers = {label: number for number, label in enumerate(label_names)} | {'': -1}
  label = np.array([numbers[row.label] for row in rows], np.int32)
  case_ids = [row.case_id for row in rows]
  case = np.unique(case_ids, return_inverse=True)[1].astype(np.int64)
  split = np.array([row.split for row in rows])
  if not rows[0].split:
    try:
      held_out = splits_lib.hold_out_cases(case, label, _TEST_FRACTION, seed)
    except ValueError as error:
      raise ValueError(f'{manifest}: {error}') from error
    split = np.where(held_out, 'test', 'train')
  # Decoded split by split, each is one piece of the memory-mapped cache.
  order = np.concatenate([np.flatnonzero(split == p) for p in manifest_lib.SPLITS])
  ordered = tuple(names[place] for place in order)
  pixels, unreadable, plain = decoding.decode_all(source, ordered, image_size)
  kept = order[np.array([image not in unreadable for image in ordered])]
  examples = {}
  start = 0
  for part in manifest_lib.SPLITS:
    ids = kept[split[kept] == part].astype(np.int64)
    if not len(ids) and part != 'validation':
      raise ValueError(f'{manifest} leaves 0 readable {part} images; it needs some.')
    images = pixels[start : start + len(ids)]
    examples[part] = task_lib.Examples(
      {task_lib.IMAGE: images}, label[ids], ids, case[ids]
    )
    start += len(ids)
  return task_lib.Task(
    name=name,
    label_names=label_names,
    train=examples['train'],
    test=examples['test'],
    validation=examples['validation'] if len(examples['validation']) else None,
    case_level=True,
    report=_report(source, names, unreadable, plain),
  )


def _report(
  source: sources.Source,
  names: tuple[str, ...],
  unreadable: dict[str, str],
  plain: list[str],
) -> tuple[str, ...]:
  lines = []
  if unreadable:
    lines.append(
      f'left out {len(unreadable):,} of {len(names):,} images that cannot be read:'
    )
    lines += [f'  {image} ({reason})' for image, reason in unreadable.items()]
  if plain:
    lines.append(
      f'warning: {len(plain):,} of {len(names):,} images are of one colour: '
      f'{manifest_lib.some(plain)}'
    )
  listed = set(names)
  others = [
    image
    for image in source.names
    if image not in listed and image.lower().endswith(IMAGE_SUFFIXES)
  ]
  if others:
    lines.append(
      f'left out {len(others):,} image files that the manifest does not list: '
      f'{manifest_lib.some(others)}'
    )
  return tuple(lines)
