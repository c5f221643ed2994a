import numpy as np
import pytest

from docs.studies import figures


def _study(name='run', scale=1.0):
  rows = [
    figures.Row(round, figures.DISTANCE, one, other, layer, scale * value * round)
    for round in (1, 4)
    for (one, other), values in {
      (figures.GLOBAL, 'a'): (1.0, 2.0),
      (figures.GLOBAL, 'b'): (3.0, 2.0),
      ('a', 'b'): (5.0, 5.0),
    }.items()
    for layer, value in zip(('stem', 'head'), values, strict=True)
  ]
  rows += [
    figures.Row(round, figures.CKA, figures.GLOBAL, other, layer, value)
    for round in (1, 4)
    for other, values in {'a': (1.0, 0.5), 'b': (1.0, 0.7)}.items()
    for layer, value in zip(('stage1', 'features'), values, strict=True)
  ]
  rows.sort(key=lambda row: row.round)
  points = np.arange(8.0).reshape(4, 2)
  return figures.Study(name, rows, {figures.GLOBAL: points, 'a': points + 1})


def test_table_has_sums_over_layers_in_the_mean_over_pairs():
  first, last = figures.table_rows([_study()])
  # (1 + 2 + 3 + 2) / 2 with the global model, 5 + 5 between the two clients.
  assert first['|w_g - w_k|'] == pytest.approx(4)
  assert first['|w_j - w_k|'] == pytest.approx(10)
  assert first['CKA of features'] == pytest.approx(0.6)
  assert (last['round'], last['|w_g - w_k|']) == (4, pytest.approx(16))
  assert np.isnan(figures.total_distance([]))


def test_rows_name_their_run():
  rows = figures.rows([_study('one'), _study('two')])
  assert len(rows) == 2 * len(_study().rows)
  assert rows[0] == {
    'run': 'one',
    'round': 1,
    'quantity': 'distance',
    'one': 'global',
    'other': 'a',
    'layer': 'stem',
    'value': 1.0,
  }


def test_figures_show_each_run():
  studies = [_study('one'), _study('two', 2.0)]
  over_rounds, cka, layers, by_layer = figures.draw(studies).axes
  lines = {line.get_label(): line.get_ydata() for line in over_rounds.lines}
  assert len(lines) == 4
  np.testing.assert_allclose(lines['two $|w_j - w_k|$'], [20, 80])
  np.testing.assert_allclose(cka.lines[0].get_ydata(), [0.6, 0.6])
  np.testing.assert_allclose(layers.lines[0].get_ydata(), [8, 8])
  assert [t.get_text() for t in by_layer.get_xticklabels()] == ['stage1', 'features']
  panels = figures.draw_map(studies).axes
  assert [panel.get_title('left') for panel in panels] == [
    'one, round 4',
    'two, round 4',
  ]
  np.testing.assert_array_equal(
    panels[0].collections[1].get_offsets(), studies[0].map['a']
  )
