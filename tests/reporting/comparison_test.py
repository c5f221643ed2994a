import csv
import math
import warnings

import numpy as np
import pytest

from tests.reporting import fabricate
from tff_ssl.reporting import comparison
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader


def rows(*folders):
  return comparison.rows(
    run_groups.group([run_reader.read(folder) for folder in folders])
  )


def test_statistic_is_the_mean_and_the_sample_deviation():
  # 1, 2, 4: mean 7 / 3; squared distances 16, 1 and 25, each over 9.
  found = comparison.statistic([1.0, 2.0, 4.0])
  assert found.mean == pytest.approx(7 / 3)
  assert found.deviation == pytest.approx(math.sqrt(42 / 9 / 2))
  assert found.count == 3


def test_one_run_has_no_deviation():
  found = comparison.statistic([2.0])
  assert (found.mean, found.count) == (2.0, 1)
  assert math.isnan(found.deviation)


def test_a_run_that_diverged_does_not_vanish_from_the_mean():
  assert math.isnan(comparison.statistic([1.0, math.nan]).mean)
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    found = comparison.statistic([1.0, math.inf])
  assert found.mean == math.inf
  assert math.isnan(found.deviation)


def test_numbers_of_a_run(tmp_path):
  folder = fabricate.run(
    tmp_path / 'a',
    metrics={
      'client_work/loss': [5.0, 4.0, 3.5],
      'client_work/bytes_down': [10, 20, 30],
      'client_work/bytes_up': [1, 2, 3],
    },
    # The first round compiles.
    system={'seconds': [60.0, 1.0, 2.0]},
    evaluation={'knn/1%/accuracy': 0.5, 'knn/1%/recall/0': 0.25},
  )
  assert comparison.run_numbers(run_reader.read(folder)) == {
    'knn/1%/accuracy': 0.5,
    'knn/1%/recall/0': 0.25,
    'loss': 3.5,
    'bytes': 66.0,
    'seconds': 2.0,
  }


def test_unrecorded_numbers_are_absent(tmp_path):
  folder = fabricate.run(tmp_path / 'a', metrics={'other': [1, 2, 3]})
  assert comparison.run_numbers(run_reader.read(folder)) == {}


def test_columns_are_found_by_their_name_or_its_last_part():
  table = [
    {'round': 1.0, 'train/loss': 0.5, 'loss_of_another': 2.0, 'empty': math.nan},
    {'round': 3.0, 'train/loss': math.nan, 'loss_of_another': 2.0, 'empty': math.nan},
  ]
  found = comparison.by_round(table, 'loss')
  assert list(found) == [1, 3]
  np.testing.assert_equal(list(found.values()), [0.5, math.nan])
  assert comparison.by_round(table, 'train/loss').keys() == {1, 3}
  assert comparison.by_round(table, 'empty') == {}
  assert comparison.by_round(table, 'absent') == {}
  assert comparison.by_round([], 'loss') == {}


@pytest.fixture
def seeds(tmp_path):
  """Three runs of one algorithm and one of another, with random numbers."""
  generator = np.random.default_rng(0)
  accuracies, losses = generator.random(4), generator.normal(size=(4, 3))
  folders = []
  for i in range(4):
    flags = {'seed': i} if i < 3 else {'algorithm': 'fedavg_cco'}
    evaluation = {'linear/10%/accuracy': accuracies[i]}
    if i < 2:
      evaluation['random_encoder/linear/10%/accuracy'] = accuracies[i] / 2
    metrics = {'client_work/loss': losses[i]}
    folders.append(
      fabricate.run(tmp_path / str(i), flags, metrics, evaluation=evaluation)
    )
  return folders, accuracies, losses


