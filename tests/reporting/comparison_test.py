import math
import warnings

import pandas as pd
import pytest

from tests.worlds import made_runs
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_table

_KNN, _LINEAR = 'knn/1%/accuracy', 'linear/10%/accuracy'


def compare(*folders):
  return comparison.compare(made_runs.groups(*folders))


def of_numbers(tmp_path, *numbers_of_groups, **settings_of_all):
  """Compares groups of one run each, methods m0, m1, ..., with these evaluations."""
  folders = [
    made_runs.run(
      tmp_path / f'm{k}',
      {'method': f'm{k}', **settings_of_all},
      {'other': [1, 2, 3]},
      evaluation=numbers,
    )
    for k, numbers in enumerate(numbers_of_groups)
  ]
  return compare(*folders)


def statistic(compared, row, number):
  table = compared.statistics
  (found,) = table[(table['row'] == row) & (table['number'] == number)].to_dict(
    'records'
  )
  return found


def cells(compared, *questions):
  return comparison_table.table(compared, questions).cells.to_numpy().tolist()


def over_seeds(*values):
  lines = pd.DataFrame({'key': 'a', 'value': values})
  return comparison.over_seeds(lines, ['key']).iloc[0]


@pytest.mark.parametrize(
  ('values', 'mean', 'deviation'),
  [
    # Squared distances from 7 / 3: 16, 1 and 25, each over 9.
    ((1.0, 2.0, 4.0), 7 / 3, math.sqrt(42 / 9 / 2)),
    ((2.0,), 2.0, math.nan),
    # A run that diverged does not vanish.
    ((1.0, math.nan), math.nan, math.nan),
    ((1.0, math.inf), math.inf, math.nan),
  ],
)
def test_statistic_is_the_mean_and_the_sample_deviation(values, mean, deviation):
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    found = over_seeds(*values)
  assert found['mean'] == pytest.approx(mean, nan_ok=True)
  assert found['deviation'] == pytest.approx(deviation, nan_ok=True)
  assert found['runs'] == len(values)


def test_the_deviation_of_one_run_is_over_its_draws_of_labels(tmp_path):
  own = {_KNN: 0.25, f'{_KNN}/deviation': 0.125}
  own |= {f'random_encoder/{key}': value / 2 for key, value in own.items()}
  one = compare(made_runs.run(tmp_path / 'a', evaluation=own))
  assert statistic(one, 0, _KNN)['deviation'] == 0.125
  assert statistic(one, 1, f'random_encoder/{_KNN}')['deviation'] == 0.0625
  other = {_KNN: 0.75, f'{_KNN}/deviation': 0.5}
  made_runs.run(tmp_path / 'b', {'seed': 1}, evaluation=other)
  several = compare(tmp_path / 'a', tmp_path / 'b')
  assert statistic(several, 0, _KNN)['deviation'] == pytest.approx(math.sqrt(0.125))


def test_methods_share_the_rows_of_the_same_inputs(tmp_path):
  linear = 'linear/1%/accuracy'
  compared = of_numbers(
    tmp_path,
    {_KNN: 0.5, f'pixels/{_KNN}': 0.25, f'pixels_pca/{_KNN}': 0.3},
    {_KNN: 0.6, f'pixels/{_KNN}': 0.25, f'pixels/{linear}': 0.2},
    {_KNN: 0.7, f'pixels/{_KNN}': 0.125},
  )
  assert cells(compared, _KNN, linear) == [
    ['m0', '1', '50.0%', '-'],
    ['m0: pixels, PCA', '1', '30.0%', '-'],
    ['m1', '1', '60.0%', '-'],
    ['m2', '1', '70.0%', '-'],
    ['m2: pixels', '1', '12.5%', '-'],
    ['pixels', '1', '25.0%', '20.0%'],
  ]


def test_a_number_is_taken_over_the_runs_that_have_it(tmp_path):
  compared = compare(
    made_runs.run(tmp_path / 'a', evaluation={_KNN: 0.25}),
    made_runs.run(tmp_path / 'b', {'seed': 1}, evaluation={'lars/1%/accuracy': 0.5}),
  )
  assert cells(compared, _KNN, 'lars/1%/accuracy', 'loss') == [
    ['dcco', '2', '25.0% (n=1)', '50.0% (n=1)', '1 ± 0']
  ]


