"""Ways in which people's lists of photographs are broken; see `ways`."""

from collections.abc import Callable
import zipfile

from tests.intake import ways
from tests.intake import whole


def _old_encoding(data: whole.Folder) -> None:
  data.rows[0][1] = data.rows[1][1] = 'Müller'
  data.list_all(encoding='cp1252')


def _blank_rows(data: whole.Folder) -> None:
  data.rows += [['', '', '']] * 3
  data.list_all()


def _spreadsheet(data: whole.Folder) -> None:
  data.only('.')
  with zipfile.ZipFile(data.path / 'manifest.xlsx', 'w') as archive:
    archive.writestr('xl/workbook.xml', '<workbook/>')


def _zipped(data: whole.Folder) -> None:
  data.only('../data.zip')
  with zipfile.ZipFile(data.path.with_name('data.zip'), 'w') as archive:
    archive.write(data.path / data.names[0], data.names[0])


def _too_many_cells(data: whole.Folder) -> None:
  text = (data.path / 'manifest.csv').read_text()
  data.write('manifest.csv', text.replace('p00', 'Smith, Jane', 1).encode())


def _column_of_splits(
  header: str, train: str, test: str
) -> Callable[[whole.Folder], None]:
  """Returns what adds a column, by which every other client trains."""

  def apply(data: whole.Folder) -> None:
    for k, row in enumerate(data.rows):
      trains = k // 2 % 2 == 0
      row.append(train if trains else test)
      stem = f'{k:03d}'
      data.meant[stem] = (*data.meant[stem][:2], trains)
    data.list_all(header)

  return apply


def _named(change: Callable[[str], str]) -> Callable[[whole.Folder], None]:
  """Returns what changes the names of files in the manifest."""

  def apply(data: whole.Folder) -> None:
    for row in data.rows:
      row[0] = change(row[0])
    data.list_all()

  return apply


def _not_listed(data: whole.Folder) -> None:
  data.rows.pop()
  data.list_all()


def _listed_twice(data: whole.Folder) -> None:
  data.rows.append([data.names[0], 'p09', 'cat'])
  data.list_all()


def _cells(column: int, *values: str) -> Callable[[whole.Folder], None]:
  """Returns what writes values into the first cells of a column."""

  def apply(data: whole.Folder) -> None:
    for row, value in zip(data.rows, values, strict=False):
      row[column] = value
    data.list_all()

  return apply


def _missing_labels(data: whole.Folder) -> None:
  _cells(2, 'NA', 'nan', 'None', '#N/A', 'NaN')(data)
  for k in range(5):
    stem = f'{k:03d}'
    data.meant[stem] = ('', *data.meant[stem][1:])


def _copy_of_another_client(data: whole.Folder) -> None:
  data.write('cat/copy.jpg', data.read(0))
  data.rows.append(['cat/copy.jpg', 'p02', 'cat'])
  data.list_all()


def _client_in_two_splits(data: whole.Folder) -> None:
  for k, row in enumerate(data.rows):
    row.append('test' if k % 2 else 'train')
  data.list_all('image,client_id,label,split')


# Read by the task `cases`, with a manifest.
LISTS = (
  ways.Way(
    'A manifest with semicolons, as Excel saves it in Europe',
    lambda data: data.list_all(separator=';'),
  ),
  ways.Way('A manifest with tabs', lambda data: data.list_all(separator='\t')),
  ways.Way(
    'A manifest in UTF-16, with tabs: "Unicode text" of Excel',
    lambda data: data.list_all(separator='\t', encoding='utf-16'),
  ),
  ways.Way(
    'A manifest with a byte order mark and the line ends of Windows',
    lambda data: data.list_all(encoding='utf-8-sig', end='\r\n'),
  ),
  ways.Way('A manifest in Windows-1252, with an umlaut', _old_encoding),
  ways.Way('Rows of commas only at the end of a manifest', _blank_rows),
  ways.Way('A spreadsheet manifest.xlsx instead of a .csv', _spreadsheet),
  ways.Way('All of it as a .zip', _zipped),
  ways.Way(
    'A second manifest in a folder',
    ways.files(b'image,client_id\n000.jpg,other\n', 'cat/manifest.csv'),
    loses=True,
  ),
  ways.Way('A cell with a comma and without quotes', _too_many_cells),
  ways.Way(
    'Columns named Label and Split',
    _column_of_splits('image,client_id,Label,Split', 'train', 'test'),
  ),
  ways.Way(
    'Columns named Photo, Patient ID and Diagnosis',
    lambda data: data.list_all('Photo,Patient ID,Diagnosis'),
  ),
  ways.Way(
    'Splits named Train and TEST',
    _column_of_splits('image,client_id,label,split', 'Train', 'TEST'),
  ),
  ways.Way(
    r'Names of files with backslashes: cat\000.jpg',
    _named(lambda name: name.replace('/', '\\')),
  ),
  ways.Way(
    'Names of files without suffixes', _named(lambda name: name.removesuffix('.jpg'))
  ),
  ways.Way(
    'Names of files without their folders',
    _named(lambda name: name.rpartition('/')[2]),
  ),
  ways.Way('Names of files in capitals, CAT/000.JPG', _named(str.upper)),
  ways.Way(
    'A photograph that is listed and not there',
    lambda data: (data.path / data.names[0]).unlink(),
  ),
  ways.Way('A photograph that is there and not listed', _not_listed),
  ways.Way('A photograph listed twice, for two clients', _listed_twice),
  ways.Way(
    'Labels that are missing, as NA (R), nan and None (pandas), N/A (Excel)',
    _missing_labels,
  ),
  ways.Way('Labels cat and Cat', _cells(2, 'Cat', 'dog', 'Cat')),
  ways.Way(
    'Clients 001 and 1, of which a spreadsheet removed the zeros',
    _cells(1, '001', '001', '1', '1'),
  ),
  ways.Way(
    'Clients 17 and 17.0, as pandas writes a column with gaps',
    _cells(1, '17', '17', '17.0', '17.0'),
  ),
  ways.Way(
    'Clients 120000 and 1.2E+05, as a spreadsheet shows them',
    _cells(1, '120000', '120000', '1.2E+05', '1.2E+05'),
  ),
  ways.Way(
    'A client with a character of no width in its name', _cells(1, 'p00', 'p00\u200b')
  ),
  ways.Way('The same photograph for two clients', _copy_of_another_client),
  ways.Way('A client in train and in test', _client_in_two_splits),
)
