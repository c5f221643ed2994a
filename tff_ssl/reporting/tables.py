"""Tables for documents: plain text, Markdown, HTML and LaTeX, that fit a page."""

from collections.abc import Callable, Collection, Iterator, Sequence
import dataclasses
import re

import pandas as pd

from tff_ssl.computing import inert
from tff_ssl.reporting import plain_text

# Columns, and letters of a small font, that fit side by side on a page.
_WIDEST, _LETTERS, _BETWEEN = 7, 100, 2
_BOLD = 'Bold: the best mean of a column among rows of one budget and one norm'
# LaTeX: the environment, and the width of a line in digits of each size of the font,
# where the text of an article is 345 pt wide, and a column of its page 229 pt.
WIDTHS = {
  'page': ('table*', {r'\small': 74, r'\footnotesize': 81, r'\scriptsize': 88}),
  'column': (
    'table',
    {r'\small': 49, r'\footnotesize': 53, r'\scriptsize': 58, r'\tiny': 66},
  ),
}
# The smallest letters for the sake of a whole table; lines of these on a page, those
# that a line of a caption takes, and the rules of a part.
_READABLE, _TALLEST, _CAPTION_LINE, _RULES = r'\footnotesize', 57, 1.3, 2
# What lies between columns, and a deviation below the line, in digits.
_GAP, _SMALL = 1.5, 0.88
# Letters of Computer Modern that are not as wide as a digit, by their width in digits.
_LETTER_WIDTHS = {
  letter: width
  for letters, width in (
    ("ijl.,:;'|!I", 0.6),
    ('frst()[]- ', 0.8),
    ('bdhknpqu', 1.12),
    ('ABCDEFGHJKLNOPQRSTUVXYZÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝ', 1.55),
    ('mw%±+−=…@', 1.67),
    ('MW', 2.1),
  )
  for letter in letters
}
# A number, its deviation, its unit.
_NUMBER = re.compile(r'(-?)(\d[\d.]*(?:e[-+]\d+)?)(?: ± (\d[\d.]*(?:e[-+]\d+)?))?(.*)')
# The count of labels, and what is taken away, have lines of their own.
_BREAK = re.compile(
  r' (?=\d[\d.,]*(?: labels|%)(?: |$))|(?<=\d labels) |(?<=\d%) | (?=− )'
)


@dataclasses.dataclass(frozen=True)
class Table:
  """A table of text.

  Attributes:
    cells: The first column names the rows; the others are right-aligned.
    best: Positions (row, column) of cells that are written in bold.
    notes: Lines below it.
    heads: Columns that are no numbers, the first of which names the rows.
    caption: What it shows.
    naming: The first columns, which every part of a wide table has.
    also: What else is written in bold.
  """

  cells: pd.DataFrame
  best: Collection[tuple[int, int]] = ()
  notes: Sequence[str] = ()
  heads: int = 1
  caption: str = ''
  naming: int = 1
  also: str = ''


def text(table: Table) -> str:
  """Lays out a table for a terminal, without a newline at the end."""
  blocks = []
  for part in _parts(table):
    shown = _inert(part, inert.line, '{}')
    right = [k >= table.naming for k in range(len(shown.columns))]
    blocks.append(plain_text.aligned(list(shown), shown.to_numpy().tolist(), right))
  notes = '\n'.join(map(inert.line, filter(None, [table.caption, *table.notes])))
  return '\n\n'.join([*blocks, *([notes] if notes else [])])


def markdown(table: Table) -> str:
  """Lays out a table in Markdown, with a newline at the end."""
  blocks = [inert.markdown(table.caption)] if table.caption else []
  for part in _parts(table):
    shown = _inert(part, inert.markdown, '**{}**')
    align = ['left' if k < table.naming else 'right' for k in range(len(list(shown)))]
    blocks.append(shown.to_markdown(index=False, colalign=align, disable_numparse=True))
  blocks += [inert.markdown(note) for note in _notes(table)]
  return '\n\n'.join(blocks) + '\n'


