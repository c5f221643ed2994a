import pytest

from tasks import picture_values

_NAMES = ('a.png', 'deep/b.png', 'deep/c.png')
_ROWS = 'image,label,Site\na.png,cat,x\ndeep/b,NA,y\nother.png,dog,z\n'


@pytest.fixture
def folder(tmp_path):
  (tmp_path / 'deep').mkdir()
  for name in _NAMES:
    (tmp_path / name).write_bytes(b'')
  (tmp_path / 'manifest.csv').write_text(_ROWS)
  return tmp_path


def test_values_are_those_of_the_manifest_by_picture(folder):
  assert picture_values.read(folder, _NAMES, 'label') == ['cat', '', '']
  assert picture_values.read(folder, _NAMES, 'Site') == ['x', 'y', '']
  assert picture_values.read(folder, _NAMES, 'folder') == ['', 'deep', 'deep']


def test_a_table_elsewhere_may_name_pictures_as_it_likes(folder, tmp_path_factory):
  table = tmp_path_factory.mktemp('else') / 'table.csv'
  table.write_text('Photo,grade\nc,3\na.PNG,1\n')
  own = {'image': 'Photo'}
  found = picture_values.read(folder, _NAMES, 'grade', table, own)
  assert found == ['1', '', '3']


@pytest.mark.parametrize(
  ('column', 'rows', 'said'),
  [
    ('age', _ROWS, 'manifest.csv lacks the column age; it has image, label, Site'),
    ('label', 'name,label\na,b\n', 'manifest.csv lacks the column image; it has'),
    (
      'label',
      _ROWS + 'a.png,dog,x\n',
      "line 5, gives a.png the label 'dog', and a line before it 'cat'",
    ),
  ],
)
def test_a_table_without_one_value_for_each_is_refused(folder, column, rows, said):
  (folder / 'manifest.csv').write_text(rows)
  with pytest.raises(ValueError, match=said):
    picture_values.read(folder, _NAMES, column)
