"""Tiny-ImageNet: 200 classes of 500 training images of 64 x 64, and 50 to test on.

The class project of Stanford's CS231N, 2015, of images of ImageNet. It is read as
published (tiny-imagenet-200.zip, unpacked, or a .tar of it):
`train/nXXXXXXXX/images/*.JPEG`, one folder per class, and `val/images/*.JPEG` with
their classes in `val/val_annotations.txt`. Its validation images are the test split, as
in papers, because the labels of its test images are not published; the test images are
left out.
"""

import os
import pathlib

from tasks import cases
from tasks import images
from tasks import manifest
from tasks import sources
from tasks import subset
from tasks import task_types
from tff_ssl.storage import memory

NAME = 'tiny_imagenet'
_ANNOTATIONS = 'val_annotations.txt'


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  reading: images.Reading = images.AS_USUAL,
  limits: subset.Limits = subset.ALL,
) -> task_types.Task:
  """Loads Tiny-ImageNet.

  Args:
    data_dir: The folder tiny-imagenet-200, one around it, or a .tar of it.
    image_size: Height and width, in pixels; None for 64.
    reading: How images are read.
    limits: How many images are taken; others are not read.

  Returns:
    The task; each image is classified by itself, and classes have WordNet's ids.

  Raises:
    ValueError: The data are missing, or not Tiny-ImageNet's.
  """
  path = sources.data_path(
    'tiny_imagenet',
    data_dir,
    'the folder tiny-imagenet-200 of '
    'http://cs231n.stanford.edu/tiny-imagenet-200.zip, unpacked',
  )
  source = sources.open_source(path)
  annotations = sources.shallowest(source, (_ANNOTATIONS,))
  if annotations is None:
    raise ValueError(f'{path} holds no val/{_ANNOTATIONS}.')
  val = annotations.rpartition('/')[0]
  rows = [
    *_train(path, source, val.rpartition('/')[0]),
    *_test(source, annotations, val),
  ]
  return cases.build_task(
    NAME,
    source,
    str(path),
    rows,
    image_size=image_size,
    classify=manifest.IMAGE,
    reading=reading,
    limits=limits,
  )


def _train(
  path: pathlib.Path, source: sources.Source, around: str
) -> list[manifest.Row]:
  """Lists the training images, each in a folder of its class."""
  start = f'{around}/train/' if around else 'train/'
  rows = []
  for name in source.names:
    parts = name.removeprefix(start).split('/')
    is_image = name.lower().endswith(images.SUFFIXES)
    if name.startswith(start) and len(parts) == 3 and is_image:
      rows.append(manifest.Row(name, label=parts[0], split='train'))
  if not rows:
    raise ValueError(f'{path} holds no images {start}CLASS/images/*.JPEG.')
  return rows


def _test(source: sources.Source, annotations: str, val: str) -> list[manifest.Row]:
  """Lists the images that the annotations name: file, class, and a box."""
  rows = []
  content = source.read(annotations)
  memory.check_csv(annotations, content)
  text = content.decode('utf-8', errors='replace')
  for number, line in enumerate(text.splitlines(), start=1):
    cells = line.split('\t')
    if len(cells) < 2 or not cells[1]:
      raise ValueError(
        f'{annotations}, line {number}, is {line[:60]!r}; it must be the name of a '
        'file and a class, with tabs between.'
      )
    name = f'{val}/images/{cells[0]}' if val else f'images/{cells[0]}'
    rows.append(manifest.Row(name, label=cells[1], split='test'))
  return rows
