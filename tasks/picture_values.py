"""A value for each picture of a folder: a column of a table, or its own folder."""

from collections.abc import Mapping, Sequence
import os
import pathlib
import posixpath

from tasks import cases
from tasks import column_names
from tasks import csv_rows
from tasks import manifest
from tasks import matching
from tasks import sources
from tasks import spellings

# In place of a column.
FOLDER = 'folder'


def read(
  path: str | os.PathLike[str],
  names: Sequence[str],
  column: str,
  table: str | os.PathLike[str] | None = None,
  own: Mapping[str, str] | None = None,
) -> list[str]:
  """Returns the value of each picture, '' for none.

  Args:
    path: The folder or .tar with the pictures.
    names: Their names in it.
    column: A column of the table, or `folder`.
    table: A CSV file that names pictures; None: the manifest among the pictures.
    own: The table's name of the column `image`; see `column_names.parse`.

  Raises:
    ValueError: There is no such table or column, a name in it may be that of several
      pictures, or two rows have different values for one picture.
  """
  if column == FOLDER:
    return [posixpath.dirname(name) for name in names]
  name, content = _table(pathlib.Path(path).expanduser(), table)
  header, rows = csv_rows.read(name, content)
  known = column_names.match(name, header, own, (column_names.IMAGE,)).named
  manifest.require(name, header, known, (column_names.IMAGE,))
  manifest.require(name, header, {each: each for each in header}, (column,))
  search = matching.Matching('' if table else name, names)
  found: dict[str, str] = {}
  for row in rows:
    file = search.file(row.cells[known[column_names.IMAGE]])
    value = spellings.clean(row.cells[column])
    value = '' if value in spellings.MISSING else value
    if found.setdefault(file, value) != value:
      raise ValueError(
        f'{name}, line {row.line}, gives {file} the {column} {value!r}, and a line '
        f'before it {found[file]!r}; it must be one.'
      )
  return [found.get(name, '') for name in names]


def _table(
  path: pathlib.Path, table: str | os.PathLike[str] | None
) -> tuple[str, bytes]:
  """Returns the name and the content of the table."""
  if table is not None:
    file = pathlib.Path(table).expanduser()
    if not file.is_file():
      raise ValueError(f'There is no table at {file}.')
    return str(file), file.read_bytes()
  source = sources.open_source(path)
  listed = sources.shallowest(source, cases.MANIFESTS)
  if listed is None:
    raise ValueError(
      f'{path} holds no {cases.MANIFESTS[0]}; a table whose column is shown must be '
      'given.'
    )
  return listed, source.read(listed)