def html(table: Table, kind: str = 'numbers') -> str:
  """Lays out a table in HTML, whole: a page scrolls.

  Args:
    table: The table.
    kind: The class of the element.
  """
  shown = _inert(table, inert.html, '<b>{}</b>')
  names, shown = shown.iloc[:, 0], shown.iloc[:, 1:]
  # The name of the columns is shown above those of the rows.
  shown.index, shown.columns.name = pd.Index([*names]), names.name
  # Every cell is escaped already, also where it is not seen.
  whole = shown.to_html(escape=False, border=0, justify='unset', classes=kind)
  notes = ''.join(f'\n<p class="note">{inert.html(n)}</p>' for n in _notes(table))
  above = f'<p class="note">{inert.html(table.caption)}</p>' if table.caption else ''
  return f'{above}<div class="wide">{whole}</div>{notes}'


def latex(table: Table, width: str, label: str) -> str:
  r"""Lays out a table in LaTeX that needs the package booktabs.

  Args:
    table: The table.
    width: `page`, also across both columns of a page that has two; or `column`, one of
      these. A table that is wider is several.
    label: What `\ref` names it.

  Returns:
    Environments to be included by `\input`.
  """
  environment, sizes = WIDTHS[width]
  said = ' '.join(map(inert.latex, [table.caption, *_notes(table)])).strip()
  set_, widths = _typeset(table)
  # The largest letters in which the table is whole, or else parts of it are.
  whole, naming, first = sum(widths), sum(widths[: table.naming]), _first(table)
  part = max(sum(widths[:first]), naming + max(widths[first:], default=0))
  large = [size for size in sizes if sizes[size] <= sizes[_READABLE]]
  small = [size for size in sizes if sizes[size] >= sizes[_READABLE]]
  fitting = [each for each in large if whole <= sizes[each]]
  fitting += [each for each in small if part <= sizes[each]]
  size = [*fitting, small[-1]][0]
  floats: list[list[str]] = []
  height, taken = 0.0, _CAPTION_LINE * len(said) / sizes[r'\small']
  # Parts as wide as each other, no more of them than needed.
  every = [_columns(table, n, len(widths), widths) for n in range(sizes[size], 0, -1)]
  parts = [each for each in every if len(each) == len(every[0])][-1]
  for each in _parts(set_, parts):
    lines = len(each.cells) + max(name.count(r'\\') for name in each.cells) + 1
    if not floats or height + lines + _RULES > _TALLEST:
      floats.append([])
      height = taken
    height += lines + _RULES
    align = 'l' * table.naming + 'r' * (len(each.cells.columns) - table.naming)
    hidden = each.cells.style.hide(axis='index')
    floats[-1].append(hidden.to_latex(column_format=align, hrules=True))
  return '\n'.join(
    f'\\begin{{{environment}}}[tb]\n\\centering\n'
    f'\\caption{{{said}{" (Continued.)" if k > 1 else ""}}}\n'
    f'\\label{{{label}{f":{k}" if k > 1 else ""}}}\n'
    f'\\smallskip{size}\\setlength{{\\tabcolsep}}{{3pt}}\n'
    + '\n\\medskip\n'.join(own)
    + f'\\end{{{environment}}}\n'
    for k, own in enumerate(floats, start=1)
  )


def _typeset(table: Table) -> tuple[Table, list[float]]:
  """Returns a table in LaTeX, and the widths of its columns in digits.

  Shares have their sign in the header, deviations are small, and headers are broken.
  """
  cells, names, widths = [], [], []
  for k, name in enumerate(table.cells):
    column = [*map(str, table.cells.iloc[:, k])]
    own: list[tuple[str, ...]] = [('', each, '', '') for each in column]
    if k >= table.naming:
      found = [_NUMBER.fullmatch(each) for each in column]
      own = [
        tuple(part or '' for part in match.groups()) if match else each
        for match, each in zip(found, own, strict=True)
      ]
    filled = [each for each in own if each[1] != plain_text.EMPTY]
    is_share = filled and all(unit.startswith('%') for *_, unit in filled)
    if is_share:
      own = [(*each, unit.removeprefix('%')) for *each, unit in own]
    width = max((_width(*each) for each in own), default=0)
    lines = [line for part in _BREAK.split(str(name)) for line in _wrap(part, width)]
    lines += ['(%)'] if is_share else []
    widths.append(_GAP + max(width, *map(_width, lines)))
    side = 'l' if k < table.naming else 'r'
    broken = r'\\'.join(map(inert.latex, lines))
    names.append(f'\\shortstack[{side}]{{{broken}}}' if len(lines) > 1 else broken)
    cells.append(
      [_set_number(each, (j, k) in table.best) for j, each in enumerate(own)]
    )
  frame = pd.DataFrame([*zip(*cells, strict=True)], columns=names, dtype=object)
  return dataclasses.replace(table, cells=frame, best=()), widths


