"""What all parts of the campaign are: trials that count what was done and found."""

import collections
from collections.abc import Callable
import pathlib
import random


class Trials:
  """Trials of one kind, to be told which by `trial`.

  Attributes:
    counts: What was done and found, by name.
  """

  def __init__(
    self, folder: pathlib.Path, rng: random.Random, say: Callable[[str], None]
  ):
    """Runs nothing yet.

    Args:
      folder: For run folders and inputs, which are replaced.
      rng: Of all that a trial chooses.
      say: Is told of each failure.
    """
    self.counts: collections.Counter[str] = collections.Counter()
    self._folder = folder
    self._random = rng
    self._say = say
