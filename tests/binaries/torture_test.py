"""What `make torture` is made of; that programs hold is its own to say."""

import json
import pathlib
import random

import numpy as np
import pytest
import tensorflow_federated as tff
import tensorflow_privacy

from binaries import torture
from binaries.launching import forks
from binaries.torturing import campaign
from binaries.torturing import folders
from binaries.torturing import hooks
from binaries.torturing import inputs
from binaries.torturing import programs
from binaries.torturing import trials
from binaries.torturing.cases import making
from tests.binaries import in_process
from tff_ssl.aggregators import aggregations
from tff_ssl.execution import contexts


def _ended(status, stderr):
  return programs.Ended(status, '', stderr, 1.0)


@pytest.mark.parametrize(
  ('status', 'stderr', 'expected'),
  [
    (1, 'Warning: x.\nError: the disk is full.\n', True),
    (1, 'FATAL Flags parsing error:\n  x\nPass --help', False),
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
  assert len(inputs.CASES) > 500
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

  def __init__(self, program, arguments, temporary, forked_by):
    del program, temporary, forked_by
    self._arguments = arguments

  def end(self, seconds):
    del seconds
    return _ended(1, f'Error: not with {" ".join(self._arguments)}.\n')


def _setting(folder, said):
  setting = trials.Setting(
    folder, folder / 'references.json', random.Random(0), said.append, forks.Forks()
  )
  return setting


def test_answers_are_counted_by_their_words(tmp_path, monkeypatch):
  monkeypatch.setattr(programs, 'Process', _Answer)
  said = []
  tried = inputs.Inputs(_setting(tmp_path, said))
  assert tried.try_one(making.Case('dcco', '--a={d}/b', ('not with', '{d}/b')))
  assert not tried.try_one(making.Case('dcco', '--a=b', ('encoder',)))
  assert "lacks ['encoder']" in said[0]
  counted = {'inputs': 2, 'clear answers': 1, 'answers that are not clear': 1}
  assert tried.counts == counted


def test_failures_leave_their_names_and_counts_go_on(tmp_path, monkeypatch):
  monkeypatch.setattr(programs, 'Process', _Answer)
  flags = ('--groups=inputs', '--trials=2', f'--torture_dir={tmp_path}')
  ended = in_process.run(torture, *flags)
  assert ended.status == 1
  assert 'inputs: inputs                      20' in ended.stdout
  assert ended.stdout.splitlines()[-1] == 'inputs:table:0, inputs:table:1'
  # The same command goes on; a name does the same again, and counts nothing.
  again = in_process.run(torture, *flags, '--again=inputs:table:1')
  assert again.status == 1
  assert again.stdout.splitlines()[-1] == 'inputs:table:1 did not hold'
  more = in_process.run(torture, *flags, '--enough=inputs=25')
  assert 'inputs: inputs                      30' in more.stdout
  stored = json.loads((tmp_path / 'counts.json').read_text())
  assert stored['counts']['inputs']['inputs'] == 30
  assert stored['failed'] == [f'inputs:table:{k}' for k in range(3)]
  assert "lacks ['" in (tmp_path / 'failures.txt').read_text()


@pytest.mark.parametrize(
  ('flag', 'said'),
  [
    ('--groups=x', "groups has 'x'; allowed are kills, inputs"),
    ('--kinds=x', "kinds has 'x'; allowed are worker, in_process"),
    ('--enough=kills', "enough has 'kills'; it must be GROUP=COUNT, as in kills=300"),
    ('--again=kills:hosts', "again is 'kills:hosts'; it must end with a whole number"),
    (
      '--again=inputs:x:1',
      "again is 'inputs:x:1'; it must be a trial, as in kills:hosts:7",
    ),
  ],
)
def test_what_is_no_campaign_is_refused(tmp_path, flag, said):
  ended = in_process.run(torture, flag, f'--torture_dir={tmp_path}')
  assert ended.status == 1
  assert said in ended.stderr


class _Kind(trials.Trials):
  """Says what it is asked for."""

  kinds = ('a', 'b', 'c')
  counted = 'done'

  def trial(self, kind, turn):
    self.counts['done'] += 1
    self.counts[f'{kind}{turn} {self._random.random():.6f}'] += 1
    return True


def test_groups_and_kinds_are_taken_in_turn_and_drawn_by_name(tmp_path, monkeypatch):
  monkeypatch.setattr(campaign, '_GROUPS', {'inputs': _Kind, 'disk': _Kind})
  made = campaign.Campaign(tmp_path, ['inputs', 'disk'], [])
  made.run(1.0, 5, {'disk': 1})
  drawn = random.Random()

  def name(group, kind, turn):
    drawn.seed(f'{group}:{kind}:{turn}')
    return f'{kind}{turn} {drawn.random():.6f}'

  ours = made._of['inputs'].counts
  own = [name('inputs', k, t) for k, t in [('a', 0), ('b', 0), ('c', 0), ('a', 1)]]
  assert ours == {'done': 4, **dict.fromkeys(own, 1)}
  assert made._of['disk'].counts == {'done': 1, name('disk', 'a', 0): 1}


def test_noise_is_hooks_where_it_is_added(tmp_path, monkeypatch):
  """TFF's factory adds it to zeros once, which nobody sees."""
  query = tensorflow_privacy.GaussianSumQuery
  monkeypatch.setattr(query, 'get_noised_result', query.get_noised_result)
  hooks.note_noise(str(tmp_path / 'note'))
  factory = aggregations._noised_sum(1.0, 1.0)
  process = factory.create(tff.TensorType(np.float32, [3]))
  with contexts.in_process('cpu', optimize_graphs=False):
    state = process.initialize()
    for _ in range(3):
      state = process.next(state, [np.ones(3, np.float32)] * 2).state
  assert hooks.count(tmp_path / 'note') == 3
  assert hooks.count(tmp_path / 'other') == 0
  lines = (tmp_path / 'note').read_text().split()
  assert lines == ['nothing', 'noise', 'noise', 'noise']


def test_a_broken_clip_has_the_noise_of_a_sound_one(monkeypatch):
  sound = aggregations.private(2.0, 0.5, 1.0)
  monkeypatch.setattr(aggregations, 'private', aggregations.private)
  hooks.apply(hooks.BREAK_CLIP)
  broken = aggregations.private(2.0, 0.5, 1.0)
  assert broken.packs.clip_norms['update'] == 100 * sound.packs.clip_norms['update']
  assert 50 * broken.noise_multiplier == 0.5 * sound.noise_multiplier


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