def test_rows_of_unfinished_runs_say_so(tmp_path):
  short = {'client_work/loss': [9.0]}
  compared = compare(
    made_runs.run(tmp_path / 'a', {'method': 'fedavg'}, short),
    made_runs.run(tmp_path / 'b', {'seed': 1}, short),
    made_runs.run(tmp_path / 'c'),
  )
  assert cells(compared, 'loss', 'seconds') == [
    ['fedavg', '1 (unfinished)', '9', '-'],
    ['dcco', '1 (1 unfinished left out)', '1', '-'],
  ]


def test_as_many_labels_are_one_question_whatever_their_share(tmp_path):
  compared = of_numbers(
    tmp_path,
    {'labels/10%': 145, 'knn/10%/accuracy': 0.5},
    {'labels/100%': 145, 'knn/100%/accuracy': 0.25},
    {'labels/100%': 1437, 'knn/100%/accuracy': 0.75},
  )
  questions = comparison.choose(compared)
  assert [comparison.title(q) for q in questions] == [
    'knn 145 labels',
    'knn 1437 labels',
  ]
  assert [line[2:] for line in cells(compared, *questions)] == [
    ['50.0%', '-'],
    ['25.0%', '-'],
    ['-', '75.0%'],
  ]


def test_models_of_a_method_are_rows_below_it(tmp_path):
  compared = of_numbers(
    tmp_path,
    {
      _KNN: 0.5,
      'clusters/mean/knn/1%/accuracy': 0.6,
      'clusters/best/knn/1%/accuracy': 0.9,
      'clusters/cluster_0/knn/1%/accuracy': 0.9,
    },
    {_KNN: 0.7, 'teacher/accuracy': 0.25, 'student/accuracy': 0.5},
  )
  questions = comparison.choose(compared)
  assert [comparison.title(q) for q in questions] == ['knn 1%', 'classifier']
  table = comparison_table.table(compared, questions)
  assert [line[0:1] + line[2:] for line in table.cells.to_numpy().tolist()] == [
    ['m0', '50.0%', '-'],
    ['m0: mean of models', '60.0%', '-'],
    ['m0: best of models *', '90.0%', '-'],
    ['m1', '70.0%', '-'],
    ['m1: teacher', '-', '25.0%'],
    ['m1: student', '-', '50.0%'],
  ]
  # What was chosen by the test examples is said, and is not the best.
  (note,) = table.notes
  assert note.startswith('* The best by these test examples themselves')
  assert table.best == {(3, 2)}
  # Rows that have none of the numbers are left out, but for the groups' own.
  assert [line[0] for line in cells(compared, 'classifier/accuracy')] == [
    'm0',
    'm1',
    'm1: teacher',
    'm1: student',
  ]


def test_a_model_chosen_by_a_validation_split_has_no_mark(tmp_path):
  best = 'clusters/best/knn/1%/accuracy'
  compared = of_numbers(tmp_path, {_KNN: 0.5, best: 0.9, f'validation/{best}': 0.8})
  assert [row.name for row in compared.rows] == ['m0', 'm0: best of models']
  assert not compared.notes


def test_usual_columns_are_accuracies_that_say_something_and_costs(tmp_path):
  made_runs.run(
    tmp_path / 'a',
    {'method': 'a'},
    system={'seconds': [1.0, 1.0, 1.0]},
    evaluation={_KNN: 0.5, 'knn/1%/recall/0': 0.1, f'validation/{_KNN}': 0.5},
  )
  made_runs.run(
    tmp_path / 'b',
    {'method': 'b'},
    {'bytes_up': [1, 2, 3], 'loss': [3.0, 2.0, 1.0]},
    {'seconds': [1.0, 1.0, 1.0]},
    {
      _KNN: 0.5,
      'knn/1%/balanced_accuracy': 0.509,
      'lars/1%/accuracy': 0.5,
      'lars/1%/balanced_accuracy': 0.25,
      'retrieval/recall_at_1': 0.5,
      'retrieval/recall_at_5': 0.5,
    },
  )
  one_only = [
    'lars/1%/accuracy',
    'lars/1%/balanced_accuracy',
    'retrieval/recall_at_1',
    'bytes',
  ]
  # What several groups answer comes first. Losses of two methods are not compared.
  both = compare(tmp_path / 'a', tmp_path / 'b')
  assert comparison.choose(both) == [_KNN, 'seconds', *one_only]
  alone = compare(tmp_path / 'b')
  assert comparison.choose(alone) == [_KNN, *one_only[:3], 'loss', 'bytes', 'seconds']


