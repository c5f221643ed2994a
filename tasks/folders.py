"""A folder or .tar of images without a manifest.

Folders in it mean nothing (`none`: each image is an example), or each is a class
(`class`), or a client (`client`: a patient, a hospital). If its outermost folders are
`train` and `test`, and perhaps `validation`, these are the splits. Otherwise a fifth of
the images, of every class, or of the clients is the test split. Without classes nothing
is labelled. Files that end with `_segmentation.png` are masks (see `masks`).
"""

import os
import pathlib
import posixpath

from tasks import cases
from tasks import images
from tasks import manifest as manifest_lib
from tasks import sources
from tasks import task as task_lib

NONE, CLASS, CLIENT = 'none', 'class', 'client'
MEANINGS = (NONE, CLASS, CLIENT)


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
  folders: str = NONE,
  reading: images.Reading = images.AS_USUAL,
) -> task_lib.Task:
  """Loads a folder of images.

  Args:
    data_dir: The folder or .tar.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split, if folders give none.
    folders: What a folder means, one of `MEANINGS`; the outermost folders count, or the
      outermost in the splits.
    reading: How images are read.

  Returns:
    The task; images are classified, each by itself.

  Raises:
    ValueError: There is no such folder, it has no images, or its folders mean something
      and it has images outside of them.
  """
  if data_dir is None:
    raise ValueError('Task folder needs data_dir: a folder or .tar of images.')
  if folders not in MEANINGS:
    raise ValueError(f'folders is {folders!r}; allowed are {", ".join(MEANINGS)}.')
  path = pathlib.Path(data_dir).expanduser()
  source = sources.open_source(path)
  rows = _rows(path, source, folders)
  return cases.build_task(
    'folder',
    source,
    str(path),
    rows,
    image_size=image_size or cases.IMAGE_SIZE,
    seed=seed,
    classify=manifest_lib.IMAGE,
    reading=reading,
  )


def _rows(
  path: pathlib.Path, source: sources.Source, folders: str
) -> list[manifest_lib.Row]:
  """Lists the images."""
  names = [
    name
    for name in source.names
    if name.lower().endswith(cases.IMAGE_SUFFIXES) and not cases.is_mask(name)
  ]
  if not names:
    raise ValueError(
      f'{path} holds no images; their names must end in '
      f'{", ".join(cases.IMAGE_SUFFIXES)}.'
    )
  # Archives often have one folder around all files.
  around = posixpath.commonpath([posixpath.dirname(name) for name in names])
  inside = [posixpath.relpath(name, around or '.') for name in names]
  splits = [''] * len(names)
  outermost = {name.partition('/')[0] for name in inside}
  if {'train', 'test'} <= outermost <= {*manifest_lib.SPLITS}:
    splits = [name.partition('/')[0] for name in inside]
    inside = [name.partition('/')[2] for name in inside]
  if folders == NONE:
    return [
      manifest_lib.Row(name, split=split)
      for name, split in zip(names, splits, strict=True)
    ]
  loose = [name for name, own in zip(names, inside, strict=True) if '/' not in own]
  if loose:
    raise ValueError(
      f'{path} holds {len(loose):,} images outside folders: '
      f'{manifest_lib.some(loose)}; if each folder is a {folders}, every image must '
      'be in a folder, and there must be at least two folders.'
    )
  field = {CLASS: 'label', CLIENT: 'client_id'}[folders]
  within = [own.partition('/')[0] for own in inside]
  return [
    manifest_lib.Row(name, split=split, **{field: sources.printable(folder)})
    for name, folder, split in zip(names, within, splits, strict=True)
  ]
