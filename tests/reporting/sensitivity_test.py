import numpy as np
import pytest

from tests.reporting import fabricate
from tff_ssl.reporting import comparison
from tff_ssl.reporting import figures
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
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
    made.append(run_reader.read(folder))
  return made


def _means(line):
  return {value: point.mean for value, point in line.points.items()}


def test_a_line_is_over_the_flag_and_a_point_over_seeds(runs):
  lines = sensitivity.lines(runs, _EPOCHS, _NUMBER)
  assert [line.name for line in lines] == [
    'objective=simclr',
    'objective=supervised',
  ]
  mean, deviation = comparison.arrays(lines[0].points.values())
  assert list(lines[0].points) == ['5', '20']
  np.testing.assert_allclose(mean, [0.5, 0.5])
  np.testing.assert_allclose(deviation, [np.sqrt(0.125), 0.0])
  assert _means(lines[1]) == {'5': 0.125}


def test_other_flags_separate_lines(runs):
  lines = sensitivity.lines(runs, sensitivity.over(['local_epochs']), _NUMBER)
  assert len(lines) == 3


def test_words_keep_the_order_of_the_runs(runs):
  lines = sensitivity.lines(
    runs, sensitivity.over(['objective', 'local_epochs', 'rounds']), _NUMBER
  )
  (line,) = lines
  assert _means(line) == {'simclr': 0.5, 'supervised': 0.125}
  assert list(line.points) == ['simclr', 'supervised']


def test_number_of_no_run_has_no_line(runs):
  assert sensitivity.lines(runs, _EPOCHS, 'knn/1%/accuracy') == []


def test_a_flag_that_a_run_lacks_is_refused(runs):
  with pytest.raises(ValueError, match=r"over names 'mu'; .*simclr_20_0 has no such"):
    sensitivity.lines(runs, sensitivity.over(['mu']), _NUMBER)


def _partitions(tmp_path, *values):
  made = []
  for k, value in enumerate(values):
    for objective in ('mae', 'simclr'):
      # What follows from the objective names no line.
      flags = {'client_beta_2': len(objective), 'objective': objective}
      folder = tmp_path / f'{objective}_{k}'
      fabricate.run(
        folder,
        {**flags, 'partition': value, 'rounds': 1, 'seed': 0},
        {'client_work/loss': [1.0]},
        evaluation={_NUMBER: 0.25 * k},
      )
      made.append(run_reader.read(folder))
  return made


def test_values_that_differ_in_one_part_are_shown_by_it(tmp_path):
  runs = _partitions(
    tmp_path,
    'shares:alpha=5,clients=5,balanced=true',
    'shares:alpha=0.02,clients=5,balanced=true',
  )
  axis = sensitivity.over(['partition'], runs)
  assert axis.title == 'alpha'
  lines = sensitivity.lines(runs, axis, _NUMBER)
  assert [list(line.points) for line in lines] == [['0.02', '5'], ['0.02', '5']]
  assert _means(lines[0]) == {'0.02': 0.25, '5': 0.0}
  assert [line.name for line in lines] == [
    'objective=mae client_beta_2=3',
    'objective=simclr client_beta_2=6',
  ]


@pytest.mark.parametrize(
  'values',
  [
    ('iid:clients=5', 'shares:alpha=5,clients=5'),
    ('iid:clients=5', 'iid:examples=5'),
    ('shares:alpha=5,clients=5', 'shares:alpha=1,clients=2'),
    ('iid:clients=5', 'quantity:clients=5'),
    ('client', 'case'),
    ('client',),
  ],
)
def test_values_that_differ_in_several_parts_are_shown_whole(tmp_path, values):
  runs = _partitions(tmp_path, *values)
  axis = sensitivity.over(['partition'], runs)
  assert axis.title == 'partition'
  assert tuple(sensitivity.lines(runs, axis, _NUMBER)[0].points) == values


def test_a_label_names_lines_and_with_the_value_groups(tmp_path):
  runs = _partitions(tmp_path, 'iid:clients=5', 'iid:clients=20')
  label = run_groups.flag_label(runs, ['objective'])
  axis = sensitivity.over(['partition'], runs, label)
  lines = sensitivity.lines(runs, axis, _NUMBER)
  assert [line.name for line in lines] == ['mae', 'simclr']
  found = run_groups.group(runs, label=axis.of_groups())
  assert [group.name for group in found] == ['5 mae', '5 simclr', '20 mae', '20 simclr']
  assert sensitivity.over(['partition'], runs).of_groups() is None


def test_runs_that_have_not_finished_do_not_count(tmp_path):
  fabricate.run(tmp_path / 'r', {'rounds': 9}, {'client_work/loss': [1.0]})
  with pytest.raises(ValueError, match='No run has finished'):
    sensitivity.lines(
      [run_reader.read(tmp_path / 'r')], sensitivity.over(['rounds']), _NUMBER
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
