"""Archives of strangers: what is large is refused before it takes memory."""

import io
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from tests.worlds import allocations
from tff_ssl.storage import archives
from tff_ssl.storage import files

_ARRAYS = {
  'a/b': np.arange(6, dtype=np.float32).reshape(2, 3),
  'one': np.int64(7),
  'none': np.zeros([0, 4], np.uint8),
  'turned': np.asfortranarray(np.arange(6.0).reshape(2, 3)),
  'text': np.array(['x', 'yz']),
  'about': np.array([True, False]),
}
# What a refusal may take: far less than what the files below promise.
_LITTLE = 2**24


def _header(shape, dtype='|u1', version=(1, 0)):
  file = io.BytesIO()
  known = {'descr': dtype, 'fortran_order': False, 'shape': shape}
  np.lib.format._write_array_header(file, known, version)
  return file.getvalue()


def _write(path, members, method=zipfile.ZIP_STORED):
  with zipfile.ZipFile(path, 'w', method) as archive:
    for name, content in members:
      archive.writestr(name, content)
  return path


def _read(path, stored=True):
  with archives.open_arrays(path, stored) as arrays:
    return {name: arrays.read(name) for name in arrays.headers}


@pytest.mark.parametrize('save', [np.savez, np.savez_compressed])
def test_arrays_are_those_that_numpy_reads(tmp_path, save):
  save(tmp_path / 'a.npz', **_ARRAYS)
  held = _read(tmp_path / 'a.npz', stored=save is np.savez)
  assert list(held) == list(_ARRAYS)
  with np.load(tmp_path / 'a.npz') as expected:
    for name, array in held.items():
      assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape)
      np.testing.assert_array_equal(array, expected[name])
      assert array.flags.writeable


def _bomb(path):
  """A member of 64 MiB in some kB."""
  content = _header((2**26,)) + bytes(2**26)
  return _write(path, [('a.npy', content)], zipfile.ZIP_DEFLATED)


def _promise(path):
  """A header that promises a TiB."""
  return _write(path, [('a.npy', _header((2**40,)) + bytes(8))])


def _overlapping(path):
  """A hundred members that are the same bytes of the file."""
  with zipfile.ZipFile(path, 'w') as archive:
    archive.writestr('a.npy', _header((2**20,)) + bytes(2**20))
    (entry,) = archive.infolist()
    for number in range(100):
      other = zipfile.ZipInfo(f'{number}.npy')
      for name in ('header_offset', 'CRC', 'compress_size', 'file_size'):
        setattr(other, name, getattr(entry, name))
      archive.filelist.append(other)
      archive.NameToInfo[other.filename] = other
  return path


def _long_header(path):
  """A header of 64 MiB, which the second version of the format has room for."""
  content = b'\x93NUMPY\x02\x00' + struct.pack('<I', 2**26) + b' ' * 2**26
  return _write(path, [('a.npy', content)])


def _many(path):
  """A list of files that is larger than any of ours."""
  _write(path, [('a.npy', _header((1,)) + b'1')])
  content = bytearray(path.read_bytes())
  end = content.rindex(b'PK\x05\x06')
  # The size of the list, and where it begins.
  padding = 2**25
  content[end + 12 : end + 20] = struct.pack('<II', padding, 0)
  path.write_bytes(bytes(padding) + content)
  return path


def _objects(path):
  np.savez(path, a=np.array([{}, None], object))
  return path


def _negative(path):
  return _write(path, [('a.npy', _header((-1,)))])


@pytest.mark.parametrize(
  ('make', 'message'),
  [
    (_bomb, r"'a.npy' is compressed, to 67,108,992 bytes; it must be stored"),
    (_promise, r"'a' has 8 bytes, not the 1,099,511,627,776 of uint8"),
    (_overlapping, r'its files have 105,\d+,\d+ bytes, more than its own 1,'),
    (_long_header, r'the version of an array is \(2, 0\); it must be \(1, 0\)'),
    (_many, 'its list of files, or a header, has 33,554,432 bytes; it must have at'),
    (_objects, 'an array holds object; it must hold numbers or text'),
    (_negative, r'the shape of an array is \(-1,\); it must not be negative'),
  ],
  ids=lambda value: getattr(value, '__name__', ''),
)
def test_sizes_are_refused_before_they_take_memory(tmp_path, make, message):
  path = make(tmp_path / 'a.npz')
  with (
    allocations.traced(below=_LITTLE),
    pytest.raises(files.NPZ_ERRORS, match=message),
  ):
    _read(path)


def test_a_name_that_is_there_twice_is_refused(tmp_path):
  one = [('a.npy', _header((1,)) + b'1')]
  with pytest.warns(UserWarning, match='Duplicate name'):
    _write(tmp_path / 'a.npz', one * 2)
  with pytest.raises(ValueError, match="'a' is in it twice"):
    _read(tmp_path / 'a.npz')


def _tar(*members):
  """An archive of (name, size that its header says, content)."""
  file = io.BytesIO()
  for name, size, content in members:
    member = tarfile.TarInfo(name)
    member.size = max(size, 0)
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    if size < 0:
      header[124:136] = b'\xff' * 4 + struct.pack('>q', size)
      header[148:156] = b' ' * 8
      header[148:156] = b'%06o\0 ' % sum(header[:512])
    file.write(bytes(header) + content + bytes(-len(content) % 512))
  return file.getvalue() + bytes(1024)


def test_the_members_of_a_tar_are_those_that_are_in_it(tmp_path):
  (tmp_path / 'a.tar').write_bytes(_tar(('x' * 200, 3, b'abc'), ('y', 0, b'')))
  listed = [(m.name, m.size) for m in archives.tar_members(tmp_path / 'a.tar')]
  assert listed == [('x' * 200, 3), ('y', 0)]


def test_a_tar_that_leads_back_ends(tmp_path):
  """Its second member would be the second member again, forever."""
  (tmp_path / 'a.tar').write_bytes(_tar(('x', 0, b''), ('y', -512, b'')))
  with pytest.raises(ValueError, match="'y' has a size of -512 bytes"):
    list(archives.tar_members(tmp_path / 'a.tar'))


def test_a_long_name_of_a_tar_takes_no_memory(tmp_path):
  member = tarfile.TarInfo('././@LongLink')
  member.type, member.size = tarfile.GNUTYPE_LONGNAME, 2**27
  with (tmp_path / 'a.tar').open('wb') as file:
    file.write(member.tobuf(tarfile.GNU_FORMAT))
    file.truncate(2**28)
  with (
    allocations.traced(below=_LITTLE),
    pytest.raises(ValueError, match='a header, has 134,217,728 bytes'),
  ):
    list(archives.tar_members(tmp_path / 'a.tar'))


def test_headers_of_a_tar_that_are_nested_without_end_are_refused(tmp_path):
  member = tarfile.TarInfo('p')
  member.type, member.size = tarfile.XHDTYPE, 0
  header = member.tobuf(tarfile.GNU_FORMAT)
  (tmp_path / 'a.tar').write_bytes(header * 3000 + bytes(1024))
  with pytest.raises(ValueError, match='nested too deeply'):
    list(archives.tar_members(tmp_path / 'a.tar'))
