import math

import numpy as np

from tests.reporting import conftest
from tests.worlds import made_runs
from tff_ssl.reporting import curves
from tff_ssl.reporting import figures

NAMES = ['linear/10%/accuracy']


def test_figure_draws_the_series_of_every_group(two_groups):
  shown = curves.quantities(two_groups, NAMES)
  figure = figures.draw(two_groups, shown)
  assert [plot.get_title(loc='left') for plot in figure.axes] == [
    each.title for each in shown
  ]
  for plot, quantity in zip(figure.axes, shown, strict=True):
    every = [curves.series(group, quantity) for group in two_groups]
    every = [one for one in every if len(one)]
    drawn = [line for line in plot.lines if line.get_linestyle() != 'None']
    for line, one in zip(drawn, every, strict=True):
      np.testing.assert_array_equal(line.get_xdata(), one.index)
      np.testing.assert_array_equal(line.get_ydata(), one['mean'])
    assert len(plot.collections) == len(every)
    assert plot.get_xlim()[1] > conftest.ROUNDS
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.texts] == [
    'dcco (3 seeds)',
    'centralized',
  ]


def test_group_has_its_colour_in_any_order(two_groups):
  shown = curves.quantities(two_groups, NAMES)[:1]
  drawn = []
  for groups in (two_groups, two_groups[::-1]):
    figure = figures.draw(groups, shown)
    (legend,) = figure.legends
    entries = zip(legend.texts, legend.get_lines(), strict=True)
    drawn.append({text.get_text(): line.get_color() for text, line in entries})
    colors = {line.get_color() for line in figure.axes[0].lines}
    assert colors == {*drawn[-1].values()}
  assert drawn[0] == drawn[1]
  assert len(colors) == 2


def test_band_is_the_deviation_about_the_mean(two_groups):
  quantity = curves.quantities(two_groups, NAMES)[2]
  (plot,) = figures.draw(two_groups[:1], [quantity]).axes
  mean, deviation = curves.series(two_groups[0], quantity).T.to_numpy()
  points = plot.collections[0].get_paths()[0].vertices
  np.testing.assert_allclose(points[:, 1].max(), (mean + deviation).max())
  np.testing.assert_allclose(points[:, 1].min(), (mean - deviation).min())


def test_axes_suit_what_they_show(two_groups):
  figure = figures.draw(two_groups, curves.quantities(two_groups, NAMES))
  plots = {plot.get_title(loc='left'): plot for plot in figure.axes}
  # The losses are of two sizes; the others are not.
  scales = [plot.get_yscale() for plot in figure.axes]
  assert scales == ['linear', 'log', *['linear'] * 3]
  assert plots['seconds of a round'].get_ylim()[0] == 0
  format_bytes = plots['bytes down and up, cumulative'].yaxis.get_major_formatter()
  assert format_bytes(2e9) == '2 GB'
  format_share = plots['test accuracy, linear 10%'].yaxis.get_major_formatter()
  assert format_share(0.5) == '50%'


def test_rare_long_rounds_go_beyond_the_axis(tmp_path):
  losses, times = {'loss': [1.0] * 400}, {'seconds': [2.0] * 399 + [9000.0]}
  folder = made_runs.run(tmp_path / 'a', {'rounds': 400}, losses, times)
  groups = made_runs.groups(folder)
  plot = figures.draw(groups, curves.quantities(groups, [])).axes[-1]
  assert 2 < plot.get_ylim()[1] < 3


def test_a_single_evaluation_is_a_point_with_a_bar(tmp_path):
  for seed in range(2):
    metrics = {'loss': [1.0, 1.0, 1.0], 'knn/1%/accuracy': ['', '', 0.25 + seed / 2]}
    made_runs.run(tmp_path / str(seed), {'seed': seed}, metrics)
  groups = made_runs.groups(tmp_path / '0', tmp_path / '1')
  shown = curves.quantities(groups, ['knn/1%/accuracy'])
  plot = figures.draw(groups, shown[:1]).axes[0]
  assert plot.lines[0].get_marker() == 'o'
  ((bar,),) = (c.get_segments() for c in plot.collections if hasattr(c, 'get_segments'))
  # 0.25 and 0.75: mean 0.5, deviation sqrt(0.125).
  deviation = math.sqrt(0.125)
  np.testing.assert_allclose(bar, [(3, 0.5 - deviation), (3, 0.5 + deviation)])
