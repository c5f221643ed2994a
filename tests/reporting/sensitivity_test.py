import numpy as np
import pytest

from tests.reporting import fabricate
from tff_ssl.reporting import figures
from tff_ssl.reporting import runs as runs_lib
from tff_ssl.reporting import sensitivity

_NUMBER = 'linear/10%/accuracy'
_EPOCHS = sensitivity.over(['local_epochs', 'rounds'])
# (objective, local epochs, seed) -> accuracy.
_ACCURACIES = {
  ('simclr', 20, 0): 0.5,
  ('simclr', 5, 0): 0.25,
  ('simclr', 5, 1): 0.75,
  ('supervised', 5, 0): 0.125,
}


@pytest.fixture
def runs(tmp_path):
  made = []
  for (objective, epochs, seed), accuracy in _ACCURACIES.items():
    folder = tmp_path / f'{objective}_{epochs}_{seed}'
    flags = {
      'objective': objective,
      'local_epochs': epochs,
      'rounds': 20 // epochs,
      'seed': seed,
    }
    metrics = {'client_work/loss': [1.0] * (20 // epochs)}
    fabricate.run(folder, flags, metrics, evaluation={_NUMBER: accuracy})
    made.append(runs_lib.read(folder))
  return made


def test_a_line_is_over_the_flag_and_a_point_over_seeds(runs):
  lines = sensitivity.lines(runs, _EPOCHS, _NUMBER)
  assert [line.name for line in lines] == [
    'objective=simclr',
    'objective=supervised',
  ]
  assert lines[0].values == ('5', '20')
  np.testing.assert_allclose(lines[0].mean, [0.5, 0.5])
  np.testing.assert_allclose(lines[0].deviation, [np.sqrt(0.125), 0.0])
  assert lines[1].values == ('5',)
  np.testing.assert_allclose(lines[1].mean, [0.125])


def test_what_does_not_change_with_the_flag_separates_lines(runs):
  lines = sensitivity.lines(runs, sensitivity.over(['local_epochs']), _NUMBER)
  assert len(lines) == 3


def test_words_keep_the_order_of_the_runs(runs):
  lines = sensitivity.lines(
    runs, sensitivity.over(['objective', 'local_epochs', 'rounds']), _NUMBER
  )
  (line,) = lines
  assert line.values == ('simclr', 'supervised')
  np.testing.assert_allclose(line.mean, [0.5, 0.125])


def test_what_no_run_has_has_no_line(runs):
  assert sensitivity.lines(runs, _EPOCHS, 'knn/1%/accuracy') == []


def test_a_flag_that_a_run_lacks_is_refused(runs):
  with pytest.raises(ValueError, match=r"over names 'mu'; .*simclr_20_0 has no such"):
    sensitivity.lines(runs, sensitivity.over(['mu']), _NUMBER)


def test_runs_that_have_not_finished_do_not_count(tmp_path):
  fabricate.run(tmp_path / 'r', {'rounds': 9}, {'client_work/loss': [1.0]})
  with pytest.raises(ValueError, match='No run has finished'):
    sensitivity.lines(
      [runs_lib.read(tmp_path / 'r')], sensitivity.over(['rounds']), _NUMBER
    )


def test_the_figure_shows_every_line_at_its_values(runs):
  lines = sensitivity.lines(runs, _EPOCHS, _NUMBER)
  figure = figures.draw_over('local_epochs', {'linear 10%': lines})
  (plot,) = figure.axes
  assert [tick.get_text() for tick in plot.get_xticklabels()] == ['5', '20']
  drawn = [container.lines[0] for container in plot.containers]
  np.testing.assert_allclose(drawn[0].get_xydata(), [[0, 0.5], [1, 0.5]])
  np.testing.assert_allclose(drawn[1].get_xydata(), [[0, 0.125]])
  assert [text.get_text() for text in figure.legends[0].get_texts()] == [
    'objective=simclr',
    'objective=supervised',
  ]
  assert figures.render(figure).startswith(b'\x89PNG')


def test_panels_of_many_numbers_are_wide_enough_to_be_read(runs):
  lines = sensitivity.lines(runs, _EPOCHS, _NUMBER)
  panels = {f'clusters best knn {k}%': lines for k in range(10)}
  figure = figures.draw_over('local_epochs', panels)
  figure.draw_without_rendering()
  width, height = figure.get_size_inches() * figure.dpi
  for plot in figure.axes:
    box, title = plot.get_window_extent(), plot._left_title.get_window_extent()
    assert box.width > 0.15 * width
    assert title.x1 < box.x1 + 0.05 * width
    assert 0 <= box.y0 < box.y1 <= height
