import numpy as np
import pytest

from tests.worlds import made_runs
from tff_ssl.reporting import figures
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import sensitivity

_NUMBER = 'linear/10%/accuracy'
_EPOCHS = ['clients.epochs', 'rounds']
# (objective, local epochs, seed) -> accuracy.
_ACCURACIES = {
  ('simclr', 20, 0): 0.5,
  ('simclr', 5, 0): 0.25,
  ('simclr', 5, 1): 0.75,
  ('supervised', 5, 0): 0.125,
}


def _run(*arguments, **options):
  return run_reader.read(made_runs.run(*arguments, **options))


@pytest.fixture
def runs(tmp_path):
  made = []
  for (objective, epochs, seed), accuracy in _ACCURACIES.items():
    folder = tmp_path / f'{objective}_{epochs}_{seed}'
    settings = {
      'objective': objective,
      'clients.epochs': epochs,
      'rounds': 20 // epochs,
      'seed': seed,
    }
    metrics = {'client_work/loss': [1.0] * (20 // epochs)}
    made.append(_run(folder, settings, metrics, evaluation={_NUMBER: accuracy}))
  return made


def lines_of(runs, settings, number=_NUMBER, label=()):
  axis = sensitivity.over(settings, runs)
  panels, _ = sensitivity.lines(runs, axis, [number], label)
  return panels.get(number, [])


def _means(line):
  return line.points['mean'].to_dict()


def test_a_line_is_over_the_setting_and_a_point_over_seeds(runs):
  lines = lines_of(runs, _EPOCHS)
  assert [line.name for line in lines] == ['dcco simclr', 'dcco supervised']
  points = lines[0].points
  assert list(points.index) == ['5', '20']
  np.testing.assert_allclose(points['mean'], [0.5, 0.5])
  np.testing.assert_allclose(points['deviation'], [np.sqrt(0.125), np.nan])
  assert list(points['runs']) == [2, 1]
  assert _means(lines[1]) == {'5': 0.125}


def test_words_keep_the_order_of_the_runs(runs):
  (line,) = lines_of(runs, ['objective', *_EPOCHS])
  assert _means(line) == {'simclr': 0.5, 'supervised': 0.125}
  assert list(line.points.index) == ['simclr', 'supervised']


def test_number_of_no_run_has_no_line(runs):
  assert lines_of(runs, _EPOCHS, 'knn/1%/accuracy') == []


def _partitions(tmp_path, *values):
  return [
    _run(
      tmp_path / f'{objective}_{k}',
      {'clients.beta_2': len(objective), 'objective': objective, 'partition': value},
      evaluation={_NUMBER: 0.25 * k},
    )
    for k, value in enumerate(values)
    for objective in ('mae', 'simclr')
  ]


def test_values_that_differ_in_one_part_are_shown_by_it(tmp_path):
  runs = _partitions(
    tmp_path,
    'shares:alpha=5,clients=5,balanced=true',
    'shares:alpha=0.02,clients=5,balanced=true',
  )
  axis = sensitivity.over(['partition'], runs)
  assert axis.title == 'alpha'
  lines = lines_of(runs, ['partition'])
  assert [list(line.points.index) for line in lines] == [['0.02', '5'], ['0.02', '5']]
  assert _means(lines[0]) == {'0.02': 0.25, '5': 0.0}
  assert [line.name for line in lines] == ['dcco mae beta_2=3', 'dcco simclr beta_2=6']


@pytest.mark.parametrize(
  'values',
  [
    ('iid:clients=5', 'shares:alpha=5,clients=5'),
    ('iid:clients=5', 'iid:examples=5'),
    ('shares:alpha=5,clients=5', 'shares:alpha=1,clients=2'),
    ('client', 'case'),
    ('client',),
  ],
)
def test_values_that_differ_in_several_parts_are_shown_whole(tmp_path, values):
  runs = _partitions(tmp_path, *values)
  axis = sensitivity.over(['partition'], runs)
  assert axis.title == 'partition'
  assert tuple(lines_of(runs, ['partition'])[0].points.index) == values


def test_a_label_names_lines(tmp_path):
  runs = _partitions(tmp_path, 'iid:clients=5', 'iid:clients=20')
  lines = lines_of(runs, ['partition'], label=['objective'])
  assert [line.name for line in lines] == ['mae', 'simclr']


def test_a_model_is_a_line_and_a_baseline_is_none(tmp_path):
  number = 'knn/10%/accuracy'
  models = ('', 'clusters/mean/', 'random_encoder/')
  numbers = {f'{model}{number}': 0.5 for model in models}
  lines = lines_of([_run(tmp_path / 'a', evaluation=numbers)], ['rounds'], number)
  assert [line.name for line in lines] == ['dcco', 'dcco: mean of models']


def labelled(tmp_path, *counts):
  """Returns the numbers of runs whose tenth of the labels are so many."""
  numbers = [{_NUMBER: 0.5, 'labels/10%': count} for count in counts]
  runs = [
    _run(tmp_path / str(k), {'x': k}, evaluation=own) for k, own in enumerate(numbers)
  ]
  questions = ['linear/10%/accuracy', *(f'linear/{n} labels/accuracy' for n in counts)]
  panels, _ = sensitivity.lines(runs, sensitivity.over(['x'], runs), questions)
  return {name: [len(line.points) for line in own] for name, own in panels.items()}


def test_labels_are_counted_as_in_comparisons_unless_the_count_varies(tmp_path):
  assert labelled(tmp_path / 'a', 145, 145) == {'linear/145 labels/accuracy': [2]}
  assert labelled(tmp_path / 'b', 145, 99) == {_NUMBER: [2]}
  assert labelled(tmp_path / 'c', 145, float('nan')) == {_NUMBER: [2]}


def test_lines_of_long_names_have_a_legend(tmp_path):
  runs = [
    _run(tmp_path / str(k), {'note': 'x' * 50 + str(k)}, evaluation={_NUMBER: 0.5})
    for k in range(2)
  ]
  axis = sensitivity.over(['rounds'], runs)
  panels, legends = sensitivity.lines(runs, axis, [_NUMBER])
  assert [line.name for line in panels[_NUMBER]] == ['dcco [1]', 'dcco [2]']
  assert legends == [f'[{k + 1}] note={"x" * 50}{k}' for k in range(2)]


def test_the_table_and_the_csv_have_every_point(runs, tmp_path):
  axis = sensitivity.over(_EPOCHS, runs)
  panels, legends = sensitivity.lines(runs, axis, [_NUMBER])
  table = sensitivity.table(_NUMBER, panels[_NUMBER], legends)
  assert list(table.cells) == ['method', '5', '20']
  assert table.cells.to_numpy().tolist() == [
    ['dcco simclr', '50.0 ± 35.4%', '50.0%'],
    ['dcco supervised', '12.5%', '-'],
  ]
  sensitivity.write_csv(tmp_path / 'over.csv', axis, panels)
  assert (tmp_path / 'over.csv').read_text().splitlines() == [
    'clients.epochs,line,number,mean,deviation,runs',
    f'5,dcco simclr,{_NUMBER},0.5,{0.125**0.5},2',
    f'20,dcco simclr,{_NUMBER},0.5,,1',
    f'5,dcco supervised,{_NUMBER},0.125,,1',
  ]


def test_runs_that_have_not_finished_do_not_count(tmp_path):
  run = _run(tmp_path / 'r', {'rounds': 9}, {'client_work/loss': [1.0]})
  with pytest.raises(ValueError, match='No run has finished'):
    lines_of([run], ['rounds'])


def test_the_figure_shows_every_line_at_its_values(runs):
  lines = lines_of(runs, _EPOCHS)
  figure = figures.draw_over('epochs', {'linear 10%': lines})
  (plot,) = figure.axes
  assert [tick.get_text() for tick in plot.get_xticklabels()] == ['5', '20']
  drawn = [container.lines[0] for container in plot.containers]
  np.testing.assert_allclose(drawn[0].get_xydata(), [[0, 0.5], [1, 0.5]])
  np.testing.assert_allclose(drawn[1].get_xydata(), [[0, 0.125]])
  assert [text.get_text() for text in figure.legends[0].get_texts()] == [
    'dcco simclr',
    'dcco supervised',
  ]
  assert figures.render(figure).startswith(b'\x89PNG')


def test_panels_of_many_numbers_are_wide_enough_to_be_read(runs):
  lines = lines_of(runs, _EPOCHS)
  panels = {f'clusters best knn {k}%': lines for k in range(10)}
  figure = figures.draw_over('epochs', panels)
  figure.draw_without_rendering()
  width, height = figure.get_size_inches() * figure.dpi
  for plot in figure.axes:
    box, title = plot.get_window_extent(), plot._left_title.get_window_extent()
    assert box.width > 0.15 * width
    assert title.x1 < box.x1 + 0.05 * width
    assert 0 <= box.y0 < box.y1 <= height
