"""Ways in which people's lists of photographs are broken; see `ways`."""

from collections.abc import Callable
import zipfile

from tests.intake import ways
from tests.intake import whole

_cases = ways.of('cases')

# How a program writes a table.


@_cases
def semicolons(data: whole.Folder) -> None:
  """A manifest with semicolons, as Excel saves it in Europe."""
  data.list_all(separator=';')


@_cases
def tabs(data: whole.Folder) -> None:
  """A manifest with tabs."""
  data.list_all(separator='\t')


@_cases
def utf_16(data: whole.Folder) -> None:
  """A manifest in UTF-16, with tabs: "Unicode text" of Excel."""
  data.list_all(separator='\t', encoding='utf-16')


@_cases
def windows(data: whole.Folder) -> None:
  """A manifest with a byte order mark and the line ends of Windows."""
  data.list_all(encoding='utf-8-sig', end='\r\n')


@_cases
def old_encoding(data: whole.Folder) -> None:
  """A manifest in Windows-1252, with an umlaut."""
  data.rows[0][1] = data.rows[1][1] = 'Müller'
  data.list_all(encoding='cp1252')


@_cases
def blank_rows(data: whole.Folder) -> None:
  """Rows of commas only at the end of a manifest."""
  data.rows += [['', '', '']] * 3
  data.list_all()


@_cases
def xlsx(data: whole.Folder) -> None:
  """A spreadsheet manifest.xlsx instead of a .csv."""
  data.only('.')
  with zipfile.ZipFile(data.path / 'manifest.xlsx', 'w') as archive:
    archive.writestr('xl/workbook.xml', '<workbook/>')


@_cases
def zipped(data: whole.Folder) -> None:
  """All of it as a .zip."""
  data.only('../data.zip')
  with zipfile.ZipFile(data.path.with_name('data.zip'), 'w') as archive:
    archive.write(data.path / data.names[0], data.names[0])


@ways.of('cases', loses=True)
def two_manifests(data: whole.Folder) -> None:
  """A second manifest in a folder."""
  data.write('cat/manifest.csv', b'image,client_id\n000.jpg,other\n')


@_cases
def too_many_cells(data: whole.Folder) -> None:
  """A cell with a comma and without quotes."""
  text = (data.path / 'manifest.csv').read_text()
  data.write('manifest.csv', text.replace('p00', 'Smith, Jane', 1).encode())


# Columns.


@_cases
def columns_by_case(data: whole.Folder) -> None:
  """Columns named Label and Split."""
  for k, row in enumerate(data.rows):
    trains = k // 2 % 2 == 0
    row.append('train' if trains else 'test')
    stem = f'{k:03d}'
    data.meant[stem] = (*data.meant[stem][:2], trains)
  data.list_all('image,client_id,Label,Split')


@_cases
def own_columns(data: whole.Folder) -> None:
  """Columns named Photo, Patient ID and Diagnosis."""
  data.list_all('Photo,Patient ID,Diagnosis')


@_cases
def splits_by_case(data: whole.Folder) -> None:
  """Splits named Train and TEST."""
  for k, row in enumerate(data.rows):
    trains = k // 2 % 2 == 0
    row.append('Train' if trains else 'TEST')
    stem = f'{k:03d}'
    data.meant[stem] = (*data.meant[stem][:2], trains)
  data.list_all('image,client_id,label,split')


# Names of files.


@_cases
def backslashes(data: whole.Folder) -> None:
  r"""Names of files with backslashes: cat\000.jpg."""
  _rename(data, lambda name: name.replace('/', '\\'))


@_cases
def without_suffixes(data: whole.Folder) -> None:
  """Names of files without suffixes."""
  _rename(data, lambda name: name.removesuffix('.jpg'))


@_cases
def without_folders(data: whole.Folder) -> None:
  """Names of files without their folders."""
  _rename(data, lambda name: name.rpartition('/')[2])


@_cases
def other_case(data: whole.Folder) -> None:
  """Names of files in capitals, CAT/000.JPG."""
  _rename(data, str.upper)


def _rename(data: whole.Folder, change: Callable[[str], str]) -> None:
  for row in data.rows:
    row[0] = change(row[0])
  data.list_all()


@_cases
def missing_file(data: whole.Folder) -> None:
  """A photograph that is listed and not there."""
  (data.path / data.names[0]).unlink()


@_cases
def not_listed(data: whole.Folder) -> None:
  """A photograph that is there and not listed."""
  data.rows.pop()
  data.list_all()


@_cases
def listed_twice(data: whole.Folder) -> None:
  """A photograph listed twice, for two clients."""
  data.rows.append([data.names[0], 'p09', 'cat'])
  data.list_all()


# Cells.


def _cells(data: whole.Folder, column: int, *values: str) -> None:
  """Writes values into the first cells of a column, and what is meant by them."""
  for k, value in enumerate(values):
    data.rows[k][column] = value
  data.list_all()


@_cases
def missing_labels(data: whole.Folder) -> None:
  """Labels that are missing, as NA (R), nan and None (pandas), N/A (Excel)."""
  _cells(data, 2, 'NA', 'nan', 'None', '#N/A', 'NaN')
  for k in range(5):
    stem = f'{k:03d}'
    data.meant[stem] = ('', *data.meant[stem][1:])


@_cases
def labels_by_case(data: whole.Folder) -> None:
  """Labels cat and Cat."""
  _cells(data, 2, 'Cat', 'dog', 'Cat')


@_cases
def leading_zeros(data: whole.Folder) -> None:
  """Clients 001 and 1, of which a spreadsheet removed the zeros."""
  _cells(data, 1, '001', '001', '1', '1')


@_cases
def decimals(data: whole.Folder) -> None:
  """Clients 17 and 17.0, as pandas writes a column with gaps."""
  _cells(data, 1, '17', '17', '17.0', '17.0')


@_cases
def exponents(data: whole.Folder) -> None:
  """Clients 120000 and 1.2E+05, as a spreadsheet shows them."""
  _cells(data, 1, '120000', '120000', '1.2E+05', '1.2E+05')


@_cases
def invisible(data: whole.Folder) -> None:
  """A client with a character of no width in its name."""
  _cells(data, 1, 'p00', 'p00\u200b')


@_cases
def copy_of_another_client(data: whole.Folder) -> None:
  """The same photograph for two clients."""
  data.write('cat/copy.jpg', data.read(0))
  data.rows.append(['cat/copy.jpg', 'p02', 'cat'])
  data.list_all()


@_cases
def client_in_two_splits(data: whole.Folder) -> None:
  """A client in train and in test."""
  for k, row in enumerate(data.rows):
    row.append('test' if k % 2 else 'train')
  data.list_all('image,client_id,label,split')
