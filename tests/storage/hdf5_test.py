"""HDF5 files: what is in one is found once, however many names it has."""

import io
import os

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


@pytest.mark.parametrize(
  'link',
  [
    lambda pipe: h5py.ExternalLink(pipe, '/'),
    lambda _: h5py.ExternalLink('.', '/'),
    lambda _: h5py.SoftLink('/a'),
    lambda _: h5py.SoftLink('/nowhere'),
  ],
)
@pytest.mark.parametrize('where', ['top', 'a/b/top'])
def test_no_link_is_followed(tmp_path, file, link, where):
  # Whoever opens it waits without end.
  os.mkfifo(tmp_path / 'pipe')
  file[where] = link(str(tmp_path / 'pipe'))
  with pytest.raises(ValueError, match=f"'/{where}' is a link"):
    hdf5.arrays(file)
  if where == 'top':
    with pytest.raises(ValueError, match="'/top' is a link"):
      hdf5.group(file, 'absent', 'top')


def test_values_that_lie_elsewhere_are_refused(file):
  file['a'].create_dataset('x2', [2], 'f4', external=[('/etc/passwd', 0, 8)])
  with pytest.raises(ValueError, match="'/a/x2' is not an array of floats"):
    hdf5.arrays(file)
  with pytest.raises(ValueError, match="'/a/x' is no group"):
    hdf5.group(file['a'], 'x')


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
