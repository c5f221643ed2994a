"""Both ends of a chain: the log, what is dropped and declared, what a reader takes."""

import json
import math
import shutil

import numpy as np
import pytest

from tests.sites import parties
from tff_ssl.sites import chains
from tff_ssl.sites import messages

_RUN = 'ab' * 32
_ARRAYS = {'x': np.array([3, -4], 'f4'), 'rows': np.array([12])}


@pytest.fixture
def world(tmp_path):
  return parties.World(tmp_path, ['north', 'south'])


def _send(outbox, round=1, answers=''):
  body = {'round': round, 'exchange': 'train'}
  return outbox.send(_RUN, messages.SUMS, body, _ARRAYS, answers)


def _numbers(inbox, sender='north'):
  numbers = []
  while (received := inbox.take(sender, _RUN)) is not None:
    numbers.append(received.message.number)
  return numbers


def _log(world, name='north'):
  return chains.read_log(world.folder(name) / chains.OUTBOX)


def test_what_is_sent_is_taken_in_its_order_and_written_down(world):
  outbox, inbox = world.outbox('north'), world.inbox('south')
  assert inbox.take('north', _RUN) is None
  digests = [_send(outbox, round) for round in (1, 2)]
  received = [inbox.take('north', _RUN) for _ in range(2)]
  assert [each.digest for each in received] == digests
  assert received[1].link == inbox.position('north') == chains.Link(2, digests[1])
  assert [each.message.before for each in received] == ['', digests[0]]
  content = world.box.get('north', 2)
  line = _log(world)[1]
  assert line.pop('time')
  assert line == {
    'number': 2,
    'kind': 'sums',
    'run': _RUN,
    'round': 2,
    'exchange': 'train',
    'bytes': len(content),
    'norm': math.hypot(3, 4, 12),
    'digest': messages.digest(content),
  }


def test_a_reader_that_begins_again_takes_nothing_twice(world):
  outbox, inbox = world.outbox('north'), world.inbox('south')
  for round in (1, 2, 3):
    _send(outbox, round)
  first = inbox.take('north', _RUN)
  inbox.take('north', _RUN)
  inbox.remember(north=first.link)
  assert _numbers(world.inbox('south')) == [2, 3]
  inbox.remember()
  assert _numbers(world.inbox('south')) == [3]


@pytest.mark.parametrize(
  'stored', ['{', '[]', '{"north": 5}', '{"north": ["1", ""]}', '{"north": [1, "", 2]}']
)
def test_a_damaged_memory_is_named(world, stored):
  (world.folder('south') / 'read.json').write_text(stored)
  with pytest.raises(ValueError, match=r'read\.json'):
    world.inbox('south')


def test_what_is_dropped_goes_once_a_message_says_so(world):
  outbox, inbox = world.outbox('north'), world.inbox('south')
  for _ in range(4):
    _send(outbox)
  late = world.inbox('south')
  late.take('north', _RUN)
  outbox.drop(4)
  # Nobody knows yet: to a reader they would be lost.
  assert world.box.numbers('north') == [1, 2, 3, 4]
  _send(outbox)
  assert world.box.numbers('north') == [1, 4, 5]
  # Message 4 was sent when 2 and 3 were there, but the newest one says what is.
  assert _numbers(inbox) == [1, 4, 5]
  again = world.outbox('north')
  again.drop(6)
  _send(again)
  # The only one that is left says by itself that none is missing.
  assert _numbers(inbox) == _numbers(late) == [6]


def test_a_gap_that_nobody_has_declared_is_refused_until_it_is_filled(world):
  outbox, inbox = world.outbox('north'), world.inbox('south')
  for _ in range(3):
    _send(outbox)
  assert inbox.take('north', _RUN).message.number == 1
  outbox.drop(3)
  for _ in range(3):
    _send(outbox)
  lost = world.box.path / 'north' / '00000003.message'
  kept = lost.read_bytes()
  lost.unlink()
  # 2 was dropped, 3 was not.
  with pytest.raises(
    messages.MessageError, match=r'4 of north is there .* 3; that must come before'
  ):
    inbox.take('north', _RUN)
  lost.write_bytes(kept)
  assert _numbers(inbox) == [3, 4, 5, 6]


