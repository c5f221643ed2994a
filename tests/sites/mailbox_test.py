"""A folder of messages: whole files or none, and what strangers put there."""

import errno
import os

import pytest

from tff_ssl.sites import mailbox as mailbox_lib


@pytest.fixture
def box(tmp_path):
  return mailbox_lib.Mailbox(tmp_path / 'box')


def _files(box):
  return sorted(path.name for path in (box.path / 'north').iterdir())


def test_a_message_is_a_file_by_its_number(box):
  assert (box.get('north', 1), box.numbers('north')) == (None, [])
  for number in (1, 12, 100_000_000):
    box.put('north', number, b'%d' % number)
  assert _files(box) == ['00000001.message', '00000012.message', '100000000.message']
  assert box.numbers('north') == [1, 12, 100_000_000]
  assert (box.get('north', 12), box.get('south', 12)) == (b'12', None)
  # The first stays: it says who the sender is.
  box.drop('north', 100_000_000)
  assert box.numbers('north') == [1, 100_000_000]


def test_the_same_message_again_changes_nothing_and_another_is_refused(box):
  box.put('north', 1, b'one')
  before = (box.path / 'north' / '00000001.message').stat()
  box.put('north', 1, b'one')
  assert (box.path / 'north' / '00000001.message').stat() == before
  with pytest.raises(ValueError, match='two processes must not both be north'):
    box.put('north', 1, b'two')
  assert box.get('north', 1) == b'one'


def test_what_is_no_number_is_no_message(box):
  box.put('north', 7, b'seven')
  odd = ['7.message', '٧.message', '-0000001.message', 'own.message', '00000008.txt']
  for name in [*odd, '.aside-1-00000009.message', '000000010.message']:
    (box.path / 'north' / name).write_bytes(b'odd')
  (box.path / 'north' / '00000011.message').mkdir()
  assert box.numbers('north') == [7, 11]
  with pytest.raises(ValueError, match=r'11\.message is a folder, pipe or device'):
    box.get('north', 11)


def test_links_are_not_followed(box, tmp_path):
  (tmp_path / 'own').mkdir()
  (tmp_path / 'own' / '00000001.message').write_bytes(b'secret')
  (box.path / 'north').mkdir(parents=True)
  (box.path / 'north' / '00000001.message').symlink_to(
    tmp_path / 'own' / '00000001.message'
  )
  (box.path / 'south').symlink_to(tmp_path / 'own')
  with pytest.raises(ValueError, match=r'1\.message is a link; it must be'):
    box.get('north', 1)
  with pytest.raises(ValueError, match='south is a link; it must be in the mailbox'):
    box.put('south', 2, b'message')
  assert [path.name for path in (tmp_path / 'own').iterdir()] == ['00000001.message']


def test_no_more_is_read_or_written_than_a_message_may_have(box, monkeypatch):
  monkeypatch.setattr(mailbox_lib, 'MOST_BYTES', 4)
  box.put('north', 1, b'1234')
  with pytest.raises(ValueError, match='Message 2 of north has 5 bytes; it must have'):
    box.put('north', 2, b'12345')
  (box.path / 'north' / '00000002.message').write_bytes(b'12345')
  with pytest.raises(
    ValueError, match=r'2\.message has 5 bytes: it must have at most 4'
  ):
    box.get('north', 2)


def test_on_a_full_disk_nothing_half_written_is_there(box, monkeypatch):
  box.put('north', 1, b'one')

  def full(descriptor):
    raise OSError(errno.ENOSPC, 'No space left on device')

  monkeypatch.setattr(os, 'fsync', full)
  with pytest.raises(OSError, match=r'No space left.*00000002\.message'):
    box.put('north', 2, b'two')
  assert _files(box) == ['00000001.message']
  monkeypatch.undo()
  box.put('north', 2, b'two')
  assert box.get('north', 2) == b'two'
