"""Releases are written down before they are made, whatever happens in between."""

import collections
import contextlib
import json
import os
import pathlib
import re
from unittest import mock

import numpy as np
import pytest

from tff_ssl.runs import loop
from tff_ssl.runs import round_algorithms
from tff_ssl.runs import run_folder
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import privacy_ledger
from tff_ssl.runs.privacy import private_rounds

_TERMS = accounting.Terms(8, 8, {'train/update': 2.0}, 1e-2)


class _Killed(BaseException):
  """What nothing catches, as a SIGKILL."""


class _Process:
  """Counts what it has released; is killed where it is told to be."""

  def __init__(self, clients=8):
    self.released = []
    self.kill_at = None
    self._clients = clients

  def initialize(self):
    return np.float32(0)

  def next(self, state, cohort):
    del cohort
    # The noise is drawn: from here on somebody may have seen it.
    self.released.append(int(state) + 1)
    if self.kill_at == len(self.released):
      raise _Killed
    work = {'clients': self._clients, 'examples': 32, 'loss': 0.0}
    return round_algorithms.Output(np.float32(state + 1), {'client_work': work})


def _run(folder, process, rounds=6, epsilon=None, withholds=False, every=2, told=()):
  algorithm = private_rounds.PrivateRounds(process, _TERMS, epsilon, withholds, told)
  with run_folder.RunFolder(folder, {}) as opened:
    state = loop.run(
      algorithm,
      lambda round: round,
      opened,
      rounds,
      checkpoint_every=every,
      progress=False,
    )
    return algorithm, state, opened.metrics.rows()


def test_each_round_is_one_release_with_what_it_cost(tmp_path):
  algorithm, _, rows = _run(tmp_path / 'run', _Process())
  assert algorithm.releases == 6
  accountant = accounting.Accountant(_TERMS)
  assert [row['privacy/releases'] for row in rows] == list('123456')
  for n, row in enumerate(rows, start=1):
    assert float(row['privacy/epsilon']) == accountant.epsilon_after(n)
  assert algorithm.epsilon == accountant.epsilon_after(6)
  assert algorithm.terms is _TERMS
  # A finished run that is started again releases nothing.
  process = _Process()
  assert _run(tmp_path / 'run', process)[0].releases == 6
  assert process.released == []


@pytest.mark.parametrize('kills', [(1,), (3,), (6,), (2, 4), (1, 1, 1), (5, 2, 1)])
def test_killed_in_rounds_never_fewer_are_counted_than_were_made(tmp_path, kills):
  released = 0
  for kill_at in kills:
    process = _Process()
    process.kill_at = kill_at
    # A killed process saves nothing more.
    with (
      mock.patch.object(loop, '_save', wraps=loop._save) as save,
      pytest.raises(_Killed),
    ):
      save.side_effect = lambda *args, p=process: _saved_unless_killed(p, *args)
      _run(tmp_path / 'run', process)
    released += len(process.released)
    assert len(privacy_ledger.rounds(tmp_path / 'run')) == released
  process = _Process()
  algorithm, state, _ = _run(tmp_path / 'run', process)
  assert state == 6
  assert algorithm.releases == released + len(process.released) > 6


_save = loop._save


def _saved_unless_killed(process, *args):
  if process.kill_at == len(process.released):
    raise _Killed
  _save(*args)


# The calls of a write of the ledger, in order, with what a kill leaves of its line.
@pytest.mark.parametrize(
  ('call', 'torn'),
  [('write', 0), ('write', 1), ('write', 10), ('write', None), ('fsync', None)],
)
def test_killed_while_writing_nothing_is_released_uncounted(tmp_path, call, torn):
  process = _Process()
  _run(tmp_path, process, rounds=2)
  ledger = privacy_ledger.Ledger(tmp_path, _TERMS.as_json())
  path = ledger.path
  whole = path.read_bytes() + b'{"release": 3, "round": 3}\n'
  if call == 'write':
    # What of the line was written before the kill.
    length = len(path.read_bytes())
    path.write_bytes(whole[: length + (torn or 0)] if torn is not None else whole)
  else:
    with mock.patch.object(os, 'fsync', side_effect=_Killed), pytest.raises(_Killed):
      ledger.spend(3)
    assert ledger.releases == 3
  ledger = privacy_ledger.Ledger(tmp_path, _TERMS.as_json())
  before = ledger.releases
  # Anything of a line is a release; nothing of it is none, for none was made.
  assert before == (2 if torn == 0 else 3)
  ledger.spend(3)
  assert ledger.releases == before + 1 == len(privacy_ledger.rounds(tmp_path))
  assert path.read_bytes().endswith(b'\n')


