"""What a person is told when a run cannot go on."""

import pytest

from binaries import dcco
from binaries.launching import program
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.runs import checkpoints

_FLAGS = (
  *launch.SMALL,
  '--method=centralized_steps',
  '--objective=cco:projector=8/8',
  '--evaluation=methods=knn',
  '--rounds=1',
)


def test_a_failure_says_what_is_saved(tmp_path, monkeypatch):
  """The memory is full when the checkpoint of round 1 is made."""
  original = checkpoints.Checkpoints.save

  def save(self, round, *arguments):
    if round == 1:
      raise MemoryError
    original(self, round, *arguments)

  monkeypatch.setattr(checkpoints.Checkpoints, 'save', save)
  failed = in_process.run(dcco, *_FLAGS, f'--run_dir={tmp_path}')
  assert failed.status == 1
  assert 'Traceback' not in failed.stderr
  assert failed.stderr.splitlines()[-1] == (
    'Error: There is not enough memory: fewer clients or examples at a time, or '
    f'smaller networks, need less. Round 0 of 1 is saved in {tmp_path}: the same '
    'command resumes from there.'
  )


def test_a_mistake_has_its_traceback():
  def fail():
    raise TypeError('a mistake')

  with pytest.raises(TypeError, match='a mistake'):
    program.run_checked(fail)
