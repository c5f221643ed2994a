"""How signals rank the runs of the leaderboard, of folders that are written here."""

import dataclasses
import json
import shutil

import pytest

from docs.claims import figures
from docs.leaderboard import boards
from docs.signals import on_boards
from tff_ssl.evaluation import signals

_BENCHMARK = boards.read()
_BOARD = _BENCHMARK.boards['digits_silo']


def _write(folder, run, seed, **own):
  """Leaves the numbers of a run: `own` is relative to before training, otherwise 1."""
  numbers = {}
  for name in signals.NAMES:
    numbers[f'random_encoder/signals/{name}'] = 2.0
    numbers[f'signals/{name}'] = 2.0 * own.get(name, 1.0)
  path = run.folder(folder, seed) / 'evaluation.json'
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps(numbers))


def test_ranks_are_those_of_the_results_of_a_board(tmp_path):
  """Of five runs all have the order of accuracies, but for spread and rank.

  The others are of another norm, and have the opposite order.
  """
  by_norm = {'group': [], 'batch': []}
  for method in _BENCHMARK.methods.values():
    by_norm[boards.norm(_BOARD, method)].append(method)
  methods = by_norm['group'][:5] + by_norm['batch'][:4]
  stored = {}
  for i, method in enumerate(methods):
    for rate, accuracy in zip(method.rates, (0.1, 0.2, 0.1), strict=True):
      tuning = _BENCHMARK.tuning_run(_BOARD, method, rate)
      stored[tuning.key, _BENCHMARK.tuning_seed, boards.tuning_column(_BOARD)] = (
        accuracy
      )
    # A run of another rate than the chosen one is no result.
    other = boards.run(_BOARD, method, method.rates[0])
    _write(tmp_path, other, 0)
    stored[other.key, 0, _BOARD.column] = 1 - i / 10
    run = boards.run(_BOARD, method, method.rates[1])
    sign = -1 if method in by_norm['batch'] else 1
    own = dict.fromkeys(signals.NAMES, 2.0 ** (sign * i))
    _write(tmp_path, run, 0, **own | {'spread': 9.0 - i, 'rank': i % 2})
    stored[run.key, 0, _BOARD.column] = 0.5 + i / 10
  kept = on_boards.keep(_BENCHMARK, tmp_path, tmp_path / 'boards.csv')
  rows = on_boards.correlations(_BENCHMARK, kept, stored, 'group')
  found = {row['signal']: row['digits_silo, 5 runs'] for row in rows}
  assert (found['view_ratio'], found['spread'], found['rank']) == (
    '1.00',
    '-1.00',
    '0.00',
  )
  assert {*rows[0]} == {'signal', 'digits_silo, 5 runs'}
  others = on_boards.correlations(_BENCHMARK, kept, stored, 'batch')
  found = {row['signal']: row['digits_silo, 4 runs'] for row in others}
  assert found['view_ratio'] == '-1.00'


def test_signals_are_kept_without_their_folders(tmp_path):
  folder, path = tmp_path / 'runs', tmp_path / 'boards.csv'
  runs = [
    boards.run(_BOARD, _BENCHMARK.methods['ssd'], rate) for rate in (0.01, 0.03, 0.1)
  ]
  for run in runs[:2]:
    _write(folder, run, 1, spread=1 / 3)
  first = on_boards.keep(_BENCHMARK, folder, path)
  assert [*first] == [(run.key, 1) for run in runs[:2]]
  assert first[runs[0].key, 1]['signals/spread'] == 0.6667
  assert first[runs[0].key, 1]['random_encoder/signals/spread'] == 2
  text = path.read_text()
  shutil.rmtree(folder)
  assert on_boards.keep(_BENCHMARK, folder, path) == first
  assert path.read_text() == text
  # What is measured again takes the place of what is kept.
  _write(folder, runs[1], 1, spread=3.0)
  _write(folder, runs[2], 1)
  again = on_boards.keep(_BENCHMARK, folder, path)
  assert [*again] == [(run.key, 1) for run in runs]
  assert again[runs[0].key, 1] == first[runs[0].key, 1]
  assert again[runs[1].key, 1]['signals/spread'] == 6
  # Of a method that takes part no longer nothing is left.
  without = {k: v for k, v in _BENCHMARK.methods.items() if k != 'ssd'}
  less = dataclasses.replace(_BENCHMARK, methods=without)
  assert on_boards.keep(less, folder, path) == {}


def test_a_run_that_has_not_ended_is_left_out(tmp_path):
  run = boards.run(_BOARD, _BENCHMARK.methods['ssd'], 0.1)
  folder = run.folder(tmp_path / 'runs', 1)
  folder.mkdir(parents=True)
  (folder / 'evaluation.json').write_text('{"linear/10%/accuracy": 0.5}')
  path = tmp_path / 'boards.csv'
  assert on_boards.keep(_BENCHMARK, tmp_path / 'runs', path) == {}
  (folder / 'encoder.md').touch()
  with pytest.raises(ValueError, match='seed_1 has no signals; '):
    on_boards.keep(_BENCHMARK, tmp_path / 'runs', path)


def test_what_is_kept_is_of_stored_results():
  """Otherwise `python -m docs.signals --leaderboard=RUNS` writes it again."""
  kept = on_boards.PATH.read_text()
  stored = figures.read(boards.FOLDER / 'figures.csv')
  known = {(key, str(seed)) for key, seed, _ in stored}
  rows = [line.split(',') for line in kept.splitlines()[1:]]
  assert rows
  assert {(row[1], row[2]) for row in rows} <= known


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
  accuracies, stored = (0.8, 0.9, 0.7), {}
  for i, (rate, accuracy) in enumerate(zip(method.rates, accuracies, strict=True)):
    run, seed = _BENCHMARK.tuning_run(_BOARD, method, rate), _BENCHMARK.tuning_seed
    _write(tmp_path, run, seed, view_ratio=3.0 + i, rank=rank if i == 2 else 1.0)
    stored[run.key, seed, boards.tuning_column(_BOARD)] = accuracy
  kept = on_boards.keep(_BENCHMARK, tmp_path, tmp_path / 'boards.csv')
  assert on_boards.rates(_BENCHMARK, kept, stored) == [
    {
      'board': 'digits_silo',
      'methods': 1,
      'largest view_ratio': chosen,
      'any': '10.0',
      'worst': '20.0',
    }
  ]
