"""Tests of reading `.safetensors` files, whose bytes are put together here."""

import json
import os
import re
import struct
import subprocess
import sys

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
    return {name: tensors.read(name) for name in tensors.shapes}


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


def test_bfloat16_is_read_before_tensorflow_is_imported(tmp_path):
  path = tmp_path / 'a.safetensors'
  header = {'x': {'dtype': 'BF16', 'shape': [], 'data_offsets': [0, 2]}}
  path.write_bytes(_content(header, struct.pack('<f', 1.5)[2:]))
  code = f"""
import sys
from tff_ssl.storage import safetensors
with safetensors.open_tensors({str(path)!r}) as tensors:
  print(tensors.read('x'), 'tensorflow' in sys.modules)
"""
  printed = subprocess.check_output([sys.executable, '-c', code], text=True)
  assert printed == '1.5 False\n'


def test_what_is_not_read_may_be_whole_numbers(tmp_path):
  path = tmp_path / 'a.safetensors'
  path.write_bytes(_content())
  with safetensors.open_tensors(path) as tensors:
    np.testing.assert_array_equal(tensors.read('one'), [[1.5], [-2.0]])
    assert tensors.shapes == {'one': (2, 1), 'two': ()}
    with pytest.raises(ValueError, match=r"has 'two' of type I64; it must be of float"):
      tensors.read('two')


_LONG = struct.pack('<Q', 2**62) + b'{}'
_LARGE = _changed(shape=[50_000, 50_000], data_offsets=[8, 10_000_000_008])
_TWICE = json.dumps(_changed('two', data_offsets=[8, 16])).replace('two', 'one')


@pytest.mark.parametrize(
  ('content', 'said'),
  [
    (b'', 'header too small'),
    (_LONG, 'header too large'),
    (_content(b'[' * 100_000, b''), 'invalid JSON in header'),
    (_content(_TWICE.encode()), 'invalid offset for tensor `one`'),
    (_content([], b''), 'invalid JSON in header'),
    (_content({'a': 1}, b''), 'invalid JSON in header'),
    (_content(_changed(dtype='F8_E4M3', shape=[8])), "has 'one' of type F8_E4M3; it"),
    (_content(_changed(dtype=[])), 'invalid JSON in header'),
    (_content(_changed(shape=[2.0])), 'floating point `2.0`, expected usize'),
    (_content(_changed(shape=[True, 2])), 'boolean `true`, expected usize'),
    (_content(_changed(shape=[-1, -2])), 'integer `-1`, expected usize'),
    (_content(_changed(shape=[2**70])), 'expected usize'),
    (_content(_changed(shape=[2**62, 2])), 'overflow computing buffer size'),
    (_content(_changed(shape=2)), 'integer `2`, expected a sequence'),
    (_content(_changed(data_offsets=[0])), 'expected a tuple of size 2'),
    (_content(_changed(data_offsets=[8, 0])), 'invalid offset for tensor `one`'),
    (_content(_changed(shape=[3])), 'invalid shape, data type, or offset'),
    (_content(_changed('two')), 'invalid offset for tensor `'),
    (_content(_changed(data_offsets=[4, 12])), 'invalid offset for tensor `'),
    (_content(data=_DATA[:-1]), 'file not fully covered'),
    (_content(data=_DATA + b'0'), 'file not fully covered'),
    (_content(_LARGE), 'invalid offset for tensor'),
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


def test_a_file_that_becomes_shorter_while_it_is_read_is_refused(tmp_path):
  path = tmp_path / 'a.safetensors'
  path.write_bytes(_content())
  with (
    pytest.raises(ValueError, match=r'a\.safetensors is no whole safetensors file'),
    safetensors.open_tensors(path) as tensors,
  ):
    os.truncate(path, 0)
    tensors.read('one')


def test_what_is_no_file_is_refused(tmp_path):
  os.mkfifo(tmp_path / 'pipe')
  for path in (tmp_path, tmp_path / 'pipe'):
    with pytest.raises((ValueError, IsADirectoryError), match=r'file|directory'):
      _read(path)
