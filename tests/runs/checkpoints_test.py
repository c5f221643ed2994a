import collections
import pathlib
import pickle
import zipfile

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
import tree

from tff_ssl.runs import checkpoints


def state(scale=1.0):
  """The structure of a LearningProcess's state: all kinds of containers."""
  weights = collections.OrderedDict(
    [
      ('encoder/b', scale * np.ones([2, 3], np.float32)),
      ('encoder/a', np.float32(scale)),
    ]
  )
  return tff.learning.templates.LearningAlgorithmState(
    global_model_weights=weights,
    distributor=(),
    client_work=(np.int64(scale), ()),
    aggregator=collections.OrderedDict(value_sum_process=()),
    finalizer=[
      collections.OrderedDict(rate=np.float64(scale)),
      np.zeros([0], np.int32),
    ],
  )


def test_load_returns_saved_state(tmp_path):
  folder = checkpoints.Checkpoints(tmp_path)
  folder.save(4, state(2.0))
  loaded = folder.load(4, state(0.0))
  assert isinstance(loaded, tff.learning.templates.LearningAlgorithmState)
  assert list(loaded.global_model_weights) == ['encoder/b', 'encoder/a']
  tree.assert_same_structure(loaded, state())
  for one, other in zip(tree.flatten(loaded), tree.flatten(state(2.0)), strict=True):
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('leaf', [3, 0.5, True, np.float64(0.5), tf.constant([1, 2])])
def test_leaves_keep_their_kind(tmp_path, leaf):
  folder = checkpoints.Checkpoints(tmp_path)
  folder.save(0, leaf)
  assert type(folder.load(0, leaf)) is type(leaf)


def test_the_newest_two_are_kept(tmp_path):
  folder = checkpoints.Checkpoints(tmp_path)
  for round in (0, 9, 10, 100_000_000):
    folder.save(round, state())
  assert folder.rounds() == [10, 100_000_000]


def test_a_failed_save_leaves_the_last_one(tmp_path):
  folder = checkpoints.Checkpoints(tmp_path)
  folder.save(1, np.ones(2))

  class Broken:
    def __array__(self, *_):
      raise MemoryError

  with pytest.raises(MemoryError):
    folder.save(2, Broken())
  assert folder.rounds() == [1]
  assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
  ('template', 'message'),
  [
    ({'a': np.zeros(2), 'b': 0.0}, "'state/b' is absent there and float64"),
    ({}, r"'state/a' is float64 .* there and absent here"),
    ({'a': np.zeros(3)}, r"'state/a' is float64 \[2\] there and float64 \[3\] here"),
    ({'a': np.zeros(2, np.float32)}, 'float32'),
  ],
)
def test_a_state_of_another_structure_is_refused(tmp_path, template, message):
  folder = checkpoints.Checkpoints(tmp_path)
  folder.save(0, {'a': np.zeros(2)})
  with pytest.raises(ValueError, match=message):
    folder.load(0, template)


@pytest.mark.parametrize('content', [b'', b'PK\x03\x04', b'nonsense'])
def test_an_unreadable_file_is_named(tmp_path, content):
  folder = checkpoints.Checkpoints(tmp_path)
  (tmp_path / 'round_00000003.npz').write_bytes(content)
  with pytest.raises(ValueError, match=r'cannot read the checkpoint .*00000003'):
    folder.load(3, 0.0)


@pytest.mark.parametrize(
  'header', [b"{'descr': '<f8', 'shape': (2,(", b"{'descr': <f8 2}", b'', b'\x00' * 9]
)
def test_an_array_without_a_header_is_named(tmp_path, header):
  """NumPy parses the header as Python, and raises what Python's parser does."""
  folder = checkpoints.Checkpoints(tmp_path)
  with zipfile.ZipFile(tmp_path / 'round_00000003.npz', 'w') as archive:
    size = len(header).to_bytes(2, 'little')
    archive.writestr('state/a.npy', b'\x93NUMPY\x01\x00' + size + header)
  with pytest.raises(ValueError, match=r'cannot read the checkpoint .*00000003'):
    folder.load(3, {'a': np.zeros(2)})


@pytest.mark.parametrize('flip', [0xFF, 1, 8])
def test_no_byte_that_is_flipped_is_another_error(tmp_path, flip):
  """Of each byte: the file is as it was, or refused."""
  folder = checkpoints.Checkpoints(tmp_path)
  folder.save(3, {'a': np.arange(2.0)})
  path = tmp_path / 'round_00000003.npz'
  content, refused = path.read_bytes(), 0
  for place in range(len(content)):
    damaged = bytearray(content)
    damaged[place] ^= flip
    path.write_bytes(damaged)
    try:
      found = folder.load(3, {'a': np.zeros(2)})
    except ValueError as error:
      assert str(path) in str(error)
      refused += 1
    else:
      np.testing.assert_array_equal(found['a'], [0.0, 1.0])
  assert refused > len(content) / 2


