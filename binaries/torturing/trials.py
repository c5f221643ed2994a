"""What all parts of the campaign are: trials that count what was done and found."""

import collections
from collections.abc import Callable, Sequence
import pathlib
import random
import shutil

from binaries.torturing import programs


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


class OfRuns(Trials):
  """Trials that compare what is left of a run with the same run left in peace."""

  def _start(
    self, name: str, folder: pathlib.Path, flags: Sequence[str] = ()
  ) -> programs.Process:
    """Starts a run of a kind in a folder."""
    kind = programs.KINDS[name]
    arguments = [*kind.flags, *flags, f'--run_dir={folder}']
    return programs.Process(kind.program, arguments, self._folder / 'tmp')

  def _in_peace(
    self, name: str, folder: pathlib.Path, flags: Sequence[str] = ()
  ) -> programs.Ended:
    """Runs a kind in a new folder to its end.

    Raises:
      RuntimeError: If it fails: there is nothing to compare with.
    """
    shutil.rmtree(folder, ignore_errors=True)
    ended = self._start(name, folder, flags).end()
    if ended.status:
      raise RuntimeError(f'{name} left in peace: {ended.stderr[-2000:]}')
    return ended
