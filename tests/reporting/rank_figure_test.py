from tff_ssl.reporting import figures
from tff_ssl.reporting import look
from tff_ssl.reporting import rank_figure
from tff_ssl.reporting import significance

_RANKS = significance.Ranks({'$a': 3.0, '_b': 1.2, 'c': 2.1, 'd': 3.7}, 0.01, 1.0, 6)


def test_bars_connect_ranks_that_are_not_told_apart():
  # 1.2 with 2.1, 2.1 with 3.0, 3.0 with 3.7: none lies within another.
  assert rank_figure.groups_of_equals(_RANKS) == [(1.2, 2.1), (2.1, 3.0), (3.0, 3.7)]
  apart = significance.Ranks({'a': 1.0, 'b': 2.0, 'c': 3.0}, 0.01, 0.5, 6)
  assert rank_figure.groups_of_equals(apart) == []
  same = significance.Ranks({'a': 1.8, 'b': 2.0, 'c': 2.2}, 0.5, 1.5, 6)
  assert rank_figure.groups_of_equals(same) == [(1.8, 2.2)]


def test_of_many_numbers_few_are_drawn_in_the_colours_of_the_methods():
  figure = rank_figure.draw(
    [(f'{k}', _RANKS) for k in range(9)], ['d', 'c', '_b', '$a']
  )
  assert len(figure.axes) == 4
  assert figure.get_suptitle().startswith('The first 4 of 9 numbers')
  colors = {
    line.get_xdata()[0]: line.get_color()
    for line in figure.axes[0].lines
    if len(line.get_xdata()) == 3
  }
  # By name: $a, _b, c, d.
  assert [colors[_RANKS.means[name]] for name in ('$a', '_b', 'c', 'd')] == [
    *look.COLORS[:4]
  ]


def test_each_number_has_an_axis_with_all_names_at_their_ranks():
  figure = rank_figure.draw([('kNN', _RANKS), ('linear', _RANKS)])
  assert [plot.get_title(loc='left') for plot in figure.axes] == [
    f'{name}: mean rank over 6 seeds' for name in ('kNN', 'linear')
  ]
  for plot in figure.axes:
    starts = {line.get_xdata()[0] for line in plot.lines if len(line.get_xdata()) == 3}
    assert starts == set(_RANKS.means.values())
    texts = [text.get_text().replace('\u200b', '').strip() for text in plot.texts]
    assert texts[:4] == ['_b (1.20)', 'c (2.10)', r'\$a (3.00)', 'd (3.70)']
    assert texts[4] == 'critical difference 1.00'
  assert figures.render(figure).startswith(b'\x89PNG')