def test_a_write_that_fails_ends_the_round_before_its_release(tmp_path):
  process = _Process()
  _run(tmp_path, process, rounds=2)
  with (
    mock.patch.object(os, 'fsync', side_effect=OSError(28, 'full')),
    pytest.raises(OSError, match='full'),
  ):
    algorithm = private_rounds.PrivateRounds(process, _TERMS)
    algorithm.resume(tmp_path, 2)
    algorithm.next(np.float32(2), 3)
  assert process.released == [1, 2]


def test_a_checkpoint_takes_nothing_back(tmp_path):
  _run(tmp_path, _Process(), rounds=4)
  before = (tmp_path / privacy_ledger.NAME).read_bytes()
  for path in sorted((tmp_path / 'checkpoints').iterdir())[1:]:
    path.unlink()
  algorithm, _, _ = _run(tmp_path, _Process(), rounds=4)
  assert (tmp_path / privacy_ledger.NAME).read_bytes().startswith(before)
  assert algorithm.releases == 6


def test_run_ends_before_its_budget_is_exceeded(tmp_path):
  budget = accounting.Accountant(_TERMS).epsilon_after(4) + 1e-6
  for _ in range(2):
    process = _Process()
    with pytest.raises(
      private_rounds.BudgetSpentError,
      match=r'is spent: epsilon is .* after 4 releases in 4 rounds, and a',
    ) as raised:
      _run(tmp_path, process, epsilon=budget)
    assert raised.value.round == 4
    assert raised.value.state == 4
  # The second had nothing left.
  assert process.released == []


def test_a_repeated_round_shortens_what_the_budget_pays_for(tmp_path):
  budget = accounting.Accountant(_TERMS).epsilon_after(6) + 1e-6
  process = _Process()
  process.kill_at = 3
  with pytest.raises(_Killed):
    _run(tmp_path, process, epsilon=budget)
  with pytest.raises(
    private_rounds.BudgetSpentError,
    match=r'6 releases in 5 rounds \(1 of them is a repetition after an interruption',
  ):
    _run(tmp_path, _Process(), epsilon=budget)


@pytest.mark.parametrize(
  ('name', 'value'),
  [
    ('population', 9),
    ('population', -3),
    ('population', 10**15),
    ('delta', 1e-3),
    ('delta', 'small'),
    ('multipliers', None),
    ('multipliers', [2.0]),
    ('multipliers', {}),
  ],
)
def test_terms_that_are_others_or_cannot_be_are_refused(tmp_path, name, value):
  _run(tmp_path, _Process(), rounds=1)
  first, *others = _lines(tmp_path)
  stored = json.dumps({**json.loads(first), name: value}).encode()
  _write(tmp_path, [stored + b'\n', *others])
  message = re.escape(f'has different terms: {name} is {value} there')
  with pytest.raises(ValueError, match=message):
    _run(tmp_path, _Process(), rounds=2)


def test_another_cohort_than_is_counted_is_refused(tmp_path):
  with pytest.raises(ValueError, match='Round 1 had 7 clients; its privacy cost'):
    _run(tmp_path, _Process(clients=7))


def test_a_ledger_that_is_gone_or_shorter_is_refused(tmp_path):
  _run(tmp_path, _Process(), rounds=4)
  path = tmp_path / privacy_ledger.NAME
  _write(tmp_path, _lines(tmp_path)[:3])
  with pytest.raises(ValueError, match='2 releases for 4 rounds; lines are missing'):
    _run(tmp_path, _Process(), rounds=5)
  for garbage in (b'garbage\n', b'[' * 100_000):
    path.write_bytes(garbage)
    with pytest.raises(ValueError, match='is damaged'):
      _run(tmp_path, _Process(), rounds=5)
  path.unlink()
  with pytest.raises(ValueError, match='4 rounds but no privacy_ledger'):
    _run(tmp_path, _Process(), rounds=5)


def _lines(path):
  return (path / privacy_ledger.NAME).read_bytes().splitlines(keepends=True)


def _write(path, lines):
  (path / privacy_ledger.NAME).write_bytes(b''.join(lines))


def test_a_checkpoint_knows_the_lines_of_the_ledger(tmp_path):
  process = _Process()
  process.kill_at = 4
  with pytest.raises(_Killed):
    _run(tmp_path, process, every=1)
  _run(tmp_path, _Process(), rounds=5, every=1)
  lines = _lines(tmp_path)
  # Round 4 was released twice; as many lines as rounds would be too few.
  assert len(lines) == 1 + 6
  _write(tmp_path, lines[:-1])
  with pytest.raises(ValueError, match='has 5 releases; it must have the 6 that there'):
    _run(tmp_path, _Process(), rounds=6)
  # The ledger of another run, with no repetition.
  _write(tmp_path, [*lines[:5], b'{"release": 5, "round": 5}\n', *lines[5:6]])
  with pytest.raises(
    ValueError, match='has different lines from those that there were'
  ):
    _run(tmp_path, _Process(), rounds=6)
  # An older checkpoint knows fewer lines, and none of those after it is lost.
  _write(tmp_path, lines)
  max((tmp_path / 'checkpoints').iterdir()).unlink()
  algorithm, _, rows = _run(tmp_path, _Process(), rounds=6)
  assert algorithm.releases == 8
  spent = [float(row['privacy/epsilon']) for row in rows]
  assert spent == sorted(spent)


