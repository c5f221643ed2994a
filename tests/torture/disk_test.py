"""Runs on a full disk end in a sentence, and resume when there is room.

The disk is a small file system in memory, where mounting one is allowed.
"""

from collections.abc import Iterator
import contextlib
import pathlib
import subprocess

import pytest

from tests.binaries import launch
from tests.torture import runs

pytestmark = pytest.mark.torture
KINDS = ('centralized', 'stateful')
_MEBIBYTES = 4


def test_a_full_disk_is_said_and_survived(trial, runner, tmp_path, tally):
  expected = runner.reference(trial.kind)
  free = trial.rng().randrange(2**12, expected.bytes * 3 // 2)
  print(f'{free} bytes are free')
  with _mounted(tmp_path / 'disk') as mount:
    ballast, folder = mount / 'ballast', mount / 'run'
    ballast.write_bytes(bytes(_MEBIBYTES * 2**20 - free))
    full = launch.end(runner.start(trial.kind, folder), folder)
    ballast.unlink()
    ended = launch.end(runner.start(trial.kind, folder), folder)

    assert full.status == 0 or runs.is_sentence(full), full
    assert ended.status == 0, ended
    assert runs.numbers(folder) == expected.numbers
  tally[f'disk: {"ended in a sentence" if full.status else "had room enough"}'] += 1


@contextlib.contextmanager
def _mounted(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Mounts a small file system; skips the test if that is not allowed."""
  path.mkdir()
  command = ['mount', '-t', 'tmpfs', '-o', f'size={_MEBIBYTES}m', 'tmpfs', str(path)]
  try:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
  except OSError as error:
    pytest.skip(str(error))
  if ended.returncode:
    pytest.skip(ended.stderr.strip())
  try:
    yield path
  finally:
    subprocess.run(['umount', '-l', str(path)], capture_output=True, check=False)
