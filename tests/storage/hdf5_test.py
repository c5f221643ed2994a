"""HDF5 files: what is in one is found once, however many names it has."""

import io

import h5py
import numpy as np
import pytest

from tff_ssl.storage import hdf5


@pytest.fixture(name='file')
def _file():
  with h5py.File(io.BytesIO(), 'w') as file:
    file['a/x'] = np.ones([2, 3], np.float32)
    file['a/b/x'] = np.ones([4], np.float64)
    yield file


def test_arrays_of_all_groups_are_found_by_their_paths(file):
  shapes = {name: value.shape for name, value in hdf5.arrays(file).items()}
  assert shapes == {'/a/x': (2, 3), '/a/b/x': (4,)}
  assert hdf5.arrays(file['a'], lambda _, name: name == 'b').keys() == {'/a/x'}


def _chain(file):
  """Thirty groups, with two names each: a thousand million paths."""
  inner = file.create_group('c')
  for _ in range(30):
    outer = inner.create_group('one')
    inner['two'] = outer
    inner = outer


@pytest.mark.parametrize(
  ('change', 'name'),
  [
    (_chain, '/c.*/two'),
    (lambda file: file['a'].__setitem__('y', file['a/x']), '/a/y'),
    (lambda file: file['a/b'].__setitem__('loop', file['a']), '/a/b/loop'),
    (lambda file: file['a/b'].__setitem__('top', file['/']), '/a/b/top'),
  ],
)
def test_what_has_two_names_is_refused(file, change, name):
  change(file)
  with pytest.raises(ValueError, match=f"'{name}' is there twice"):
    hdf5.arrays(file)
