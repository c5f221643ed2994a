import math

import pytest

from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_columns


def row(count=1, note='', deviation=math.nan, **numbers):
  return comparison.ComparisonRow(
    'a',
    count,
    note,
    {
      name: comparison.Statistic(value, deviation, count)
      for name, value in numbers.items()
    },
  )


ROWS = [
  row(**{'knn/1%/accuracy': 0.5, 'knn/1%/recall/0': 0.1, 'loss': 2.0, 'seconds': 1.0}),
  row(
    **{
      'knn/1%/accuracy': 0.5,
      'knn/1%/balanced_accuracy': 0.509,
      'lars/1%/accuracy': 0.5,
      'lars/1%/balanced_accuracy': 0.25,
      'bytes': 8.0,
    }
  ),
]


def test_usual_columns_are_accuracies_that_say_something_and_costs():
  assert comparison_columns.choose(ROWS) == [
    'knn/1%/accuracy',
    'lars/1%/accuracy',
    'lars/1%/balanced_accuracy',
    'loss',
    'bytes',
    'seconds',
  ]


def test_single_clusters_are_shown_where_a_pattern_names_them():
  names = ['clusters/cluster_0/knn/1%/accuracy', 'clusters/mean/knn/1%/accuracy']
  several = [row(**dict.fromkeys(names, 0.5))]
  assert comparison_columns.choose(several) == names[1:]
  assert comparison_columns.choose(several, ['clusters/*']) == names


def test_balanced_accuracy_stands_alone_where_there_is_no_other():
  name = 'clients/balanced_accuracy'
  assert comparison_columns.choose([row(**{name: 0.5})]) == [name]


def test_columns_are_chosen_by_name_and_pattern():
  names = ['seconds', 'knn/*/recall/*', 'knn/1%/accuracy']
  assert comparison_columns.choose(ROWS, names) == [
    'knn/1%/accuracy',
    'knn/1%/recall/0',
    'seconds',
  ]


def test_a_pattern_that_matches_nothing_is_refused():
  with pytest.raises(
    ValueError, match=r"'svm/\*', which none .* knn/1%/accuracy, lars"
  ):
    comparison_columns.choose(ROWS, ['loss', 'svm/*'])


@pytest.mark.parametrize(
  ('name', 'mean', 'deviation', 'expected'),
  [
    ('knn/1%/accuracy', 0.4219, math.nan, '42.2%'),
    ('knn/1%/balanced_accuracy', 0.5, 0.0123, '50.0 ± 1.2%'),
    ('knn/1%/recall/3', 1.0, 0.0, '100.0 ± 0.0%'),
    ('loss', 124.7837, math.nan, '124.8'),
    ('loss', 124.7837, 1.25, '124.8 ± 1.2'),
    ('loss', 2036.8, 12.7, '2037 ± 13'),
    ('loss', 0.93717, 0.00213, '0.9372 ± 0.0021'),
    ('bytes', 0.0, math.nan, '0 B'),
    ('bytes', 999.0, math.nan, '999 B'),
    ('bytes', 1.5e11, math.nan, '150 GB'),
    ('bytes', 1.5e6, 2e4, '1.500 ± 0.020 MB'),
    ('bytes', 4000.0, 0.0, '4 ± 0 kB'),
    ('labels/1%', 500.0, math.nan, '500'),
    ('loss', math.nan, math.nan, '-'),
  ],
)
def test_numbers_are_written_with_their_unit(name, mean, deviation, expected):
  one = row(count=2, deviation=deviation, **{name: mean})
  assert (
    comparison_columns.cells([one], [name])[0][comparison_columns.title(name)]
    == expected
  )


def test_cells_say_what_is_missing_and_what_not_all_runs_have():
  rows = [
    row(count=3, note='1 unfinished left out', loss=1.0),
    comparison.ComparisonRow(
      'b', 3, '', {'seconds': comparison.Statistic(2.0, math.nan, 1)}
    ),
  ]
  assert comparison_columns.cells(rows, ['loss', 'seconds']) == [
    {
      'group': 'a',
      'runs': '3 (1 unfinished left out)',
      'final loss': '1',
      'seconds a round': '-',
    },
    {
      'group': 'b',
      'runs': '3',
      'final loss': '-',
      'seconds a round': '2 (n=1)',
    },
  ]


def test_a_deviation_over_draws_is_no_accuracy():
  name, deviation = 'knn/2%/accuracy', 'knn/2%/accuracy/deviation'
  rows = [row(**{name: 0.5, deviation: 0.1}), row(**{name: 0.4, deviation: 0.2})]
  assert (
    comparison_columns.choose(rows)
    == comparison_columns.choose(rows, ['knn/*'])
    == [name]
  )
  assert comparison_columns.choose(rows, ['*deviation']) == [deviation]
  assert comparison_columns.best(rows, [name, deviation]) == {(0, 'knn 2%')}


@pytest.mark.parametrize(
  ('name', 'title'),
  [
    ('linear/10%/accuracy', 'linear 10%'),
    ('linear/10%/balanced_accuracy', 'linear 10% balanced'),
    ('linear/10%/recall/3', 'linear 10% recall 3'),
    ('bytes', 'bytes in all'),
  ],
)
def test_titles(name, title):
  assert comparison_columns.title(name) == title


def test_recalls_are_shown_where_a_pattern_names_them():
  assert comparison_columns.choose(ROWS, ['knn/*']) == [
    'knn/1%/accuracy',
    'knn/1%/balanced_accuracy',
  ]
  assert comparison_columns.choose(ROWS, ['*recall*']) == ['knn/1%/recall/0']


def _named(name, accuracy, loss=1.0, seconds=1.0, is_baseline=False):
  numbers = {'knn/1%/accuracy': accuracy, 'loss': loss, 'seconds': seconds}
  statistics = {k: comparison.Statistic(v, math.nan, 1) for k, v in numbers.items()}
  return comparison.ComparisonRow(name, 1, '', statistics, is_baseline)


def test_the_best_of_a_column_is_largest_or_smallest():
  rows = [
    _named('a', 0.5, loss=1.0, seconds=3.0),
    _named('a: random', 0.9, seconds=0.1, is_baseline=True),
    # Written the same, 70.0%: both are best.
    _named('b', 0.7, loss=2.0, seconds=2.0),
    _named('c', 0.70001, loss=3.0, seconds=1.0),
    _named('d', math.nan),
  ]
  names = ['knn/1%/accuracy', 'loss', 'seconds']
  # Nobody knows whether less of a loss is better: objectives differ.
  assert comparison_columns.best(rows, names) == {
    (2, 'knn 1%'),
    (3, 'knn 1%'),
    (3, 'seconds a round'),
    (4, 'seconds a round'),
  }
  assert not comparison_columns.best(rows[:2], names)


def test_groups_are_ordered_by_a_number_with_those_without_it_last():
  rows = [
    _named('a', math.nan, seconds=2.0),
    _named('b', 0.5, seconds=3.0),
    _named('b: random', 0.9, is_baseline=True),
    _named('c', 0.7, seconds=1.0),
  ]
  assert comparison_columns.ordered(rows, 'knn 1%') == ['c', 'b', 'a']
  assert comparison_columns.ordered(rows, 'seconds') == ['c', 'a', 'b']
  with pytest.raises(ValueError, match="order is 'svm'; the numbers are knn/1%/acc"):
    comparison_columns.ordered(rows, 'svm')