def test_losses_of_one_objective_are_compared(tmp_path):
  for name in 'ab':
    made_runs.run(tmp_path / name, {'method': name, 'objective': 'simclr'})
  assert comparison.choose(compare(tmp_path / 'a', tmp_path / 'b')) == ['loss']


_CLUSTER = 'clusters/cluster_0/knn/1%/accuracy'
_OF_CLUSTERS = {_CLUSTER: 0.5, 'clusters/mean/knn/1%/accuracy': 0.5}
_RECALL, _BALANCED = 'knn/1%/recall/0', 'knn/1%/balanced_accuracy'
_MANY = {_KNN: 0.5, _RECALL: 0.1, _BALANCED: 0.5, _LINEAR: 0.5, 'labels/10%': 9}
_DEVIATION = f'{_KNN}/deviation'


@pytest.mark.parametrize(
  ('numbers', 'patterns', 'expected'),
  [
    # Single clusters where a pattern names them.
    (_OF_CLUSTERS, (), [_KNN]),
    (_OF_CLUSTERS, ['clusters/*'], [_CLUSTER, _KNN]),
    # Balanced accuracy where there is no other.
    ({'clients/balanced_accuracy': 0.5}, (), ['clients/balanced_accuracy']),
    # Recalls where a pattern names them.
    (_MANY, [_RECALL, 'knn/*/acc*'], [_KNN, _RECALL]),
    (_MANY, ['knn/*'], [_KNN, _BALANCED]),
    # A number has two names: by the share of the labels, and by their count.
    (_MANY, [_LINEAR], ['linear/9 labels/accuracy']),
    (_MANY, ['*9 labels*'], ['linear/9 labels/accuracy']),
    # A deviation over draws is no accuracy.
    ({_KNN: 0.5, _DEVIATION: 0.1}, (), [_KNN]),
    ({_KNN: 0.5, _DEVIATION: 0.1}, ['knn/*'], [_KNN]),
  ],
)
def test_columns_are_chosen_by_name_and_pattern(tmp_path, numbers, patterns, expected):
  compared = of_numbers(tmp_path, numbers)
  assert comparison.choose(compared, patterns) == expected
  with pytest.raises(ValueError, match=r"'svm/\*', which none .* (knn|clients|clus)"):
    comparison.choose(compared, [*patterns, 'svm/*'])


def test_a_deviation_over_draws_is_never_the_best(tmp_path):
  numbers = [{_KNN: 0.5, _DEVIATION: 0.1}, {_KNN: 0.4, _DEVIATION: 0.2}]
  compared = of_numbers(tmp_path, *numbers)
  assert comparison_table.table(compared, [_KNN, _DEVIATION]).best == {(0, 2)}


def named(tmp_path, *numbers):
  """Compares methods by accuracy, loss, seconds and a baseline's accuracy."""
  for k, (accuracy, loss, seconds, baseline) in enumerate(numbers):
    evaluation = {_KNN: accuracy}
    if baseline:
      evaluation[f'random_encoder/{_KNN}'] = baseline
    made_runs.run(
      tmp_path / f'm{k}',
      {'method': f'm{k}', 'objective': 'simclr'},
      {'loss': [loss] * 3},
      {'seconds': [seconds] * 3},
      evaluation,
    )
  return compare(*(tmp_path / f'm{k}' for k in range(len(numbers))))


def test_the_best_of_a_column_is_the_largest_and_costs_have_none(tmp_path):
  compared = named(
    tmp_path,
    (0.5, 1.0, 3.0, 0.9),
    # Written the same, 70.0%: both are best.
    (0.7, 2.0, 2.0, None),
    (0.70001, 3.0, 1.0, None),
    (math.nan, 1.0, 1.0, None),
  )
  questions = [_KNN, 'loss', 'seconds']
  # Row 1 is the baseline of the first; losses and seconds have no best.
  best = comparison_table.table(compared, questions).best
  assert best == {(2, 2), (3, 2)}
  alone = compare(tmp_path / 'm0')
  assert not comparison_table.table(alone, questions).best


def test_groups_are_ordered_by_a_number_with_those_without_it_last(tmp_path):
  compared = named(
    tmp_path, (math.nan, 1.0, 2.0, None), (0.5, 1.0, 3.0, 0.9), (0.7, 1.0, 1.0, None)
  )
  assert comparison.ordered(compared, 'knn 1%') == [2, 1, 0]
  assert comparison.ordered(compared, 'seconds') == [2, 0, 1]
  with pytest.raises(ValueError, match="sort_by is 'svm'; the numbers are knn/1%/acc"):
    comparison.ordered(compared, 'svm')
