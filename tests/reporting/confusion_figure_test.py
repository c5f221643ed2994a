import numpy as np

from tests.worlds import made_runs
from tff_ssl.reporting import confusion_figure
from tff_ssl.reporting import figures

_QUESTIONS = ['knn/90 labels/accuracy', 'linear/9 labels/accuracy', 'bytes']


def _groups(tmp_path):
  of_seeds = ({'0/0': 3, '0/1': 1, '1/1': 2}, {'0/0': 1, '0/1': 3, '1/0': 2})
  for seed, counts in enumerate(of_seeds):
    numbers = {f'linear/10%/confusion/{key}': value for key, value in counts.items()}
    numbers |= {'linear/10%/accuracy': 0.5, 'labels/10%': 9, 'knn/10%/confusion/0/0': 1}
    made_runs.run(tmp_path / f'{seed}', {'seed': seed}, evaluation=numbers)
  other = {'linear/10%/accuracy': 0.5, 'labels/10%': 9}
  # From a stranger: a class too many for a matrix.
  other |= {
    'linear/10%/confusion/0/99999': 1.0,
    f'linear/10%/confusion/{"9" * 5000}/0': 1,
  }
  made_runs.run(tmp_path / 'x', {'method': 'x'}, evaluation=other)
  return made_runs.groups(*(tmp_path / name for name in '01x'))


def test_matrices_are_shares_of_each_class_over_the_runs_of_a_group(tmp_path):
  title, matrices, names = confusion_figure.read(_groups(tmp_path), _QUESTIONS)
  assert title == 'linear 9 labels'
  assert names == ['0', '1']
  assert list(matrices) == ['dcco']
  np.testing.assert_allclose(matrices['dcco'], [[0.5, 0.5], [0.5, 0.5]])
  found = confusion_figure.read(_groups(tmp_path / 'b'), _QUESTIONS, ('ant', 'bee'))
  assert found[2] == ['ant', 'bee']
  assert confusion_figure.read(_groups(tmp_path / 'c'), ['loss']) == ('', {}, [])


def test_each_group_has_a_panel_with_its_numbers():
  matrix = np.array([[0.75, 0.25], [0.0, 1.0]])
  matrices = {'DCCO': matrix, 'FedEMA': matrix.T}
  figure = confusion_figure.draw('linear', matrices, ['$x$', 'b' * 99])
  for axis in (figure.axes[1].xaxis, figure.axes[1].yaxis):
    names = [label.get_text() for label in axis.get_ticklabels()]
    assert names == [r'\$x\$', f'{"b" * 20}…']
  assert [plot.get_title(loc='left') for plot in figure.axes] == ['DCCO', 'FedEMA']
  shown = [[text.get_text() for text in plot.texts] for plot in figure.axes]
  assert shown == [['75', '25', '0', '100'], ['75', '0', '25', '100']]
  np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), matrix)
  assert figures.render(figure).startswith(b'\x89PNG')
