"""Tables for documents: plain text, Markdown, HTML and LaTeX, that fit a page."""

from collections.abc import Callable, Collection, Iterator, Sequence
import dataclasses

import pandas as pd

from tff_ssl.computing import inert
from tff_ssl.reporting import plain_text

# Columns, and letters of a small font, that fit side by side on a page.
_WIDEST, _LETTERS, _BETWEEN = 7, 100, 2
_BOLD = 'Bold: the best mean of a column among rows of one budget and one norm.'
# LaTeX: the environment, and the letters of a line in each size of the font, where the
# text of an article is 345 pt wide, and a column of its page 229 pt.
WIDTHS = {
  'page': ('table*', {r'\small': 75, r'\footnotesize': 81, r'\scriptsize': 88}),
  'column': ('table', {r'\footnotesize': 53, r'\scriptsize': 58, r'\tiny': 66}),
}


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
  """

  cells: pd.DataFrame
  best: Collection[tuple[int, int]] = ()
  notes: Sequence[str] = ()
  heads: int = 1
  caption: str = ''
  naming: int = 1


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
  # The largest letters in which the table is whole, or else the smallest.
  needed = sum(_widths(table))
  size = next((size for size, most in sizes.items() if needed <= most), [*sizes][-1])
  naming = table.naming
  blocks = []
  for k, part in enumerate(_parts(table, sizes[size]), start=1):
    shown = _inert(part, inert.latex, r'\textbf{{{}}}').style.hide(axis='index')
    whole = shown.to_latex(
      column_format='l' * naming + 'r' * (len(part.cells.columns) - naming),
      hrules=True,
      position='tb',
      position_float='centering',
      caption=said if k == 1 else 'Continued.',
      label=label if k == 1 else f'{label}:{k}',
      environment=environment,
    )
    begin = r'\begin{tabular}'
    small = f'\\smallskip{size}\\setlength{{\\tabcolsep}}{{3pt}}\n'
    blocks.append(whole.replace(begin, small + begin, 1))
  return '\n'.join(blocks)


def _notes(table: Table) -> list[str]:
  """Returns the notes below a table that has bold cells."""
  return [*table.notes, *([_BOLD] if table.best else [])]


def _parts(table: Table, letters: int = _LETTERS) -> Iterator[Table]:
  """Yields tables that fit a page, each with the names of the rows that it has."""
  cells, widths = table.cells, _widths(table)
  naming = [*range(table.naming)]
  parts = [[*naming, table.naming]]
  for k in range(table.naming + 1, len(widths)):
    wider = [*parts[-1], k]
    if len(wider) > _WIDEST or sum(widths[j] for j in wider) > letters:
      parts.append([*naming, k])
    else:
      parts[-1] = wider
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
