import re
import shutil
import subprocess

import pandas as pd
import pytest

from tff_ssl.reporting import tables

TABLE = tables.Table(
  pd.DataFrame(
    [['fed_byol', '50.0 ± 1.0%', '-'], ['a & {b}…', '7%', '$1 #2 ~^\\']],
    columns=['method', 'linear 10%', 'a|b*'],
  ),
  {(0, 1)},
  ['[1] tau=0.7', '* x_y'],
)


def test_text_is_aligned_with_notes_below():
  assert tables.text(TABLE).split('\n') == [
    'method     linear 10%       a|b*',
    '--------  -----------  ---------',
    'fed_byol  50.0 ± 1.0%          -',
    'a & {b}…           7%  $1 #2 ~^\\',
    '',
    '[1] tau=0.7',
    '* x_y',
  ]


def test_markdown_escapes_and_marks_the_best():
  lines = [
    [cell.strip() for cell in line.strip('|').split(' | ')]
    for line in tables.markdown(TABLE).splitlines()
  ]
  assert lines[0] == ['method', 'linear 10%', r'a\|b\*']
  assert lines[2] == ['fed_byol', '**50.0 ± 1.0%**', '-']
  assert lines[3] == ['a &amp; {b}…', '7%', r'&#36;1 \#2 ~^\\']
  assert lines[5] == [r'\[1\] tau=0.7']
  assert lines[7] == [r'\* x_y']


def test_html_escapes_marks_the_best_and_is_whole():
  text = tables.html(TABLE)
  assert text.startswith('<div class="wide"><table class="dataframe numbers">')
  for part in (
    '<th>fed_byol</th>\n      <td><b>50.0 ± 1.0%</b></td>',
    '<th>a &amp; {b}…</th>',
    '<p class="note">* x_y</p>',
  ):
    assert part in text, part
  long = pd.DataFrame([['b' * 200] * 99], columns=[f'{k}' for k in range(99)])
  assert tables.html(tables.Table(long)).count('b' * 200) == 99


@pytest.mark.parametrize(('letters', 'count'), [(5, [7, 6]), (28, [4, 4, 4, 3])])
def test_wide_tables_are_several_that_fit_a_page(letters, count):
  names = ['method', *(f'{k}'.rjust(letters, 'x') for k in range(11))]
  rows = [['a', *['1'] * 11], ['b', *['2'] * 10, '-']]
  wide = tables.Table(pd.DataFrame(rows, columns=names), {(0, 1), (0, 11)})
  parts = tables.text(wide).split('\n\n')
  assert [len(part.split('\n')[0].split()) for part in parts] == count
  assert max(map(len, tables.text(wide).split('\n'))) <= 100
  # What is bold stays so.
  assert tables.markdown(wide).count('**1**') == 2
  assert tables.markdown(wide).count('| method') == len(count)


def test_rows_without_a_number_in_a_part_are_left_out_of_it():
  names = ['method', 'runs', *(f'number {k}' for k in range(6))]
  rows = [
    ['a', '3', *['1'] * 6],
    ['first', '3', '2', *['-'] * 5],
    ['last', '3', *['-'] * 5, '3'],
    ['none', '3', *['-'] * 6],
  ]
  wide = tables.Table(pd.DataFrame(rows, columns=names), heads=2)
  shown = [
    [line.split()[0] for line in part.split('\n')[2:]]
    for part in tables.text(wide).split('\n\n')
  ]
  assert shown == [['a', 'first', 'none'], ['a', 'last']]


def test_columns_of_one_name_are_two_columns():
  twice = tables.Table(pd.DataFrame([['a', '1', '2']], columns=['method', 'x', 'x']))
  for lay_out in (tables.text, tables.markdown, tables.html):
    assert lay_out(twice).index('1') < lay_out(twice).rindex('2')


_WIDE = tables.Table(
  pd.DataFrame(
    [['[1] *', 'batch', *['50.0 ± 1.0%'] * 6], ['fed_ävg $x', '{}\\^~#&', *'123456']],
    columns=['method', 'norm', *(f'linear {k} %' for k in range(6))],
  ),
  {(0, 2), (0, 7)},
  [f'A "note" of <few> … | 漢 {" ".join(map(chr, range(0xA1, 0x180)))}.'],
  heads=2,
  caption='What it is: 5 % of_all.',
  naming=2,
)


def _tabulars(text):
  """Returns the cells of all tabulars, after checks of braces and environments."""
  plain = re.sub(r'\\[\\{}$&%#_]', '', text)
  assert plain.count('{') == plain.count('}')
  stack = []
  for kind, name in re.findall(r'\\(begin|end){(.*?)}', text):
    if kind == 'begin':
      stack.append(name)
    else:
      assert stack.pop() == name
  assert not stack
  bodies = re.findall(r'\\toprule\n(.*?)\\bottomrule', text, re.DOTALL)
  return [
    [re.split(r'(?<!\\) & ', row.removesuffix(r' \\')) for row in body.splitlines()]
    for body in (body.replace('\\midrule\n', '') for body in bodies)
  ]


