"""The best round by the validation split, of run folders whose numbers are given."""

import numpy as np
import pytest

from tests.worlds import made_runs
from tff_ssl.reporting import best_round
from tff_ssl.reporting import comparison
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader

_KNN, _LINEAR = 'knn/10%/accuracy', 'linear/10%/accuracy'


def _run(folder, seed, linear, validation, knn_validation=None):
  metrics = {
    'client_work/loss': [3.0, 2.0, 1.0],
    _LINEAR: linear,
    f'validation/{_LINEAR}': validation,
  }
  if knn_validation:
    metrics |= {_KNN: [0.2, 0.3, 0.4], f'validation/{_KNN}': knn_validation}
  evaluation = {
    name: cells[-1] for name, cells in metrics.items() if 'loss' not in name
  }
  evaluation['random_encoder/linear/10%/accuracy'] = 0.125
  made_runs.run(folder, {'seed': seed}, metrics, evaluation=evaluation)
  return run_reader.read(folder)


def test_the_round_is_that_of_validation_and_the_number_that_of_the_test(tmp_path):
  # By the test split it would be round 1, and round 2.
  first = _run(tmp_path / 'a', 0, [0.9, 0.6, 0.5], [0.1, 0.7, 0.3])
  second = _run(tmp_path / 'b', 1, [0.5, 0.9, 0.8], [0.1, 0.2, 0.6])
  taken = best_round.take([first, second], 'best')
  assert [run.evaluation['best_round'] for run in taken] == [2, 3]
  compared = comparison.compare(run_groups.group(taken))
  means = [compared.means(name) for name in (_LINEAR, 'best_round', 'loss')]
  assert means[0].to_dict() == {0: pytest.approx((0.6 + 0.8) / 2), 1: 0.125}
  # What training cost is that of all rounds.
  assert [each[0] for each in means[1:]] == [2.5, 1]
  assert comparison.choose(compared) == [_LINEAR, 'loss', 'best_round']
  assert best_round.take([first, second], 'last') == [first, second]


def test_linear_counts_unless_a_number_is_named_and_the_first_of_equals(tmp_path):
  run = _run(tmp_path / 'a', 0, [0.1, 0.2, 0.3], [0.7, 0.7, 0.6], [0.1, 0.2, 0.9])
  for at, expected in (('best', 1), (f'validation/{_KNN}', 3)):
    (taken,) = best_round.take([run], at)
    assert taken.evaluation['best_round'] == expected
    assert taken.evaluation[_KNN] == [0.2, 0.3, 0.4][expected - 1]


def test_of_retrieval_alone_recall_at_ten_chooses(tmp_path):
  at = 'retrieval/left_to_right/recall_at_'
  cells = {f'{at}1': [0.1, 0.2, 0.3], f'{at}10': [0.4, 0.5, 0.6]}
  held_out = {f'validation/{at}1': [1, 2, 3], f'validation/{at}10': [2, 3, 1]}
  folder = made_runs.run(
    tmp_path / 'a',
    {'seed': 0},
    {'client_work/loss': [3.0, 2.0, 1.0], **cells, **held_out},
    evaluation={name: values[-1] for name, values in (cells | held_out).items()},
  )
  run = run_reader.read(folder)
  for named, expected in (('best', 0.5), (f'validation/{at}1', 0.6)):
    (taken,) = best_round.take([run], named)
    assert taken.evaluation[f'{at}10'] == expected


def test_rounds_without_an_evaluation_do_not_count(tmp_path):
  run = _run(tmp_path / 'a', 0, ['', 0.2, 0.3], ['', 0.7, 0.6])
  (taken,) = best_round.take([run], 'best')
  assert taken.evaluation['best_round'] == 2
  assert np.isnan(run.metrics.loc[1, _LINEAR])


def test_no_validation_numbers_and_a_test_number_are_refused(tmp_path):
  folder = made_runs.run(tmp_path / 'a', evaluation={_LINEAR: 0.5})
  run = run_reader.read(folder)
  with pytest.raises(ValueError, match='has no validation numbers in'):
    best_round.take([run], 'best')
  with pytest.raises(ValueError, match=f"has no 'validation/{_KNN}' in metrics.csv"):
    best_round.take([run], f'validation/{_KNN}')
  for at in (_LINEAR, 'first', 'validation/loss'):
    with pytest.raises(ValueError, match='it must be last, best, or the name'):
      best_round.check(at)
