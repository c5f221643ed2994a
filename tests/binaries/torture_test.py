"""What `make torture` is made of; that programs hold is its own to say."""

import json
import pathlib
import random

import numpy as np
import pytest

from binaries import torture
from binaries.torturing import campaign
from binaries.torturing import folders
from binaries.torturing import inputs
from binaries.torturing import programs
from tests.binaries import in_process


def _ended(status, stderr):
  return programs.Ended(status, '', stderr, 1.0)


@pytest.mark.parametrize(
  ('status', 'stderr', 'expected'),
  [
    (1, 'Warning: x.\nError: the disk is full.\n', True),
    (1, 'FATAL Flags parsing error:\n  x\nPass --help', True),
    (1, 'Traceback (most recent call last)\nError: x', False),
    (1, 'Error: x\nand more', False),
    (1, '', False),
    (0, 'Error: x', False),
    (-9, 'Error: x', False),
  ],
)
def test_a_sentence_is_all_that_a_failure_says(status, stderr, expected):
  assert _ended(status, stderr).is_sentence == expected


def test_the_table_of_bad_input_is_sound(tmp_path):
  assert len(inputs.CASES) > 120
  assert len(set(inputs.CASES)) == len(inputs.CASES)
  root = pathlib.Path(torture.__file__).parent
  for number, case in enumerate(inputs.CASES):
    assert (root / f'{case.program}.py').is_file()
    assert all(case.words), case
    own = tmp_path / str(number)
    own.mkdir()
    case.make(own)


class _Answer:
  """Ends as a program that refuses everything by one sentence."""

  def __init__(self, program, arguments, temporary):
    del program, temporary
    self._arguments = arguments

  def end(self, seconds):
    del seconds
    return _ended(1, f'Error: not with {" ".join(self._arguments)}.\n')


def test_answers_are_counted_by_their_words(tmp_path, monkeypatch):
  monkeypatch.setattr(programs, 'Process', _Answer)
  said = []
  tried = inputs.Inputs(tmp_path, random.Random(0), said.append)
  assert tried.try_one(inputs.Case('dcco', '--a={d}/b', ('not with', '{d}/b')))
  assert not tried.try_one(inputs.Case('dcco', '--a=b', ('encoder',)))
  assert "lacks ['encoder']" in said[0]
  counted = {'inputs': 2, 'clear answers': 1, 'answers that are not clear': 1}
  assert tried.counts == counted


def test_failures_leave_their_seeds(tmp_path, monkeypatch):
  monkeypatch.setattr(programs, 'Process', _Answer)
  flags = (
    '--groups=inputs',
    '--trials=3',
    '--first_seed=5',
    f'--torture_dir={tmp_path}',
  )
  ended = in_process.run(torture, *flags)
  assert ended.status == 1
  assert 'inputs: inputs' in ended.stdout
  again, seeds = ended.stdout.splitlines()[-2:]
  assert again.startswith('Each again by: --groups=inputs --kinds=worker,')
  failed = seeds.split(', ')
  assert set(failed) <= set(map(str, range(5, 8)))
  # The same seed fails alone.
  alone = in_process.run(torture, *flags, '--trials=1', f'--first_seed={failed[-1]}')
  assert alone.stdout.splitlines()[-1] == failed[-1]
  assert "lacks ['" in (tmp_path / 'failures.txt').read_text()
  with pytest.raises(ValueError, match="groups has 'x'; allowed are kills, inputs"):
    campaign.Campaign(tmp_path, ['x'], [], 0)


@pytest.mark.parametrize('damage', folders._DAMAGES)
def test_damages_are_small_and_seeded(tmp_path, damage):
  content = bytes(range(256))
  (tmp_path / 'other').mkdir()
  (tmp_path / 'other' / 'b.csv').write_bytes(b'other')
  found = []
  for _ in range(2):
    path = tmp_path / 'a.csv'
    path.write_bytes(content)
    folders._DAMAGES[damage](path, random.Random(3), tmp_path / 'other')
    found.append(path.read_bytes() if path.exists() else None)
  assert found[0] == found[1] != content
  if damage == 'flip':
    (place,) = np.flatnonzero(np.frombuffer(found[0], np.uint8) != np.arange(256))
    assert (found[0][place] ^ place).bit_count() == 1
  elif damage == 'cut':
    assert content.startswith(found[0])
  else:
    assert found[0] == {'delete': None, 'swap': b'other'}[damage]


def test_what_must_be_equal_is_compared(tmp_path):
  (tmp_path / 'metrics.csv').write_text('round,loss\n1,0.5\n')
  (tmp_path / 'system.csv').write_text('round,seconds\n1,0.5\n')
  before = programs.numbers(tmp_path)
  (tmp_path / 'system.csv').write_text('round,seconds\n1,0.7\n')
  assert programs.numbers(tmp_path) == before
  (tmp_path / 'evaluation.json').write_text(json.dumps({'round': 1}))
  assert programs.numbers(tmp_path) != before
  assert programs.rows(tmp_path) == 1
