"""Rows of CSV files."""

import pytest

from tasks import rows


def test_cells_by_column_and_line():
  """Blanks, a byte order mark, quoted cells of two lines, and empty lines."""
  content = '\ufeffimage , who\n a.png,p 1 \n\n"b\nc",\nd,e,,\n'.encode()
  columns, found = rows.read('table.csv', content)
  assert columns == ['image', 'who']
  assert found == [
    (2, {'image': 'a.png', 'who': 'p 1'}),
    (5, {'image': 'b\nc', 'who': ''}),
    (6, {'image': 'd', 'who': 'e'}),
  ]
  assert rows.header('table.csv', content) == columns
  assert rows.read('table.csv', b'') == ([], [])


@pytest.mark.parametrize(
  ('content', 'message'),
  [
    (b'a,b\n1,2\n\n1,2,x\n', 'table.csv, line 4, has 3 cells; the header has 2: a, b'),
    (b'a,b\n1\n', 'table.csv, line 2, has 1 cells; the header has 2: a, b'),
    (b'a,b, a\n1,2,3\n', "table.csv has the column 'a' twice"),
    (b'a,b\n1,\xff\n', 'table.csv is not a UTF-8 text file'),
    (b'a,b\n1,' + 140_000 * b'x', 'table.csv, line 2: field larger than field limit'),
  ],
)
def test_what_is_no_such_table_is_named(content, message):
  with pytest.raises(ValueError, match=message):
    rows.read('table.csv', content)