def test_rows_are_means_and_deviations_over_seeds(seeds):
  folders, accuracies, losses = seeds
  dcco, random, fedavg = rows(*folders)
  for row, name, values in (
    (dcco, 'linear/10%/accuracy', accuracies[:3]),
    (dcco, 'loss', losses[:3, -1]),
    (random, 'linear/10%/accuracy', accuracies[:2] / 2),
  ):
    assert row.numbers[name].count == len(values)
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    assert row.numbers[name].mean == pytest.approx(mean)
    assert row.numbers[name].deviation == pytest.approx(
      math.sqrt(squares / (len(values) - 1))
    )
  assert fedavg.numbers['linear/10%/accuracy'].mean == accuracies[3]
  assert [row.name for row in (dcco, random, fedavg)] == [
    'algorithm=dcco',
    'algorithm=dcco: random encoder',
    'algorithm=fedavg_cco',
  ]
  assert [row.count for row in (dcco, random, fedavg)] == [3, 2, 1]
  assert list(random.numbers) == ['linear/10%/accuracy']
  assert not any(name.startswith('random') for name in dcco.numbers)


def test_the_deviation_of_one_run_is_over_its_draws_of_labels(tmp_path):
  name = 'knn/1%/accuracy'
  own = {name: 0.25, f'{name}/deviation': 0.125}
  own |= {f'random_encoder/{key}': value / 2 for key, value in own.items()}
  (one, random) = rows(fabricate.run(tmp_path / 'a', evaluation=own))
  assert one.numbers[name] == comparison.Statistic(0.25, 0.125, 1)
  assert random.numbers[name] == comparison.Statistic(0.125, 0.0625, 1)
  other = {name: 0.75, f'{name}/deviation': 0.5}
  fabricate.run(tmp_path / 'b', {'seed': 1}, evaluation=other)
  several, _ = rows(tmp_path / 'a', tmp_path / 'b')
  assert several.numbers[name].deviation == pytest.approx(math.sqrt(0.125))


def test_a_number_is_taken_over_the_runs_that_have_it(tmp_path):
  (row,) = rows(
    fabricate.run(tmp_path / 'a', evaluation={'knn/1%/accuracy': 0.25}),
    fabricate.run(tmp_path / 'b', {'seed': 1}, evaluation={'lars/1%/accuracy': 0.5}),
  )
  assert row.count == 2
  assert row.numbers['knn/1%/accuracy'].count == 1
  assert row.numbers['lars/1%/accuracy'].mean == 0.5
  assert row.numbers['loss'].count == 2


def test_rows_of_unfinished_runs_say_so(tmp_path):
  short = {'client_work/loss': [9.0]}
  alone, partial = rows(
    fabricate.run(tmp_path / 'a', {'algorithm': 'fedavg_cco'}, short),
    fabricate.run(tmp_path / 'b', {'seed': 1}, short),
    fabricate.run(tmp_path / 'c'),
  )
  assert alone.note == 'unfinished'
  assert partial.note == '1 unfinished left out'
  assert (partial.count, partial.numbers['loss'].mean) == (1, 1.0)


def test_csv_reads_back_exactly(seeds, tmp_path):
  folders, accuracies, _ = seeds
  compared = rows(*folders)
  comparison.write_csv(tmp_path / 'out.csv', compared, ['linear/10%/accuracy', 'loss'])
  with (tmp_path / 'out.csv').open(newline='') as file:
    lines = list(csv.DictReader(file))
  assert [(line['group'], line['number']) for line in lines] == [
    ('algorithm=dcco', 'linear/10%/accuracy'),
    ('algorithm=dcco', 'loss'),
    ('algorithm=dcco: random encoder', 'linear/10%/accuracy'),
    ('algorithm=fedavg_cco', 'linear/10%/accuracy'),
    ('algorithm=fedavg_cco', 'loss'),
  ]
  first = compared[0].numbers['linear/10%/accuracy']
  assert float(lines[0]['mean']) == first.mean
  assert float(lines[0]['deviation']) == first.deviation
  assert [line['runs'] for line in lines] == ['3', '3', '2', '1', '1']
  assert float(lines[3]['mean']) == accuracies[3]
  assert lines[3]['deviation'] == ''