def test_the_first_message_is_never_left_out(world):
  outbox = world.outbox('north')
  for _ in range(2):
    _send(outbox)
  outbox.drop(9)
  _send(outbox)
  (world.box.path / 'north' / '00000001.message').unlink()
  with pytest.raises(
    messages.MessageError, match='3 of north is there without message'
  ):
    world.inbox('south').take('north', _RUN)


def test_a_sender_goes_on_after_a_kill_at_each_step(world):
  outbox = world.outbox('north')
  first = _send(outbox, answers='question')
  # Killed before the line was written: it is written now, once.
  log = world.folder('north') / chains.OUTBOX
  log.unlink()
  again = world.outbox('north')
  assert again.last == chains.Link(1, first)
  assert again.answered == {'question': messages.SUMS}
  assert (again.kind, len(_log(world))) == (messages.SUMS, 1)
  # Killed within the line: the next one does not go on in it.
  log.write_text(log.read_text()[:-20])
  second = _send(world.outbox('north'))
  assert [line['digest'] for line in _log(world)] == [first, second]
  # Killed within the message.
  (world.box.path / 'north' / '.aside-1-00000003.message').write_bytes(b'half')
  _send(world.outbox('north'))
  assert world.box.numbers('north') == [1, 2, 3]
  assert len([*(world.box.path / 'north').iterdir()]) == 3
  lines = log.read_text().splitlines()
  assert len({line for line in lines if line.endswith('}')}) == len(_log(world)) == 3


def test_a_sender_whose_messages_were_carried_away_counts_on(world):
  outbox, inbox = world.outbox('north'), world.inbox('south')
  for _ in range(3):
    last = _send(outbox)
  assert _numbers(inbox) == [1, 2, 3]
  shutil.rmtree(world.box.path / 'north')
  again = world.outbox('north')
  assert again.last == chains.Link(3, last)
  _send(again)
  assert _numbers(inbox) == [4]


def test_a_message_of_another_in_a_senders_folder_is_named(world):
  outbox = world.outbox('north')
  _send(outbox)
  _send(world.outbox('south'))
  for number in (1, 2):
    (world.box.path / 'north' / f'0000000{number}.message').write_bytes(
      world.box.get('south', 1)
    )
    with pytest.raises(ValueError, match=f'Message {number} of north is not signed by'):
      world.outbox('north')
    (world.box.path / 'north' / '00000001.message').unlink(missing_ok=True)


def test_a_party_with_the_key_of_another_sends_nothing(world):
  with pytest.raises(ValueError, match=r'own\.key is not the key of south\.pub'):
    chains.Outbox(world.box, world.keys('north'), 'south', world.folder('north'))


def test_two_processes_of_one_name_are_told(world, tmp_path):
  _send(world.outbox('north'))
  one = world.outbox('north')
  other = world.outbox('north', tmp_path / 'other')
  _send(one, 2)
  with pytest.raises(ValueError, match='two processes must not both be north'):
    _send(other, 3)
  assert json.loads((tmp_path / 'other' / chains.OUTBOX).read_text())['number'] == 1
  assert _numbers(world.inbox('south')) == [1, 2]


def test_on_a_full_disk_a_message_is_sent_whole_or_not_at_all(world, monkeypatch):
  outbox = world.outbox('north')
  _send(outbox)

  def full(self, sender, number, content):
    raise OSError(28, 'No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(type(world.box), 'put', full)
    with pytest.raises(OSError, match='No space left'):
      _send(outbox, 2)
  assert (world.box.numbers('north'), len(_log(world))) == ([1], 1)
  assert outbox.last.number == 1
  _send(outbox, 2)
  assert _numbers(world.inbox('south')) == [1, 2]