@pytest.mark.parametrize(
  'mark', [{}, {'releases': 'x'}, {'releases': True, 'digest': 1}, 5, None, ['x'], 'x']
)
def test_a_damaged_mark_is_refused(tmp_path, mark):
  _run(tmp_path, _Process(), rounds=1)
  ledger = privacy_ledger.Ledger(tmp_path, _TERMS.as_json())
  with pytest.raises(ValueError, match='privacy_ledger'):
    ledger.check(mark)


def test_a_round_reads_as_much_after_any_number_of_rounds(tmp_path):
  """What is opened, and read of the two files that grow, round by round."""
  read = collections.Counter[int]()
  process = _Process()
  openings, reading = pathlib.Path.open, pathlib.Path.read_bytes

  def opened(path, mode='r', *args, **kwargs):
    file = openings(path, mode, *args, **kwargs)
    if mode == 'rb' and path.name == 'metrics.csv':
      file = mock.Mock(wraps=file, **{'fileno.side_effect': file.fileno})
      whole = file.read

      def part(*given):
        content = whole(*given)
        read[len(process.released)] += len(content)
        return content

      file.read = part
      return contextlib.closing(file)
    return file

  def bytes_of(path):
    content = reading(path)
    read[len(process.released)] += len(content)
    return content

  with (
    mock.patch.object(pathlib.Path, 'open', opened),
    mock.patch.object(pathlib.Path, 'read_bytes', bytes_of),
  ):
    _run(tmp_path, process, rounds=30, every=1)
  rounds = [read[n] for n in range(5, 30)]
  # A row is some bytes longer where a number has more digits.
  assert 0 < max(rounds) < 1.2 * min(rounds)


def test_in_passes_a_repeated_round_counts_for_the_clients_of_its_cohort(tmp_path):
  """Passes of two rounds, of which the fourth is killed and made again."""
  terms = accounting.Terms(16, 8, {'train/update': 2.0}, 1e-2, False, accounting.PASSES)
  process = _Process()
  process.kill_at = 4
  with mock.patch.dict(globals(), _TERMS=terms):
    with pytest.raises(_Killed):
      _run(tmp_path / 'run', process, every=1)
    algorithm, _, rows = _run(tmp_path / 'run', _Process(), every=1)
  path = tmp_path / 'run'
  assert privacy_ledger.rounds(path) == [1, 2, 3, 4, 4, 5, 6]
  assert [row['privacy/releases'] for row in rows] == list('123567')
  assert [row['privacy/participations'] for row in rows] == list('112344')
  accountant = accounting.Accountant(terms)
  assert (
    algorithm.epsilon
    == accountant.epsilon(terms.history([1, 3, 5, 7]).counts)
    == float(rows[-1]['privacy/epsilon'])
  )
  # A torn line may be a release of any client.
  with (path / privacy_ledger.NAME).open('ab') as file:
    file.write(b'{"release": 8, "rou')
  rounds = privacy_ledger.rounds(path)
  assert rounds[-1] is None
  assert terms.history(rounds).counts.releases == 5


def test_metrics_that_do_not_leave_the_clients_are_not_told(tmp_path):
  _, _, rows = _run(tmp_path / 'a', _Process(), rounds=1)
  assert 'client_work/loss' in rows[0]
  _, _, rows = _run(tmp_path / 'b', _Process(), rounds=1, withholds=True)
  assert 'client_work/loss' not in rows[0]
  assert rows[0]['client_work/clients'] == '8'
  # What is made of other values, which have noise, may be told.
  *_, rows = _run(tmp_path / 'c', _Process(), 1, withholds=True, told=['loss'])
  assert rows[0]['client_work/loss'] == '0.0'


def test_the_file_tells_the_terms_and_the_rounds(tmp_path):
  _run(tmp_path, _Process(), rounds=2)
  first, *others = (tmp_path / privacy_ledger.NAME).read_text().splitlines()
  assert json.loads(first) == {'ledger': 1, **_TERMS.as_json()}
  assert [json.loads(line) for line in others] == [
    {'release': 1, 'round': 1},
    {'release': 2, 'round': 2},
  ]
