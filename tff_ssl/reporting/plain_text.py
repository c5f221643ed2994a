"""Tables of results: aligned plain text for a terminal."""

from collections.abc import Collection, Mapping, Sequence
import math
import numbers

from tff_ssl.computing import inert

# What an empty cell shows: a value that is missing or not a number.
_EMPTY = '-'


def text(
  rows: Sequence[Mapping[str, object]],
  columns: Sequence[str] | None = None,
  percent: Collection[str] = (),
  right: Collection[str] = (),
) -> str:
  """Lays out rows as aligned plain text, without a newline at the end.

  Args:
    rows: One mapping per row, from column to value.
    columns: Columns in their order; None for all, in the order they first appear.
    percent: Columns whose numbers are shares, shown as per cent.
    right: Columns of numbers that are text already, such as '0.5 ± 0.1'.

  Returns:
    A header, a rule and a line for each row. Columns of numbers are right-aligned.

  Raises:
    ValueError: `percent` or `right` names a column that the table does not have.
  """
  names, cells, is_right = _layout(rows, columns, percent, right)
  widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
  lines = [names, ['-' * width for width in widths], *cells]
  return '\n'.join(_join('  ', line, widths, is_right).rstrip() for line in lines)


def _layout(
  rows: Sequence[Mapping[str, object]],
  columns: Sequence[str] | None,
  percent: Collection[str],
  right: Collection[str],
) -> tuple[list[str], list[list[str]], list[bool]]:
  """Returns the header, the cells, and which columns are right-aligned."""
  if columns is None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
  names = list(columns)
  for argument, columns_of_argument in (('percent', percent), ('right', right)):
    for name in columns_of_argument:
      if name not in names:
        raise ValueError(
          f'{argument} has {name!r}; the columns are {", ".join(names)}.'
        )
  cells = [[_format(row.get(name), name in percent) for name in names] for row in rows]
  is_right = [
    name in right
    or all(_is_number(row[name]) for row in rows if row.get(name) is not None)
    for name in names
  ]
  return names, cells, is_right


def _is_number(value: object) -> bool:
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _format(value: object, percent: bool) -> str:
  """Formats one cell: whole numbers in full, others to four significant digits."""
  if value is None:
    return _EMPTY
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    return inert.line(value)
  if math.isnan(value):
    return _EMPTY
  if percent:
    return f'{100 * float(value):.1f}%'
  if isinstance(value, numbers.Integral):
    return str(int(value))
  return f'{float(value):.4g}'


def _join(
  separator: str, line: Sequence[str], widths: Sequence[int], right: Sequence[bool]
) -> str:
  return separator.join(
    cell.rjust(width) if is_right else cell.ljust(width)
    for cell, width, is_right in zip(line, widths, right, strict=True)
  )
