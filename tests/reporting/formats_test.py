from tff_ssl.reporting import formats

ROWS = [
  {'group': 'fed_byol', 'linear 10%': '50.0 ± 1.0%', 'a|b*': '-'},
  {'group': 'a & {b}…', 'linear 10%': '7%', 'a|b*': '$1 #2 ~^\\'},
]
BEST = {(0, 'linear 10%')}


def test_markdown_escapes_and_marks_the_best():
  assert formats.markdown(ROWS, BEST).splitlines() == [
    r'| group | linear 10% | a\|b\* |',
    '| --- | ---: | ---: |',
    '| fed_byol | **50.0 ± 1.0%** | - |',
    r'| a &amp; {b}… | 7% | &#36;1 \#2 ~^\\ |',
  ]


def test_latex_escapes_and_marks_the_best():
  lines = formats.latex(ROWS, BEST).splitlines()
  assert lines[0].startswith('% Needs \\usepackage{booktabs}')
  escaped = r'\$1 \#2 \textasciitilde{}\textasciicircum{}\textbackslash{}'
  assert lines[1:] == [
    r'\begin{tabular}{lrr}',
    r'\toprule',
    r'group & linear 10\% & a|b{*} \\',
    r'\midrule',
    r'fed\_byol & \textbf{50.0 $\pm$ 1.0\%} & - \\',
    rf'a \& \{{b\}}\ldots{{}} & 7\% & {escaped} \\',
    r'\bottomrule',
    r'\end{tabular}',
  ]