def _wrap(text: str, width: float) -> Iterator[str]:
  """Yields lines of words that are no wider than the cells, if words are not."""
  line = ''
  # A count stays beside what it counts.
  for word in re.split(r'(?<!\d) ', text):
    longer = f'{line} {word}'.strip()
    # A sign begins no line, and ends none.
    is_between = line[-1:].isalnum() and word[:1].isalnum()
    if is_between and _width(longer) > width:
      yield line
      longer = word
    line = longer
  yield line


def _width(*parts: str) -> float:
  """Returns the width in digits of text, or of sign, number, deviation and unit."""
  if len(parts) == 1:
    return sum(_LETTER_WIDTHS.get(each, 1.0) for each in parts[0])
  sign, number, deviation, unit = map(_width, parts)
  small = _SMALL * (_LETTER_WIDTHS['±'] + deviation) if deviation else 0
  return 2 * sign + number + small + unit


def _set_number(parts: Sequence[str], is_best: bool) -> str:
  """Returns a cell in LaTeX, of sign, number, deviation and unit."""
  sign, number, small, unit = parts
  text = ('$-$' if sign else '') + inert.latex(number)
  deviation = f'$_{{\\pm {small}}}$' if small else ''
  space = ' ' if unit.startswith(' ') else ''
  mean = f'\\textbf{{{text}}}' if is_best else text
  return f'{mean}{deviation}{space}{inert.latex(unit)}'


def _notes(table: Table) -> list[str]:
  """Returns the notes below a table that has bold cells."""
  return [*table.notes, *([f'{_BOLD}{table.also}.'] if table.best else [])]


def _columns(
  table: Table, letters: float, widest: int, widths: Sequence[float]
) -> list[list[int]]:
  """Returns the columns of each part of a table.

  Args:
    table: The table.
    letters: The width of a part, unless its least columns are wider.
    widest: How many columns it may have.
    widths: Those of the columns.
  """
  naming = [*range(table.naming)]
  parts = [[*range(_first(table))]]
  for k in range(_first(table), len(widths)):
    wider = [*parts[-1], k]
    if len(wider) > widest or sum(widths[j] for j in wider) > letters:
      parts.append([*naming, k])
    else:
      parts[-1] = wider
  return parts


def _parts(
  table: Table, parts: Sequence[Sequence[int]] | None = None
) -> Iterator[Table]:
  """Yields tables that fit a page, each with the names of the rows that it has.

  Args:
    table: The table.
    parts: The columns of each; None: those that fit a page in a small font.
  """
  parts = parts or _columns(table, _LETTERS, _WIDEST, _widths(table))
  cells = table.cells
  numbers = cells != plain_text.EMPTY
  numbers.iloc[:, : table.heads] = False
  for columns in parts:
    own = cells.iloc[:, columns]
    filled = numbers.iloc[:, columns].any(axis=1)
    if columns is parts[0]:
      # A row without any number is shown there.
      filled |= ~numbers.any(axis=1)
    rows = [k for k, some in enumerate(filled) if some]
    best = {
      (rows.index(k), columns.index(c))
      for k, c in table.best
      if k in rows and c in columns
    }
    yield Table(own.iloc[rows], best)


def _first(table: Table) -> int:
  """Returns the columns that are always side by side: up to the first number."""
  return min(max(table.heads, table.naming) + 1, len(table.cells.columns))


def _widths(table: Table) -> list[int]:
  """Returns the letters of each column."""
  return [
    max(map(len, map(str, (name, *table.cells.iloc[:, k])))) + _BETWEEN
    for k, name in enumerate(table.cells)
  ]


def _inert(table: Table, escape: Callable[[object], str], bold: str) -> pd.DataFrame:
  """Returns a table whose cells and header do nothing in a medium."""
  rows = [
    [
      bold.format(escape(cell)) if (k, j) in table.best else escape(cell)
      for j, cell in enumerate(row)
    ]
    for k, row in enumerate(table.cells.to_numpy())
  ]
  return pd.DataFrame(rows, columns=[*map(escape, table.cells.columns)], dtype=object)
