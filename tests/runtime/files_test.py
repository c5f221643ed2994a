"""Folders that can be made, and files that are whole."""

import pytest

from tff_ssl.runtime import files


def test_a_folder_that_can_be_made_is_not_left(tmp_path):
  files.check_folder(tmp_path / 'a' / 'b')
  assert not any(tmp_path.iterdir())
  (tmp_path / 'there').mkdir()
  (tmp_path / 'there' / 'file').touch()
  files.check_folder(tmp_path / 'there')
  assert (tmp_path / 'there' / 'file').exists()


@pytest.mark.parametrize('path', ['file', 'file/run', 'file/a/b'])
def test_a_folder_within_a_file_is_refused(tmp_path, path):
  (tmp_path / 'file').touch()
  with pytest.raises(OSError, match=r'(File exists|Not a directory).*/file'):
    files.check_folder(tmp_path / path)
  assert [each.name for each in tmp_path.iterdir()] == ['file']