@pytest.mark.parametrize(('width', 'counts'), [('page', [5, 5]), ('column', [5, 5])])
def test_latex_of_both_widths_has_all_cells_and_marks_the_best(width, counts):
  text = tables.latex(_WIDE, width, 'tab:x')
  found = _tabulars(text)
  assert [len(rows[0]) for rows in found] == counts
  for rows in found:
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[0][:2] == ['method', 'norm']
    assert [row[0] for row in rows[1:]] == ['{[}1] {*}', r'fed\_ävg \$x']
  assert text.count(r'\textbf{50.0}$_{\pm 1.0}$\%') == 2
  assert text.count(r"\caption{What it is: 5 \% of\_all. A ''note") == 1
  labels = re.findall(r'\\label{(.*?)}', text)
  assert labels == ['tab:x']


_SEVEN = tables.Table(
  pd.DataFrame(
    [
      [f'FedAvg + {name}', '0.5', *['50.0 ± 1.0%'] * 6, '-0.30 ± 0.02', '1.5 MB']
      for name in ('BYOL', 'SimCLR', 'thermo')
    ],
    columns=[
      'method',
      'temperature',
      *(f'calibrated {k},000 labels overlap' for k in range(6)),
      'potential ↓',
      'bytes',
    ],
  ),
  heads=2,
)


@pytest.mark.parametrize('width', ['page', 'column'])
def test_latex_of_seven_numbers_is_one_readable_table(width):
  text = tables.latex(_SEVEN, width, 'tab:x')
  assert text.count(r'\caption') == 1
  (size,) = re.findall(r'\\smallskip\\(\w+)', text)
  assert size in ('small', 'footnotesize')
  found = _tabulars(text)
  assert [name for rows in found for name in rows[0]].count('temperature') == 1
  for rows in found:
    assert [row[0] for row in rows[1:]] == [*_SEVEN.cells['method']]


def test_latex_has_units_in_headers_small_deviations_and_lines_for_labels():
  found = _tabulars(tables.latex(_SEVEN, 'page', 'tab:x'))
  by_name = {
    name: cell
    for header, row, *_ in found
    for name, cell in zip(header, row, strict=True)
  }
  assert by_name[r'\shortstack[r]{calibrated\\1,000 labels\\overlap\\(\%)}'] == (
    r'50.0$_{\pm 1.0}$'
  )
  assert by_name[r'potential $\downarrow$'] == r'$-$0.30$_{\pm 0.02}$'
  assert by_name['bytes'] == '1.5 MB'


def test_latex_of_many_rows_is_several_floats_with_the_caption():
  rows = [[f'm{k}', *['50.0 ± 1.0%'] * 9] for k in range(30)]
  names = ['method', *(f'calibrated {k}' for k in range(9))]
  tall = tables.Table(pd.DataFrame(rows, columns=names), caption='What it is.')
  text = tables.latex(tall, 'column', 'tab:x')
  captions = re.findall(r'\\caption{(.*?)}\n', text)
  assert captions == ['What it is.', *['What it is. (Continued.)'] * 2]
  assert re.findall(r'\\label{(.*?)}', text) == ['tab:x', 'tab:x:2', 'tab:x:3']


@pytest.mark.skipif(not shutil.which('pdflatex'), reason='there is no LaTeX')
@pytest.mark.parametrize(
  ('style', 'width'),
  [('', 'page'), ('twocolumn', 'page'), ('twocolumn', 'column')],
)
@pytest.mark.parametrize('table', [_WIDE, _SEVEN])
def test_latex_compiles_and_is_no_wider_than_the_text(tmp_path, style, width, table):
  (tmp_path / 'table.tex').write_text(tables.latex(table, width, 'tab:x'), 'utf-8')
  (tmp_path / 'paper.tex').write_text(
    f'\\documentclass[{style}]{{article}}\n\\usepackage{{booktabs}}\n'
    '\\begin{document}\nText.\n\\input{table}\n\\end{document}\n'
  )
  command = ['pdflatex', '-draftmode', '-halt-on-error', '-interaction=nonstopmode']
  ended = subprocess.run(
    [*command, 'paper'], cwd=tmp_path, capture_output=True, text=True, check=False
  )
  assert ended.returncode == 0, ended.stdout[-2000:]
  assert 'Overfull' not in ended.stdout
  assert 'too large' not in ended.stdout
