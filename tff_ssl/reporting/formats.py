"""The table of a comparison for documents: Markdown and LaTeX."""

from collections.abc import Collection, Mapping, Sequence

from tff_ssl.computing import inert

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
    rows: From `comparison_columns.cells`; the first column is text, the others are
      numbers.
    best: From `comparison_columns.best`.
  """
  names = list(rows[0])
  lines = [list(map(inert.markdown, names)), ['---', *('---:' for _ in names[1:])]]
  lines += [
    [
      f'**{inert.markdown(row[name])}**'
      if (k, name) in best
      else inert.markdown(row[name])
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
      rf'\textbf{{{inert.latex(row[name])}}}'
      if (k, name) in best
      else inert.latex(row[name])
      for name in names
    )
    for k, row in enumerate(rows)
  ]
  parts = [
    _FIRST,
    rf'\begin{{tabular}}{{l{"r" * (len(names) - 1)}}}',
    r'\toprule',
    rf'{" & ".join(map(inert.latex, names))} \\',
    r'\midrule',
    *(rf'{line} \\' for line in lines),
    r'\bottomrule',
    r'\end{tabular}',
  ]
  return '\n'.join(parts) + '\n'
