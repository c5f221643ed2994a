"""All of it, in turns, until the time is up; each trial has a seed of its own."""

import collections
from collections.abc import Collection
import itertools
import pathlib
import random
import time
import traceback
from typing import Any

from binaries.torturing import disk
from binaries.torturing import folders
from binaries.torturing import inputs
from binaries.torturing import kills
from binaries.torturing import programs

GROUPS = ('kills', 'inputs', 'folders', 'disk')
_FAILURES = 'failures.txt'
# Cases of a turn.
_INPUTS = 4


class Campaign:
  """Trials of some groups.

  Attributes:
    failed: Seeds of the trials that did not hold.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    groups: Collection[str],
    kinds: Collection[str],
    seed: int,
  ):
    """Runs nothing yet.

    Args:
      folder: Replaced, piece by piece; failures are told in its failures.txt.
      groups: Some of `GROUPS`.
      kinds: Of process, of `programs.KINDS`; the other groups have those of their own.
      seed: Of the first trial; the others have those that follow.

    Raises:
      ValueError: If there is no such group or kind.
    """
    for name, given, allowed in (
      ('groups', groups, GROUPS),
      ('kinds', kinds, programs.KINDS),
    ):
      for one in given:
        if one not in allowed:
          raise ValueError(f'{name} has {one!r}; allowed are {", ".join(allowed)}.')
    folder.mkdir(parents=True, exist_ok=True)
    self.failed: list[int] = []
    self._seed = seed
    self._path = folder / _FAILURES
    self._path.unlink(missing_ok=True)
    self._random = random.Random(seed)
    made: dict[str, Any] = {
      'kills': kills.Kills,
      'inputs': inputs.Inputs,
      'folders': folders.Folders,
      'disk': disk.Disk,
    }
    self._of: dict[str, Any] = {
      group: made[group](folder / group, self._random, self._say) for group in groups
    }
    self._groups, self._kinds = list(groups), list(kinds)

  def run(self, minutes: float, trials: int | None = None) -> None:
    """Runs trials, of each group in turn.

    Args:
      minutes: After which none is begun.
      trials: How many there are at most; None: as many as there is time for.
    """
    deadline = time.monotonic() + 60 * minutes
    seeds = itertools.count(self._seed)
    try:
      for seed in itertools.islice(seeds, trials):
        if time.monotonic() > deadline:
          return
        group = self._groups[seed % len(self._groups)]
        self._random.seed(seed)
        try:
          held = self._try(group, seed // len(self._groups))
        except Exception:
          self._say(traceback.format_exc())
          held = False
        if not held:
          self.failed.append(seed)
    finally:
      if 'kills' in self._of:
        self._of['kills'].close()

  def counts(self) -> 'collections.OrderedDict[str, object]':
    """Returns what was done and found, by name."""
    found: collections.OrderedDict[str, object] = collections.OrderedDict()
    for group, own in self._of.items():
      for name, count in sorted(own.counts.items()):
        found[f'{group}: {name}'] = count
      if group == 'kills':
        found['kills: slowest end after a signal, seconds'] = round(own.slowest, 2)
    found['failures'] = len(self.failed)
    return found

  def _try(self, group: str, turn: int) -> bool:
    """Does what a group has in a turn, as all with the same seed do again."""
    own = self._of[group]
    if group == 'inputs':
      # These are quick.
      held = [own.trial(_INPUTS * turn + k) for k in range(_INPUTS)]
      return all(held)
    kinds = {'kills': self._kinds, 'folders': folders.KINDS, 'disk': disk.KINDS}[group]
    return bool(own.trial(kinds[turn % len(kinds)]))

  def _say(self, text: str) -> None:
    """Tells of a failure."""
    with self._path.open('a') as file:
      file.write(f'{text}\n\n')
    print(f'FAILED: {text}', flush=True)
