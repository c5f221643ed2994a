"""Tests of reading `.safetensors` files, whose bytes are put together here."""

import json
import os
import re
import struct

import numpy as np
import pytest

from tests.worlds import allocations
from tff_ssl.storage import safetensors

_HEADER = {
  'one': {'dtype': 'F32', 'shape': [2, 1], 'data_offsets': [0, 8]},
  'two': {'dtype': 'I64', 'shape': [], 'data_offsets': [8, 16]},
}
_DATA = struct.pack('<ffq', 1.5, -2.0, 7)


def _content(header=_HEADER, data=_DATA):
  text = header if isinstance(header, bytes) else json.dumps(header).encode()
  return struct.pack('<Q', len(text)) + text + data


def _read(path):
  with safetensors.open_tensors(path) as tensors:
    return {name: tensors.read(name) for name in tensors.headers}


def _changed(name='one', **entry):
  return {**_HEADER, name: {**_HEADER['one'], **entry}}


@pytest.mark.parametrize(
  ('name', 'stored'),
  [
    ('F64', struct.pack('<3d', 1.0, -0.1, 3e38)),
    ('F32', struct.pack('<3f', 1.0, -0.1, 3e38)),
    ('F16', struct.pack('<3e', 1.0, -0.1, 6e4)),
    # The upper two bytes of float32.
    ('BF16', b''.join(struct.pack('<f', v)[2:] for v in (1.0, -0.1, 3e38))),
  ],
)
def test_floats_of_any_size_are_read_as_float32(tmp_path, name, stored):
  path = tmp_path / 'a.safetensors'
  header = {
    '__metadata__': {'format': 'pt'},
    'x': {'dtype': name, 'shape': [3, 1], 'data_offsets': [0, len(stored)]},
  }
  path.write_bytes(_content(header, stored))
  (got,) = _read(path).values()
  assert got.dtype == np.float32 and got.shape == (3, 1)
  expected = [1.0, -0.1, 6e4 if name == 'F16' else 3e38]
  # Half numbers have 11 significant bits, bfloat16 8 of which the last are cut.
  tolerance = {'F16': 2**-11, 'BF16': 2**-7}.get(name, 1e-7)
  np.testing.assert_allclose(got[:, 0], expected, rtol=tolerance)


def test_what_is_not_read_may_be_whole_numbers(tmp_path):
  path = tmp_path / 'a.safetensors'
  path.write_bytes(_content())
  with safetensors.open_tensors(path) as tensors:
    np.testing.assert_array_equal(tensors.read('one'), [[1.5], [-2.0]])
    assert tensors.headers['two'].shape == ()
    with pytest.raises(ValueError, match=r"has 'two' of type I64; it must be of float"):
      tensors.read('two')


_LONG = struct.pack('<Q', 2**62) + b'{}'
_LARGE = _changed(shape=[50_000, 50_000], data_offsets=[8, 10_000_000_008])
_TWICE = b'{"a": 1, "a": 2}'


@pytest.mark.parametrize(
  ('content', 'said'),
  [
    (b'', 'has 0 bytes; it must have at least 8'),
    (_LONG, 'declares a header of 4,611,686,018,427,387,904 bytes; it must have'),
    (_content(b'[' * 100_000, b''), 'has no header of JSON: it is not JSON'),
    (_content(_TWICE, b''), "'a' is there twice"),
    (_content([], b''), 'has a header that is no JSON object; it must be one'),
    (_content({'a': 1}, b''), "wrong entry 'a' in its header; it must have a dtype"),
    (_content(_changed(dtype='F8_E4M3')), 'it must have a dtype, one of F64, F32'),
    (_content(_changed(dtype=[])), 'it must have a dtype, one of F64, F32'),
    (_content(_changed(shape=[2.0])), 'must have whole numbers as shape'),
    (_content(_changed(shape=[True, 2])), 'must have whole numbers as shape'),
    (_content(_changed(shape=[-1, -2])), 'must have whole numbers as shape'),
    (_content(_changed(shape=[1] * 9)), 'must have whole numbers as shape'),
    (_content(_changed(shape=[2**70])), 'must have whole numbers as shape'),
    (_content(_changed(shape=2)), 'must have whole numbers as shape'),
    (_content(_changed(data_offsets=[0])), 'must have data_offsets around the 8'),
    (_content(_changed(data_offsets=[8, 0])), 'must have data_offsets around the 8'),
    (_content(_changed(shape=[3])), 'must have data_offsets around the 12 bytes of'),
    (_content(_changed('two')), "has 'two' from byte"),
    (_content(_changed(data_offsets=[4, 12])), "has 'one' from byte"),
    (_content(data=_DATA[:-1]), 'it must have the 1'),
    (_content(data=_DATA + b'0'), 'it must have the 1'),
    (_content(_LARGE), 'has '),
    (_content(data=struct.pack('<ffq', np.nan, 0, 7)), "has a value of 'one' that is"),
    (_content(data=struct.pack('<ffq', 0, np.inf, 7)), "has a value of 'one' that is"),
  ],
)
def test_a_bad_file_is_one_sentence_and_takes_no_memory(tmp_path, content, said):
  path = tmp_path / 'a.safetensors'
  path.write_bytes(content)
  with (
    allocations.traced(below=2**21),
    pytest.raises(ValueError, match=re.escape(said)) as caught,
  ):
    _read(path)
  assert str(caught.value).startswith(f'{path} ')
  assert str(caught.value).endswith('.') and '\n' not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path):
  os.mkfifo(tmp_path / 'pipe')
  for path in (tmp_path, tmp_path / 'pipe'):
    with pytest.raises((ValueError, IsADirectoryError), match=r'file|directory'):
      _read(path)
