"""Scores of a metric of one's own, wherever accuracies are shown, chosen and tested."""

from typing import ClassVar

import pytest

from tests.worlds import made_runs
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import best_round
from tff_ssl.reporting import caveats
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_table
from tff_ssl.reporting import curves
from tff_ssl.reporting import paper
from tff_ssl.reporting import paper_tests
from tff_ssl.reporting import run_page
from tff_ssl.reporting import run_reader
from tff_ssl.settings import parts

_ERROR, _OVERLAP, _COUNT = (
  f'mine/10%/{name}' for name in ('error', 'overlap', 'count')
)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
  monkeypatch.setattr(parts, 'METRICS', {**parts.METRICS})

  @parts.metric
  class Mine:
    name = 'mine'
    scores: ClassVar = {'error': 'less', 'overlap': 'share'}

  return Mine


def _run(folder, error, seed=0, **settings):
  numbers = {_ERROR: error, _OVERLAP: 0.5, _COUNT: 7.0}
  columns = {_ERROR: [error, error / 2, error], _OVERLAP: [0.5] * 3}
  validated = {f'validation/{name}': cells for name, cells in columns.items()}
  return made_runs.run(
    folder,
    {'seed': seed, **settings},
    {'client_work/loss': [3.0, 2.0, 1.0], **columns, **validated},
    evaluation={**numbers, 'pixels/mine/10%/error': 9.0},
  )


@pytest.mark.parametrize(
  ('name', 'expected'),
  [
    ('mine/10%/error', 'less'),
    ('validation/mine/145 labels/error', 'less'),
    ('pixels/mine/10%/overlap', 'share'),
    ('mine/10%/count', None),
    ('another/10%/error', None),
    ('mine/10%/error/deviation', None),
    ('knn/10%/balanced_accuracy', 'share'),
    ('loss', None),
  ],
)
def test_name_of_number_says_how_score_is_read(name, expected):
  assert method_names.way(name) == expected


def test_score_is_read_in_one_of_three_ways(registered):
  registered.scores = {'error': 'smaller'}
  with pytest.raises(
    ValueError, match="error of mine is 'smaller'; it must be one of share, more, less"
  ):
    parts.metric(registered)


def test_table_has_scores_in_their_units_and_the_least_error_is_best(tmp_path):
  groups = made_runs.groups(
    _run(tmp_path / 'a', 4.0, method='dcco'), _run(tmp_path / 'b', 3.0, method='fedavg')
  )
  compared = comparison.compare(groups)
  questions = comparison.choose(compared)
  assert questions == [_ERROR, _OVERLAP]
  table = comparison_table.table(compared, questions)
  assert table.cells.iloc[:2, 2:4].to_numpy().tolist() == [
    ['4', '50.0%'],
    ['3', '50.0%'],
  ]
  assert {place for place in table.best if place[1] == 2} == {(1, 2)}
  assert comparison.ordered(compared, _ERROR) == [1, 0]
  assert 'pixels' in {*table.cells['method']}


def test_fewest_errors_have_rank_1(tmp_path):
  groups = made_runs.groups(
    *(
      _run(tmp_path / f'{method}{seed}', k + 0.1 * seed * k, seed, method=method)
      for k, method in enumerate(('dcco', 'fedavg', 'fedprox'), start=1)
      for seed in range(5)
    )
  )
  tested = paper_tests.find(comparison.compare(groups), [_ERROR], paper.names(groups))
  ((_, ranks),) = tested.ranks
  assert [*ranks.means.values()] == [1, 2, 3]


def test_best_round_has_the_least_error(tmp_path):
  run = run_reader.read(_run(tmp_path / 'a', 4.0))
  (taken,) = best_round.take([run], f'validation/{_ERROR}')
  assert (taken.evaluation['best_round'], taken.evaluation[_ERROR]) == (2, 2.0)


