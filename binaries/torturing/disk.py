"""A full disk: a small file system in memory, where mounting one is allowed."""

from collections.abc import Iterator
import contextlib
import pathlib
import subprocess

from binaries.torturing import programs
from binaries.torturing import trials

_MEBIBYTES = 4


class Disk(trials.OfRuns):
  """Runs on a disk with little free space, and then with all of it."""

  kinds = ('centralized', 'stateful')
  counted = 'runs'

  def trial(self, kind: str, turn: int) -> bool:
    """Runs with little room, then with more; returns whether both went well.

    Args:
      kind: One of `kinds`.
      turn: Number of the trial.
    """
    del turn
    name, reference = kind, self._reference(kind)
    expected, size = reference.numbers, reference.bytes
    free = self._random.randrange(2**12, size * 3 // 2)
    with _mounted(self._folder / 'full') as mount:
      if mount is None:
        self.counts['no file system could be mounted'] += 1
        return True
      ballast = mount / 'ballast'
      ballast.write_bytes(bytes(_MEBIBYTES * 2**20 - free))
      full = self._start(name, mount / 'run').end()
      self.counts['runs'] += 1
      ballast.unlink()
      ended = self._start(name, mount / 'run').end()
      found = programs.numbers(mount / 'run') if ended.status == 0 else {}
    held = found == expected
    if full.status == 0:
      self.counts['had room enough'] += 1
    elif full.is_sentence:
      self.counts['ended in a sentence'] += 1
    else:
      held = False
    if not held:
      self.counts['not as they must be'] += 1
      self._say(
        f'{name} with {free} bytes: {full}; then {ended}, '
        f'other {[k for k in expected if found.get(k) != expected[k]]}'
      )
    return held


@contextlib.contextmanager
def _mounted(path: pathlib.Path) -> Iterator[pathlib.Path | None]:
  """Mounts a small file system; None if that is not allowed."""
  path.mkdir(parents=True, exist_ok=True)
  if path.is_mount():
    # Left by a campaign that was killed.
    _unmount(path)
  command = ['mount', '-t', 'tmpfs', '-o', f'size={_MEBIBYTES}m', 'tmpfs', str(path)]
  try:
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
  except OSError:
    mounted = False
  if not mounted:
    yield None
    return
  try:
    yield path
  finally:
    _unmount(path)


def _unmount(path: pathlib.Path) -> None:
  subprocess.run(['umount', '-l', str(path)], capture_output=True, check=False)
