"""The table of a comparison for documents: Markdown and LaTeX."""

from collections.abc import Collection, Mapping, Sequence

# Characters that mean something else in LaTeX.
_LATEX = {
  '\\': r'\textbackslash{}',
  '{': r'\{',
  '}': r'\}',
  '%': r'\%',
  '&': r'\&',
  '#': r'\#',
  '$': r'\$',
  '_': r'\_',
  '~': r'\textasciitilde{}',
  '^': r'\textasciicircum{}',
  '±': r'$\pm$',
  '…': r'\ldots{}',
}
_FIRST = (
  '% Needs \\usepackage{booktabs}. Mean and sample deviation over seeds; of one run, '
  'over draws of few labels.'
)

Cells = Sequence[Mapping[str, str]]
# The bold cells: position of the row, and name of the column.
Best = Collection[tuple[int, str]]


def markdown(rows: Cells, best: Best = ()) -> str:
  """Lays out a table in Markdown, with a newline at the end.

  Args:
    rows: From `columns.cells`; the first column is text, the others are numbers.
    best: From `columns.best`.
  """
  names = list(rows[0])
  lines = [list(map(_markdown, names)), ['---', *('---:' for _ in names[1:])]]
  lines += [
    [
      f'**{_markdown(row[name])}**' if (k, name) in best else _markdown(row[name])
      for name in names
    ]
    for k, row in enumerate(rows)
  ]
  return ''.join(f'| {" | ".join(line)} |\n' for line in lines)


def latex(rows: Cells, best: Best = ()) -> str:
  """Lays out a table in LaTeX with the package booktabs; arguments as in `markdown`."""
  names = list(rows[0])
  lines = [
    ' & '.join(
      rf'\textbf{{{_latex(row[name])}}}' if (k, name) in best else _latex(row[name])
      for name in names
    )
    for k, row in enumerate(rows)
  ]
  parts = [
    _FIRST,
    rf'\begin{{tabular}}{{l{"r" * (len(names) - 1)}}}',
    r'\toprule',
    rf'{" & ".join(map(_latex, names))} \\',
    r'\midrule',
    *(rf'{line} \\' for line in lines),
    r'\bottomrule',
    r'\end{tabular}',
  ]
  return '\n'.join(parts) + '\n'


def _markdown(text: str) -> str:
  return text.replace('|', r'\|').replace('*', r'\*')


def _latex(text: str) -> str:
  return ''.join(_LATEX.get(letter, letter) for letter in text)