def test_curves_and_page_show_scores(tmp_path):
  groups = made_runs.groups(_run(tmp_path / 'a', 4.0))
  shown = curves.quantities(groups, [_ERROR, _OVERLAP], every_accuracy=True)
  assert [(each.title, each.axis) for each in shown[:2]] == [
    ('test, mine 10% error ↓', 'any'),
    ('test, mine 10% overlap', 'share'),
  ]
  page = run_page.build(run_reader.read(tmp_path / 'a'))
  assert 'mine 10% overlap' in page
  assert 'mine 10% count' not in page


def test_by_default_each_score_has_one_curve_of_the_most_labels(tmp_path):
  columns = {
    f'{probe}/{share}/{last}': [0.5] * 3
    for probe, last in (('knn', 'accuracy'), ('linear', 'accuracy'), ('mine', 'error'))
    for share in ('1%', '10%')
  }
  groups = made_runs.groups(made_runs.run(tmp_path / 'a', metrics=columns))
  shown = curves.quantities(groups, [*columns])
  assert [each.title for each in shown] == [
    'test accuracy, linear 10%',
    'test, mine 10% error ↓',
  ]
  free = curves.quantities(groups, [*columns], label_free=[_ERROR])
  assert free[1].title == 'test, mine error ↓'


def test_titles_say_that_less_is_better(tmp_path):
  compared = comparison.compare(made_runs.groups(_run(tmp_path / 'a', 4.0)))
  table = comparison_table.table(compared, [_ERROR, _OVERLAP])
  assert [*table.cells][2:] == ['mine 10% error ↓', 'mine 10% overlap']
  assert paper.title(_ERROR, compared) == 'mine 10% error ↓'
  assert comparison.ordered(compared, 'mine 10% error ↓') == [0]
  assert comparison.ordered(compared, 'mine 10% error') == [0]


@pytest.mark.parametrize(
  ('other', 'expected'),
  [
    (4.0, ['mine error ↓', 'knn 1%', 'knn 10%']),
    (4.5, ['mine 1% error ↓', 'mine 10% error ↓', 'knn 1%', 'knn 10%']),
  ],
)
def test_score_that_is_the_same_for_all_labels_is_shown_once(tmp_path, other, expected):
  runs = [
    made_runs.run(
      tmp_path / method,
      {'method': method},
      evaluation={
        'mine/1%/error': error,
        'mine/10%/error': other if error == 4 else error,
        'knn/1%/accuracy': 0.5,
        'knn/10%/accuracy': 0.5,
      },
    )
    for method, error in (('dcco', 4.0), ('fedavg', 3.0))
  ]
  compared = comparison.compare(made_runs.groups(*runs))
  questions = [q for q in comparison.choose(compared) if q != 'loss']
  assert [*comparison_table.table(compared, questions).cells][2:] == expected
  assert comparison.choose(compared, ['mine/*/error']) == [
    q for q in questions if 'mine' in q
  ]


def test_scores_have_deviations_over_draws_of_labels():
  draws = [{_ERROR: 1.0, _COUNT: 7.0}, {_ERROR: 3.0, _COUNT: 7.0}]
  assert label_draws.mean(draws) == {
    _ERROR: 2.0,
    f'{_ERROR}/deviation': pytest.approx(2**0.5),
    _COUNT: 7.0,
  }


def test_without_the_module_a_caveat_says_that_its_scores_are_left_out(tmp_path):
  folder = _run(tmp_path / 'a', 4.0, **{'evaluation.methods': ['knn', 'mine']})
  path = folder / 'config.json'
  path.write_text(path.read_text()[:-1] + ', "imports": {"my_module": "f00d"}}')
  assert not caveats.find(made_runs.groups(folder))
  every = {'evaluation.methods': [*method_names.EVERY]}
  assert not caveats.find(made_runs.groups(_run(tmp_path / 'b', 4.0, **every)))
  del parts.METRICS['mine']
  (caveat,) = caveats.find(made_runs.groups(folder))
  assert 'than accuracies of mine are left out; give --import=my_module (or' in caveat
