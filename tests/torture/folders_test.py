"""Damaged run folders are refused in a sentence, or resumed to the same bytes."""

import pathlib
import random
import shutil

import pytest

from tests.binaries import launch
from tests.torture import runs

pytestmark = pytest.mark.torture
KINDS = ('stateful', 'centralized')
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
    each for each in sorted(other.rglob('*')) if each.is_file() and each != path
  ]
  same = [each for each in candidates if each.suffix == path.suffix]
  shutil.copyfile(rng.choice(same or candidates), path)


_DAMAGES = (_cut, _flip, _delete, _swap)


@pytest.fixture(scope='session')
def killed(tmp_path_factory, runner):
  """Returns a killed run of a kind and one with another seed, which are made once."""
  base = tmp_path_factory.mktemp('killed')

  def of_kind(kind: str) -> tuple[pathlib.Path, pathlib.Path]:
    folder, other = base / kind, base / f'{kind}_other'
    if not folder.exists():
      runner.in_peace(kind, other, '--seed=1')
      process = runner.start(kind, folder)
      # Killed after the checkpoints of rounds 2 and 4.
      launch.wait_for_rows(process, folder, 5)
      process.kill()
      launch.end(process, folder)
    return folder, other

  return of_kind


def test_damage_is_refused_or_repaired(trial, runner, killed, tmp_path, tally):
  expected = runner.reference(trial.kind).numbers
  run, other = killed(trial.kind)
  rng, folder = trial.rng(), tmp_path / 'run'
  shutil.copytree(run, folder)
  paths = [
    path
    for path in sorted(folder.rglob('*'))
    if path.is_file() and path.name not in _LEFT_ALONE
  ]
  path = rng.choice(paths)
  # Even the first trials of all kinds have all damages.
  turn = trial.number + 2 * KINDS.index(trial.kind)
  damage = _DAMAGES[turn % len(_DAMAGES)]
  donor = rng.choice((folder, other))
  print(f'{damage.__name__} {path.relative_to(folder)} ({donor.name})')
  damage(path, rng, donor)

  ended = launch.end(runner.start(trial.kind, folder), folder)

  if runs.is_sentence(ended):
    tally['folders: refused'] += 1
    return
  assert ended.status == 0, ended
  assert runs.numbers(folder) == expected
  tally['folders: resumed to the same bytes'] += 1
