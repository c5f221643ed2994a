"""What a carrier takes: whole messages of one sender, and nothing else."""

import pytest

from carriers.flower.mail import folders


@pytest.fixture(name='north')
def _north(tmp_path):
  return folders.Folder(str(tmp_path), 'north')


def _files(folder):
  return sorted(path.name for path in folder.rglob('*') if path.is_file())


def test_messages_are_carried_under_their_names(tmp_path, north):
  east = folders.Folder(str(tmp_path / 'other'), 'north')

  assert north.write(['00000002.message', '00000001.message'], [b'b', b'a']) == 2
  assert east.write(*north.read(north.numbers())) == 2

  assert east.numbers() == [1, 2]
  assert east.read([1, 2]) == (['00000001.message', '00000002.message'], [b'a', b'b'])
  # A number that its sender has removed meanwhile.
  assert north.read([3]) == ([], [])


def test_a_message_that_is_there_is_never_changed(north):
  north.write(['00000001.message'], [b'first'])

  assert north.write(['00000001.message'], [b'second']) == 0
  assert north.read([1])[1] == [b'first']


@pytest.mark.parametrize(
  'name',
  ['../east/00000001.message', '1.message', 'own.key', '00000001.message\n', ''],
)
def test_other_names_are_refused(tmp_path, north, name):
  with pytest.raises(ValueError, match=r'A file is called .*; it must be called as in'):
    north.write([name], [b''])

  assert _files(tmp_path) == []


@pytest.mark.parametrize('name', ['..', 'a/b', '', 'a' * 41])
def test_other_senders_are_refused(tmp_path, name):
  with pytest.raises(ValueError, match=r'it must have 1 to 40 letters'):
    folders.Folder(str(tmp_path), name)


def test_what_is_no_message_is_not_seen(tmp_path, north):
  north.write(['00000001.message'], [b''])
  for name in ('.7-00000002.message', '3.message', 'own.key'):
    (tmp_path / 'north' / name).write_bytes(b'')

  assert north.numbers() == [1]


def test_a_write_that_fails_leaves_nothing(tmp_path, north, monkeypatch):
  def full(_):
    raise OSError('full')

  monkeypatch.setattr(folders.os, 'fsync', full)

  with pytest.raises(OSError, match='full'):
    north.write(['00000001.message'], [b'a'])
  assert _files(tmp_path) == []


def test_many_messages_travel_in_parts_and_a_large_one_alone(north, monkeypatch):
  monkeypatch.setattr(folders, '_MOST_BYTES', 10)
  names = [f'{number:08d}.message' for number in (1, 2, 3)]
  north.write(names, [b'x' * 6, b'x' * 4, b'x' * 99])

  assert north.read([1, 2, 3])[0] == names[:2]
  assert north.read([3])[0] == names[2:]


@pytest.mark.parametrize(
  ('there', 'left'),
  [([1, 4, 5], [1, 4]), ([1], [1, 2, 3, 4]), ([], [1, 2, 3, 4]), ([9], [1])],
)
def test_what_its_sender_has_removed_goes_but_the_first(north, there, left):
  names = [f'{number:08d}.message' for number in (1, 2, 3, 4)]
  north.write(names, [b''] * 4)

  north.drop(there)

  assert north.numbers() == left
