"""Rows of CSV files."""

import csv
import io
import time

import pytest

from tasks import csv_rows


def test_cells_by_column_and_line():
  """Blanks, a byte order mark, quoted cells of two lines, and empty lines."""
  content = '\ufeffimage , who\n a.png,p 1 \n\n"b\nc",\nd,e,,\n'.encode()
  columns, found = csv_rows.read('table.csv', content)
  assert columns == ['image', 'who']
  assert found == [
    (2, {'image': 'a.png', 'who': 'p 1'}),
    (5, {'image': 'b\nc', 'who': ''}),
    (6, {'image': 'd', 'who': 'e'}),
  ]
  assert csv_rows.header('table.csv', content) == columns
  assert csv_rows.read('table.csv', b'') == ([], [])


@pytest.mark.parametrize(
  ('content', 'message'),
  [
    (b'a,b\n1,2\n\n1,2,x\n', 'table.csv, line 4, has 3 cells; the header has 2: a, b'),
    (b'a,b\n1\n', 'table.csv, line 2, has 1 cells; the header has 2: a, b'),
    (b'a,b, a\n1,2,3\n', "table.csv has the column 'a' twice"),
    (b'a,b\n1,\xff\n', 'table.csv is not a UTF-8 text file: invalid start byte at lin'),
    ('a,b\n1,2\n'.encode('utf-16-le'), 'table.csv is not a text file, it has NUL char'),
    (b'a,b\n1,' + 140_000 * b'x', 'table.csv, line 2: field larger than field limit'),
    (b'sep=,\na,b\n1,2,3\n', 'table.csv, line 3, has 3 cells; the header has'),
    (b'a,b,\n1,2,3\n', 'has 3 cells; the header has 2'),
    # A quotation mark that is never closed.
    (b'a,b\n1,2\n3,"4\n5,6\n', 'lines 3 to 4, has rows within one cell'),
    (b'a,"b\n1,2', 'lines 1 to 2, has rows within one cell'),
  ],
)
def test_files_that_are_not_tables_are_named(content, message):
  with pytest.raises(ValueError, match=message):
    csv_rows.read('table.csv', content)


_TABLE = [['image', 'who, or what'], ['é.png', 'p;1'], ['b c.png', 'say "x"']]


def _written(separator, end, quoting=csv.QUOTE_MINIMAL):
  file = io.StringIO(newline='')
  csv.writer(file, delimiter=separator, lineterminator=end, quoting=quoting).writerows(
    [*_TABLE[:2], ['', ''], *_TABLE[2:], ['', '']]
  )
  return file.getvalue()


@pytest.mark.parametrize('separator', [',', ';', '\t'])
@pytest.mark.parametrize('end', ['\n', '\r\n', '\r'])
@pytest.mark.parametrize('encoding', ['utf-8', 'utf-8-sig', 'utf-16'])
def test_spreadsheet_exports_are_read(separator, end, encoding):
  """With rows that are blank but for their separators, also first and last."""
  for text in (
    _written(separator, end),
    _written(separator, end, csv.QUOTE_ALL),
    f'{separator}{end}{_written(separator, end)}',
    f'sep={separator}{end}{_written(separator, end)}',
  ):
    columns, found = csv_rows.read('table.csv', text.encode(encoding))
    assert columns == _TABLE[0]
    assert [list(row.cells.values()) for row in found] == _TABLE[1:]
    assert csv_rows.header('table.csv', text.encode(encoding)) == columns


def test_lines_are_counted_from_the_first_of_the_file():
  _, found = csv_rows.read('t.csv', b'sep=;\r\na;b\r\n;\r\n1;2\r\n')
  assert found == [(4, {'a': '1', 'b': '2'})]


def test_the_header_alone_decides_what_separates_cells():
  assert csv_rows.header('t.csv', b'a;b,c\n') == ['a;b', 'c']
  assert csv_rows.header('t.csv', b'a;b;c,d\n1,2;3,4;5,6\n') == ['a', 'b', 'c,d']
  assert csv_rows.header('t.csv', b'"a;b";"c;d"\n') == ['a;b', 'c;d']
  # Columns without a name at the right end are none.
  assert csv_rows.read('t.csv', b'a;b;;\n1;2;;\n')[0] == ['a', 'b']


@pytest.mark.parametrize('separator', [',', ';', '\t'])
@pytest.mark.parametrize('end', ['\n', '\r\n', '\r'])
@pytest.mark.parametrize('column', [0, 1, 2])
def test_a_quotation_mark_that_swallows_rows_is_named(separator, end, column):
  """In whatever column, with blank lines, and with notes that hold separators."""
  table = [[f'{k}.png', f'p{k}', f'{k} cm{separator * (k == 4)}'] for k in range(1, 7)]
  table[1][column] = '"' + table[1][column]
  table[4][column] += '"'
  lines = [separator.join(row) for row in [['image', 'who', 'note'], *table]]
  lines.insert(4, '')
  with pytest.raises(
    ValueError,
    match=r't\.csv, lines 3 to 7, has rows within one cell; is a quotation mark not cl',
  ):
    csv_rows.read('t.csv', end.join(lines).encode())


def test_a_note_may_have_several_lines_and_some_separators():
  note = 'large, flat, red\nitching, growing\nsince May'
  _, found = csv_rows.read('t.csv', f'image,who,note\n1.png,p,"{note}"\n'.encode())
  assert found == [(4, {'image': '1.png', 'who': 'p', 'note': note})]
  # With one column there is nothing to count.
  assert csv_rows.read('t.csv', b'note\n"a\nb"\n')[1] == [(3, {'note': 'a\nb'})]


def test_wide_tables_are_read_in_linear_time_and_named_in_a_few_words():
  """Comparing each of 15,000 columns with each other one took four seconds."""
  header = ','.join(f'ENSG{k:011d}' for k in range(15_000))
  start = time.process_time()
  message = r'line 2, has 1 cells; the header has 15000: ENSG.* and 14,980 more'
  with pytest.raises(ValueError, match=message) as error:
    csv_rows.read('table.csv', f'{header}\n1\n'.encode())
  assert time.process_time() - start < 1
  assert len(str(error.value)) < 500
