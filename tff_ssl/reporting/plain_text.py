"""Numbers and tables as aligned plain text for a terminal."""

from collections.abc import Collection, Mapping, Sequence
import math
import numbers

from tff_ssl.computing import inert
from tff_ssl.evaluation import method_names
from tff_ssl.settings import parts

# What an empty cell shows: a value that is missing or not a number.
EMPTY = '-'
# The last two are of masks: intersection over union, and the share that is found.
_SHARES = (*method_names.SCORES, method_names.AUC, 'recall', 'iou', 'found')
# Recall of retrieval, with its k following.
RECALL_AT = 'recall_at_'
_BYTES = 'bytes'
# In names of numbers on another task than the run's.
_TRANSFER = 'transfer/'
_UNITS = ('B', 'kB', 'MB', 'GB', 'TB', 'PB')


def is_share(name: str) -> bool:
  """Returns whether a number of this name is a share of 1, of which more is better."""
  words = name.split('/')
  return (
    any(word in _SHARES for word in words)
    or words[-1].startswith(RECALL_AT)
    or method_names.way(name) == parts.SHARE
  )


def title(name: str) -> str:
  """Returns a number's name in print: 'linear 10%' for linear/10%/accuracy."""
  short = name.removesuffix(f'/{method_names.ACCURACY}').replace(
    method_names.BALANCED, 'balanced'
  )
  return short.replace('/', ' ').replace('_', ' ')


def class_name(name: str, position: int | str, classes: Sequence[str]) -> str:
  """Returns the name of a class; '' if it is not known.

  Args:
    name: Name of a number that is of this class, which is not known on another task
      than the run's.
    position: Position of the class; of the name of a number, perhaps a stranger's.
    classes: Names of the classes of the run's task; empty: they are not known.
  """
  digits = str(position)
  # Python reads no number of 4,301 digits.
  if _TRANSFER in name or not digits.isdecimal() or len(digits) > 20:
    return ''
  return classes[int(digits)] if int(digits) < len(classes) else ''


def decimals_of(deviations: Collection[float]) -> int | None:
  """Returns the decimals of numbers in one column; None without a deviation.

  The largest deviation has two digits. The smallest has one, or more would be written
  than the others bear.
  """
  places = [-math.floor(math.log10(d)) for d in deviations if 0 < d < math.inf]
  if not places:
    return None
  return max(0, min(places) + 1, min(max(places), min(places) + 2))


def number(
  name: str, mean: float, deviation: float, decimals: int | None = None
) -> str:
  """Writes a mean and, unless it is NaN, a deviation, in the unit of the number.

  Bytes that do not vary have no deviation.

  Args:
    name: The name of the number.
    mean: The mean.
    deviation: Its deviation.
    decimals: Of a number without a unit; None: two digits of the deviation.
  """
  unit, factor = '', 1.0
  if is_share(name):
    unit, factor, decimals = '%', 100.0, 1
  elif name == _BYTES:
    power = min(int(math.log10(max(mean, 1)) // 3), len(_UNITS) - 1)
    decimals = None
    unit, factor = f' {_UNITS[power]}', 1000.0**-power
  mean, deviation = factor * mean, factor * deviation
  if decimals is None:
    decimals = decimals_of([deviation])
  text = f'{mean:.4g}' if decimals is None else f'{mean:.{decimals}f}'
  if math.isfinite(deviation) and (deviation or name != _BYTES):
    text += f' ± {deviation:.{decimals or 0}f}'
  return text + unit


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
  names = list(columns or dict.fromkeys(name for row in rows for name in row))
  for argument, those in (('percent', percent), ('right', right)):
    for name in those:
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
  return aligned(names, cells, is_right)


def aligned(
  names: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]
) -> str:
  """Lays out a table of text, without a newline at the end.

  Args:
    names: Names of the columns.
    cells: Rows, all inert.
    right: Which columns are right-aligned.
  """
  widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
  lines = [names, ['-' * width for width in widths], *cells]
  return '\n'.join(
    '  '.join(
      cell.rjust(width) if is_right else cell.ljust(width)
      for cell, width, is_right in zip(line, widths, right, strict=True)
    ).rstrip()
    for line in lines
  )


def _is_number(value: object) -> bool:
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _format(value: object, percent: bool) -> str:
  """Formats one cell: whole numbers in full, others to four significant digits."""
  if value is None:
    return EMPTY
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    return inert.line(value)
  if math.isnan(value):
    return EMPTY
  if percent:
    return f'{100 * float(value):.1f}%'
  if isinstance(value, numbers.Integral):
    return str(int(value))
  return f'{float(value):.4g}'
