"""The columns of a Parquet file, each with a cell for each row.

A small file may hold much: a text that many rows share is stored once, and so is the
number of elements of a list. So texts are read as such a file has them, where cells of
one text are one object, and columns of lists or structures are refused.
"""

from collections.abc import Iterator, Sequence
import contextlib
import os
from typing import Any

from tasks import csv_rows
from tff_ssl.storage import memory

# Bytes that a cell takes as an object.
_A_CELL = 64


def header(path: str | os.PathLike[str]) -> list[str]:
  """Returns the columns of a file; reads no row.

  Args:
    path: The file.

  Raises:
    ValueError: The file is no Parquet, two columns have the same name or none, or the
      cells of one are no numbers, times or texts.
  """
  with _opened(path) as file:
    return list(file.schema_arrow.names)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, list[Any]], Sequence[int]]:
  """Returns the cells by column, and the number of each row, from 1.

  Args:
    path: The file.

  Raises:
    ValueError: As in `header`, or the file does not fit into memory or has no rows, or
      a time is none that Python knows.
  """
  with _opened(path) as file:
    held = file.metadata
    packed = sum(held.row_group(k).total_byte_size for k in range(held.num_row_groups))
    memory.check(2 * packed + _A_CELL * held.num_rows * held.num_columns, str(path))
    columns: dict[str, list[Any]] = {name: [] for name in file.schema_arrow.names}
    # A file may say that it has less than it has: each column is read by itself, and
    # measured before it becomes objects.
    for name, cells in columns.items():
      for batch in file.iter_batches(columns=[name]):
        memory.check(2 * batch.nbytes + _A_CELL * batch.num_rows, str(path))
        try:
          cells += _cells(batch.column(0))
        except (OverflowError, LookupError) as error:
          raise ValueError(
            f'{path} has a time in the column {name!r} that cannot be read: {error}; '
            'it must be of the years 1 to 9999 and of a known time zone.'
          ) from error
  count = max(map(len, columns.values()), default=0)
  if not count:
    raise ValueError(f'{path} has 0 rows; it must have columns and rows.')
  return columns, range(1, count + 1)


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Any]:
  """Opens a file whose columns have been checked; texts are read as dictionaries."""
  # Imported here: only such a file needs it.
  import pyarrow as pa
  from pyarrow import parquet

  try:
    schema = parquet.read_schema(path)
    csv_rows.check_names(str(path), schema.names)
    if (count := schema.names.count('')) > 1:
      raise ValueError(f'{path} has {count} columns without a name; one may have none.')
    for field in schema:
      if not _is_cell(field.type):
        raise ValueError(
          f'{path} has {field.type} in the column {field.name!r}; it must be numbers, '
          'times or texts.'
        )
    texts = [field.name for field in schema if _is_text(field.type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
      yield file
  except (pa.ArrowException, OSError) as error:
    raise ValueError(f'{path} cannot be read as Parquet: {error}') from error


def _is_cell(kind: Any) -> bool:
  """Returns whether a type is one of cells whose size does not depend on the file."""
  from pyarrow import types

  kind = kind.value_type if types.is_dictionary(kind) else kind
  is_number = types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
  return is_number or _is_text(kind)


def _is_text(kind: Any) -> bool:
  from pyarrow import types

  return (
    types.is_string(kind)
    or types.is_large_string(kind)
    or types.is_binary(kind)
    or types.is_large_binary(kind)
  )


def _cells(column: Any) -> list[Any]:
  """Returns the cells of an array; equal ones of a dictionary are one object."""
  import pyarrow as pa
  from pyarrow import types

  if not types.is_dictionary(column.type):
    return column.to_pylist()
  values = column.dictionary
  if _is_text(values.type):
    # Some programs write texts without saying that they are.
    values = values.cast(pa.large_string())
  distinct = values.to_pylist()
  return [None if k is None else distinct[k] for k in column.indices.to_pylist()]
