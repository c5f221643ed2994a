"""Damaged run folders: refused in a sentence, or resumed to the same bytes."""

import collections
import pathlib
import random
import shutil
import signal
import time

from binaries.torturing import programs
from binaries.torturing import trials

# Files that belong to the folder itself, and are not damaged.
_LEFT_ALONE = ('lock',)


def _cut(path: pathlib.Path, rng: random.Random, _: pathlib.Path) -> None:
  """Keeps only the first part of a file."""
  content = path.read_bytes()
  path.write_bytes(content[: rng.randrange(len(content) or 1)])


def _flip(path: pathlib.Path, rng: random.Random, _: pathlib.Path) -> None:
  """Changes one bit of a file."""
  content = bytearray(path.read_bytes())
  if content:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
  path.write_bytes(content)


def _delete(path: pathlib.Path, rng: random.Random, other: pathlib.Path) -> None:
  """Removes a file."""
  del rng, other
  path.unlink()


def _swap(path: pathlib.Path, rng: random.Random, other: pathlib.Path) -> None:
  """Replaces a file with another file of the folder, or of another run."""
  candidates = [
    found for found in sorted(other.rglob('*')) if found.is_file() and found != path
  ]
  same = [found for found in candidates if found.suffix == path.suffix]
  shutil.copyfile(rng.choice(same or candidates), path)


_DAMAGES = collections.OrderedDict(cut=_cut, flip=_flip, delete=_delete, swap=_swap)


class Folders(trials.OfRuns):
  """Damages of run folders."""

  kinds = ('stateful', 'centralized')
  counted = 'folders'

  def __init__(self, setting: trials.Setting):
    """Runs nothing yet."""
    super().__init__(setting)
    self._prepared: set[str] = set()

  def trial(self, kind: str, turn: int) -> bool:
    """Damages one file of a killed run and resumes it; returns whether that held.

    Args:
      kind: One of `kinds`.
      turn: Number of the trial, which also chooses the damage.
    """
    name = kind
    expected = self._reference(name).numbers
    self._prepare(name)
    folder = self._folder / f'{name}_damaged'
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(self._folder / f'{name}_killed', folder)
    files = [
      path
      for path in sorted(folder.rglob('*'))
      if path.is_file() and path.name not in _LEFT_ALONE
    ]
    path = self._random.choice(files)
    damage = list(_DAMAGES)[turn % len(_DAMAGES)]
    other = self._random.choice((folder, self._folder / f'{name}_other'))
    _DAMAGES[damage](path, self._random, other)
    ended = self._start(name, folder).end()
    self.counts['folders'] += 1
    if ended.is_sentence:
      self.counts[f'{damage}: refused'] += 1
      return True
    if ended.status == 0 and programs.numbers(folder) == expected:
      self.counts[f'{damage}: resumed to the same bytes'] += 1
      return True
    self.counts['damages that went unnoticed, or without a sentence'] += 1
    found = programs.numbers(folder) if ended.status == 0 else {}
    self._say(
      f'{name}: {damage} of {path.relative_to(folder)} ({other.name}): status '
      f'{ended.status}, other {[k for k in expected if found.get(k) != expected[k]]}; '
      f'{ended.stderr[-2000:]}'
    )
    return False

  def _prepare(self, name: str) -> None:
    """Makes another run with another seed, and a run that is killed."""
    if name in self._prepared:
      return
    other = self._folder / f'{name}_other'
    self._in_peace(name, other, ('--seed=1',))
    killed = self._folder / f'{name}_killed'
    shutil.rmtree(killed, ignore_errors=True)
    process = self._start(name, killed)
    # Killed after the checkpoints of rounds 2 and 4.
    while process.is_alive and programs.rows(killed) < 5:
      time.sleep(0.005)
    process.kill(signal.SIGKILL)
    process.end()
    self._prepared.add(name)
