"""Where the examples of a task come from, and what was measured on them."""

import dataclasses
import pathlib
from typing import NamedTuple


@dataclasses.dataclass(frozen=True)
class Files:
  """The files that the examples of a task were read from.

  Attributes:
    path: The folder or .tar file.
    images: Name of each image in it, by example_id.
    masks: Name of each image's mask, likewise, '' if it has none; empty if none is
      listed.
    fit: How images became squares, one of `images.FITS`; masks do likewise.
    follow_links: Whether links were followed to them.
    ranges: The ranges of brightness that were measured, as `decoding.Decoded.measured`.
  """

  path: pathlib.Path
  images: tuple[str, ...]
  masks: tuple[str, ...] = ()
  fit: str = 'crop'
  follow_links: bool = False
  ranges: tuple[tuple[str, tuple[float, float]], ...] = ()


class Measured(NamedTuple):
  """Something that enters the inputs and was measured on all examples together.

  So each example changes the inputs made of all others, which a private run refuses.

  Attributes:
    what: What was measured, as 'the mean and deviation of each column'.
    instead: The flag that states it in place of the measurement.
  """

  what: str
  instead: str
