import math

import numpy as np
import pytest

from tests.reporting import conftest
from tests.worlds import made_runs
from tff_ssl.reporting import curves

NAMES = ['linear/1%/accuracy', 'linear/10%/accuracy', 'knn/10%/accuracy', 'loss']
TITLES = [
  'training loss',
  'spread: standard deviation of encodings',
  'bytes down and up, cumulative',
  'seconds of a round',
]


_LINEAR = 'test accuracy, linear 10%'


def by_title(two_groups):
  return {each.title: each for each in curves.quantities(two_groups, NAMES)}


@pytest.mark.parametrize(
  ('options', 'titles'),
  [
    ({}, [_LINEAR, *TITLES]),
    (
      {'every_accuracy': True},
      [_LINEAR, 'test accuracy, linear 1%', 'test accuracy, knn 10%', *TITLES],
    ),
    ({'kinds': ('spread', 'accuracy')}, [_LINEAR, TITLES[1]]),
  ],
)
def test_quantities_are_those_that_a_run_has_and_that_are_asked_for(
  two_groups, options, titles
):
  shown = curves.quantities(two_groups, NAMES, **options)
  assert [each.title for each in shown] == titles


def test_series_are_mean_and_sample_deviation_of_each_round(two_groups):
  losses = np.array([run.metrics['client_work/loss'] for run in two_groups[0].counted])
  found = curves.series(two_groups[0], by_title(two_groups)['training loss'])
  assert list(found.index) == list(range(1, conftest.ROUNDS + 1))
  mean = losses.sum(axis=0) / 3
  deviation = np.sqrt(((losses - mean) ** 2).sum(axis=0) / 2)
  np.testing.assert_allclose(found.T, [mean, deviation])


def test_rounds_that_some_runs_have_are_taken_over_those(tmp_path):
  (group,) = made_runs.groups(
    made_runs.run(tmp_path / '0', {'seed': 0}, {'loss': [1.0, '', 5.0]}),
    made_runs.run(tmp_path / '1', {'seed': 1}, {'loss': [3.0, 7.0, 'nan']}),
  )
  (quantity,) = curves.quantities([group], [])
  found = curves.series(group, quantity)
  assert list(found.index) == [1, 2, 3]
  mean, deviation = found['mean'], found['deviation']
  np.testing.assert_array_equal(mean, [2, 7, 5])
  np.testing.assert_allclose(deviation, [math.sqrt(2), 0, 0])


def test_bytes_add_up_over_the_rounds(two_groups):
  quantity = by_title(two_groups)['bytes down and up, cumulative']
  found = curves.series(two_groups[0], quantity)
  mean, deviation = found['mean'], found['deviation']
  np.testing.assert_array_equal(mean, 10 * np.arange(1, conftest.ROUNDS + 1))
  np.testing.assert_array_equal(deviation, 0)
  assert curves.series(two_groups[1], quantity).empty


def test_losses_of_several_objectives_have_a_panel_each(tmp_path):
  names = ('byol', 'simclr')
  groups = made_runs.groups(
    *(made_runs.run(tmp_path / name, {'objective': name}) for name in names)
  )
  shown = curves.quantities(groups, [])
  assert [each.title for each in shown] == [f'training loss of {n}' for n in names]
  drawn = [[len(curves.series(group, each)) for each in shown] for group in groups]
  assert drawn == [[3, 0], [0, 3]]