def test_a_part_of_the_newest_state_is_read_without_a_template(tmp_path):
  folder = checkpoints.Checkpoints(tmp_path)
  folder.save(2, state(1.0))
  folder.save(11, state(2.0))
  round, arrays = checkpoints.read_newest(tmp_path, 'global_model_weights/encoder')
  assert round == 11
  assert sorted(arrays) == ['a', 'b']
  assert arrays['a'] == np.float32(2.0)
  np.testing.assert_array_equal(arrays['b'], 2 * np.ones([2, 3], np.float32))
  with pytest.raises(ValueError, match="has no array below 'global_model_weights/enc'"):
    checkpoints.read_newest(tmp_path, 'global_model_weights/enc')


def test_parts_of_the_newest_state_are_of_one_round(tmp_path, monkeypatch):
  folder = checkpoints.Checkpoints(tmp_path)
  folder.save(1, {'a': {'x': np.ones(2)}, 'b': {'x': np.ones(3)}})
  listed = checkpoints._rounds

  def and_then_a_round_is_saved(path):
    rounds = listed(path)
    folder.save(max(rounds) + 1, {'a': {'x': np.zeros(2)}, 'b': {'x': np.zeros(3)}})
    return rounds

  monkeypatch.setattr(folder, 'rounds', list)
  monkeypatch.setattr(checkpoints, '_rounds', and_then_a_round_is_saved)
  round, parts = checkpoints.read_newest_parts(tmp_path, ['b', 'a'])
  assert round == 1
  assert [part['x'].tolist() for part in parts] == [[1.0] * 3, [1.0] * 2]
  with pytest.raises(ValueError, match="has no array below 'c'"):
    checkpoints.read_newest_parts(tmp_path, ['a', 'c'])


def test_missing_checkpoints_are_errors_of_reading(tmp_path):
  with pytest.raises(ValueError, match='has no checkpoint'):
    checkpoints.read_newest(tmp_path, 'a')
  with pytest.raises(ValueError, match='missing has no checkpoint'):
    checkpoints.read_newest(tmp_path / 'missing', 'a')
  assert not list(tmp_path.iterdir())


class Program:
  """Makes a file when it is unpickled."""

  def __init__(self, path):
    self.path = path

  def __reduce__(self):
    return pathlib.Path.touch, (self.path,)


@pytest.mark.parametrize('kind', ['object array', 'pickle', 'npy'])
def test_a_checkpoint_with_a_program_is_refused_and_not_run(tmp_path, kind):
  path, ran = tmp_path / 'round_00000001.npz', tmp_path / 'ran'
  program = np.array([Program(ran)], object)
  if kind == 'object array':
    np.savez(path, **{'state/x/y': program})
  elif kind == 'pickle':
    path.write_bytes(pickle.dumps(program))
  else:
    with path.open('wb') as file:
      np.save(file, np.zeros(3))
  with pytest.raises(ValueError, match='cannot read the checkpoint'):
    checkpoints.read_newest(tmp_path, 'x')
  assert not ran.exists()


_Pair = collections.namedtuple('_Pair', ['number', 'rest'])


def _nest():
  rest = collections.OrderedDict(z=np.float32([[1, 2], [3, 4]]), a=np.bool_(True))
  return _Pair(np.int32(-7), [rest, (), np.zeros([0, 2], np.int64)])


def test_bytes_are_those_of_the_arrays_in_the_order_of_names():
  nest = _nest()
  layout = checkpoints.StateLayout(nest)
  assert list(layout.spec.items()) == [
    ('state/number', ['int32', []]),
    ('state/rest/0/a', ['bool', []]),
    ('state/rest/0/z', ['float32', [2, 2]]),
    ('state/rest/2', ['int64', [0, 2]]),
  ]
  expected = nest.number.tobytes() + b'\x01' + np.float32([1, 2, 3, 4]).tobytes()
  assert layout.encode(nest) == expected
  assert layout.num_bytes == len(expected) == 21


def test_decode_inverts_encode():
  nest = _nest()
  layout = checkpoints.StateLayout(nest)
  decoded = layout.decode(layout.encode(nest))
  assert isinstance(decoded, _Pair)
  assert isinstance(decoded.number, np.int32)
  assert decoded.number == -7
  assert list(decoded.rest[0]) == ['z', 'a']
  np.testing.assert_array_equal(decoded.rest[0]['z'], nest.rest[0]['z'])
  assert decoded.rest[1] == ()
  assert decoded.rest[2].shape == (0, 2)


def test_a_nest_of_another_layout_is_refused():
  layout = checkpoints.StateLayout(_nest())
  other = _nest()._replace(number=np.int64(-7))
  with pytest.raises(ValueError, match=r"'state/number' is int64 .* int32"):
    layout.encode(other)
  assert layout.difference(layout.spec) == ''
