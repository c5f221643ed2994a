"""Loads pictures without a manifest, in the form that an encoder takes."""

import os
import pathlib
from typing import NamedTuple

import numpy as np

from tasks import cache
from tasks import decoding
from tasks import images as images_lib
from tasks import intake as intake_lib
from tasks import intake_findings
from tasks import manifest
from tasks import sources
from tff_ssl.computing import inert

# Weights of red, green and blue in the brightness (ITU-R BT.601, as in Pillow).
_LUMINANCE = (0.299, 0.587, 0.114)


class Pictures(NamedTuple):
  """Images with the names of their files.

  Attributes:
    names: Names of the files, relative to the folder, as of `inert.line`.
    images: uint8 [n, height, width, channels].
    intake: What became of all files.
    digests: Digests of the contents of the files, as those of a task.
  """

  names: tuple[str, ...]
  images: np.ndarray
  intake: intake_lib.Intake
  digests: tuple[str, ...]


def load(
  path: str | os.PathLike[str],
  image_shape: tuple[int, int, int],
  reading: images_lib.Reading = images_lib.AS_USUAL,
) -> Pictures:
  """Loads all images of a folder or .tar, and of the folders within it, or one image.

  Nothing is written there: decoded images go to the user's cache folder.

  Args:
    path: The folder, the .tar file or the image. Files of a folder without the suffix
      of an image are counted, and so are masks (see `masks_beside`).
    image_shape: Height, width and channels that an encoder takes: pictures become
      squares, and a single channel holds their brightness.
    reading: How they are read.

  Raises:
    ValueError: There are no images, none can be read, or the shape is not that of
      squares with 1 or 3 channels.
  """
  height, width, channels = image_shape
  if height != width or channels not in (1, 3):
    raise ValueError(
      f'The encoder takes images of {image_shape}; a folder of images needs an '
      'encoder of square images with 1 or 3 channels.'
    )
  source = _open(pathlib.Path(path).expanduser())
  # A single file is what it is said to be.
  is_file = isinstance(source, sources.FileSource)
  names = source.names if is_file else (*intake_findings.image_names(source),)
  if not names:
    raise ValueError(
      f'{path} holds no images that are not masks; their names must end in '
      f'{", ".join(images_lib.SUFFIXES)}.'
    )
  root = cache.home_for(source.path)
  decoded = decoding.decode_all(source, names, height, reading, root)
  readable = [name for name in names if name not in decoded.unreadable]
  if not readable:
    name, why = next(iter(decoded.unreadable.items()))
    raise ValueError(f'No image of {path} can be read; {inert.line(name)}: {why}.')
  rows = [manifest.Row(name) for name in names]
  # In no split, so that copies are in one.
  intake = intake_findings.take_in(source, '', rows, np.full(len(rows), ''), decoded)
  return Pictures(
    tuple(map(inert.line, readable)),
    to_channels(decoded.pixels, channels),
    intake,
    tuple(decoded.digests[name] for name in readable),
  )


def _open(path: pathlib.Path) -> sources.Source:
  alone = sources.FileSource(path)
  if path.is_file() and intake_findings.is_image(alone, path.name):
    return alone
  return sources.open_source(path)


def to_channels(images: np.ndarray, channels: int) -> np.ndarray:
  """Returns pictures with as many channels as an encoder takes.

  Args:
    images: uint8 [n, height, width, 3].
    channels: 3, or 1: the brightness.
  """
  if channels == 3:
    return images
  grey = np.empty((*images.shape[:3], 1), np.uint8)
  # One by one: in floating point all of them would take 24 times their memory.
  for source, target in zip(images, grey, strict=True):
    target[..., 0] = np.rint(source @ np.array(_LUMINANCE))
  return grey
