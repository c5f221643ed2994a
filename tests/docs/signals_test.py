"""How signals rank the runs of the leaderboard, of folders that are written here."""

import json

import pytest

from docs.leaderboard import boards
from docs.signals import on_boards
from tff_ssl.evaluation import signals

_BENCHMARK = boards.read()
_BOARD = _BENCHMARK.boards['digits_silo']


def _write(folder, run, seed, accuracy, **own):
  """Leaves the numbers of a run: `own` is relative to before training, otherwise 1."""
  numbers = {_BOARD.column: accuracy, f'validation/{_BOARD.column}': accuracy}
  for name in signals.NAMES:
    numbers[f'random_encoder/signals/{name}'] = 2.0
    numbers[f'signals/{name}'] = 2.0 * own.get(name, 1.0)
  path = run.folder(folder, seed) / 'evaluation.json'
  path.parent.mkdir(parents=True)
  path.write_text(json.dumps(numbers))


def test_ranks_are_those_of_the_results_of_a_board(tmp_path):
  """Of five runs all have the order of accuracies, but for spread and rank."""
  methods = [*_BENCHMARK.methods.values()][:5]
  stored = {}
  for i, method in enumerate(methods):
    for rate, accuracy in zip(method.rates, (0.1, 0.2, 0.1), strict=True):
      tuning = _BENCHMARK.tuning_run(_BOARD, method, rate)
      stored[tuning.key, _BENCHMARK.tuning_seed, boards.tuning_column(_BOARD)] = (
        accuracy
      )
    # A run of another rate than the chosen one is no result.
    other = boards.run(_BOARD, method, method.rates[0])
    _write(tmp_path, other, 0, 1 - i / 10)
    run = boards.run(_BOARD, method, method.rates[1])
    own = dict.fromkeys(signals.NAMES, 2.0**i) | {'spread': 9.0 - i, 'rank': i % 2}
    _write(tmp_path, run, 0, 0.5 + i / 10, **own)
  rows = on_boards.correlations(_BENCHMARK, tmp_path, stored)
  found = {row['signal']: row['digits_silo, 5 runs'] for row in rows}
  assert (found['view_ratio'], found['spread'], found['rank']) == (
    '1.00',
    '-1.00',
    '0.00',
  )
  assert {*rows[0]} == {'signal', 'digits_silo, 5 runs'}


def test_a_folder_without_results_is_refused(tmp_path):
  with pytest.raises(ValueError, match='has no results of the leaderboard'):
    on_boards.correlations(_BENCHMARK, tmp_path / 'nowhere', {})


@pytest.mark.parametrize(
  ('rank', 'chosen'),
  [
    # The highest rate has the largest ratio: 70 in place of 90 %.
    (1.0, '20.0'),
    # Its light is red, so that the middle one is taken, the best.
    (0.4, '0.0'),
  ],
)
def test_loss_of_the_rate_that_signals_choose(tmp_path, rank, chosen):
  method = _BENCHMARK.methods['ssd']
  accuracies = (0.8, 0.9, 0.7)
  for i, (rate, accuracy) in enumerate(zip(method.rates, accuracies, strict=True)):
    run = _BENCHMARK.tuning_run(_BOARD, method, rate)
    own = rank if i == 2 else 1.0
    _write(
      tmp_path, run, _BENCHMARK.tuning_seed, accuracy, view_ratio=3.0 + i, rank=own
    )
  assert on_boards.rates(_BENCHMARK, tmp_path) == [
    {
      'board': 'digits_silo',
      'methods': 1,
      'largest view_ratio': chosen,
      'any': '10.0',
      'worst': '20.0',
    }
  ]
