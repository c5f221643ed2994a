import collections
import errno
import json
import math
import os
import pathlib
import signal

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tests import forked
from tests.binaries import launch
from tests.execution import counting
from tests.execution import processes
from tests.runs import toy
from tff_ssl.execution import contexts
from tff_ssl.runs import interruption
from tff_ssl.runs import loop
from tff_ssl.runs import round_table
from tff_ssl.runs import run_folder
from tff_ssl.storage import files

# What must not depend on how often a run was interrupted.
DETERMINISTIC = ('metrics.csv', 'evaluation.json')


@pytest.fixture(scope='module')
def tff_context():
  """As the processes have it that are stopped: their bytes are compared with these."""
  with contexts.local(concurrency=2) as execution:
    yield execution


@pytest.fixture(scope='module')
def uninterrupted(tff_context, tmp_path_factory):
  folder = tmp_path_factory.mktemp('runs') / 'uninterrupted'
  toy.run(folder, tff_context)
  return folder


def contents(folder):
  found = {name: (folder / name).read_bytes() for name in DETERMINISTIC}
  config = json.loads((folder / 'config.json').read_text())
  # The toy is started in two ways.
  del config['command']
  return {**found, 'config.json': config}


def start(folder, seconds_per_round):
  """Starts a run in a process of its own; returns it and its worker's pid."""
  process = forked.Process('tests.runs.toy', str(folder), str(seconds_per_round))
  wait_for_round(folder, 1)
  (worker,) = psutil.Process(process.pid).children()
  assert 'worker' in worker.name()
  return process, worker.pid


def wait_for_round(folder, round):
  processes.wait_for(lambda: launch.rows(folder) >= round)


def test_metrics_csv(uninterrupted):
  table = launch.table(uninterrupted)
  assert list(table[0]) == ['round', 'train/loss', 'seen', 'norm']
  assert [int(row['round']) for row in table] == list(range(1, toy.ROUNDS + 1))
  assert [row['seen'] for row in table] == [row['round'] for row in table]
  evaluated = [int(row['round']) for row in table if row['norm']]
  assert evaluated == [5, 10, 12]
  evaluation = json.loads((uninterrupted / 'evaluation.json').read_text())
  assert evaluation == {'round': 12, 'norm': float(table[-1]['norm'])}


def test_numbers_are_the_algorithms(uninterrupted):
  """The toy's recurrence in NumPy, in float64."""
  mean = np.array([0.1, 0.2, 0.3, 0.4])
  for round, row in enumerate(launch.table(uninterrupted), start=1):
    (dataset,) = toy.cohort_fn(round)
    pixels = [
      element['image'].reshape(-1)[:4] for element in dataset.as_numpy_iterator()
    ]
    update = np.mean(pixels, axis=0) / 255 - mean
    mean = mean + 0.1 * update
    np.testing.assert_allclose(float(row['train/loss']), np.sum(update**2), rtol=1e-5)


def test_system_csv_and_tensorboard(uninterrupted):
  table = launch.table(uninterrupted, 'system.csv')
  assert len(table) == toy.ROUNDS
  for row in table:
    assert float(row['seconds']) > 0
    assert float(row['driver_mib']) > 0
    assert float(row['worker_mib']) > 0
  (events,) = (uninterrupted / 'tensorboard').iterdir()
  tags = collections.defaultdict(list)
  for event in tf.compat.v1.train.summary_iterator(str(events)):
    for value in event.summary.value:
      tags[value.tag].append(event.step)
  assert tags['metrics train/loss'] == list(range(1, toy.ROUNDS + 1))
  assert tags['metrics/norm'] == [5, 10, 12]
  assert 'system/worker_mib' in tags


def test_the_same_flags_give_the_same_bytes(uninterrupted, tff_context, tmp_path):
  toy.run(tmp_path / 'again', tff_context)
  assert contents(tmp_path / 'again') == contents(uninterrupted)


@pytest.mark.long_for(str(int(signal.SIGTERM)))
@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_stopped_and_resumed(uninterrupted, tff_context, tmp_path, number):
  folder = tmp_path / 'run'
  process, worker_pid = start(folder, seconds_per_round=0.2)
  wait_for_round(folder, 5)
  process.send_signal(number)
  _, errors = process.communicate(timeout=30)
  processes.wait_for(lambda: processes.has_ended(worker_pid))
  done = int(launch.table(folder)[-1]['round'])
  assert 5 <= done < toy.ROUNDS
  saved = [path.name for path in sorted((folder / 'checkpoints').iterdir())]
  if number == signal.SIGKILL:
    assert process.returncode == -number
    assert saved[-1] == f'round_{done // 3 * 3:08d}.npz'
  else:
    assert process.returncode == 143
    assert saved[-1] == f'round_{done:08d}.npz'
    assert f'stopped after round {done} of 12' in errors
    assert 'the same command resumes' in errors
  toy.run(folder, tff_context)
  assert contents(folder) == contents(uninterrupted)
  table = launch.table(folder, 'system.csv')
  assert [int(row['round']) for row in table] == list(range(1, toy.ROUNDS + 1))


def test_a_finished_run_is_not_run_again(uninterrupted, tff_context):
  before = contents(uninterrupted)
  state = toy.run(uninterrupted, tff_context)
  assert contents(uninterrupted) == before
  assert state['rounds'] == toy.ROUNDS


def test_an_error_saves_the_last_complete_round(tmp_path):
  def fail():
    raise ZeroDivisionError

  with pytest.raises(ZeroDivisionError):
    counting.run(tmp_path, counting.Counting(fail, at=5), checkpoint_every=100)
  assert (tmp_path / 'checkpoints' / 'round_00000004.npz').exists()
  assert counting.run(tmp_path, counting.Counting())['count'] == 6


@pytest.mark.parametrize('round', [1, 4])
def test_numbers_that_a_checkpoint_counts_must_be_those_written(tmp_path, round):
  counting.run(tmp_path, counting.Counting(), rounds=4, evaluate_fn=evaluate_last)
  path = tmp_path / 'metrics.csv'
  lines = path.read_text().splitlines(keepends=True)
  assert lines[round].startswith(f'{round},{round},{round / 2}')
  lines[round] = lines[round].replace(f',{round / 2}', f',{round / 2 + 4}')
  path.write_text(''.join(lines))
  with pytest.raises(
    ValueError, match=r'metrics\.csv has different numbers for rounds'
  ):
    counting.run(tmp_path, counting.Counting())


def _count(folder, seed):
  with run_folder.RunFolder(folder, {'seed': seed}) as opened:
    return loop.run(counting.Counting(), lambda round: round, opened, 6, None, 0, 3)


def test_a_checkpoint_of_another_round_or_run_is_refused(tmp_path):
  for seed in (1, 2):
    _count(tmp_path / str(seed), seed)
  saved = tmp_path / '1' / 'checkpoints' / 'round_00000006.npz'
  whole = saved.read_bytes()
  for path, message in (
    (saved.with_name('round_00000003.npz'), r'06\.npz is of round 3'),
    (
      tmp_path / '2' / 'checkpoints' / saved.name,
      'round 6 in .* belongs to another run',
    ),
  ):
    saved.write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match=message):
      _count(tmp_path / '1', 1)
  saved.write_bytes(whole)
  assert _count(tmp_path / '1', 1)['count'] == 6


def test_a_disk_that_is_full_for_a_moment_loses_no_round(tmp_path, monkeypatch):
  """The row of round 4 does not fit; the run ends, and goes on with the same bytes."""
  counting.run(tmp_path / 'undisturbed', counting.Counting())
  original = round_table.Table.append
  failed = []

  def append(self, round, values):
    if round == 4 and not failed:
      failed.append(round)
      raise OSError(errno.ENOSPC, 'No space left on device', 'metrics.csv')
    original(self, round, values)

  monkeypatch.setattr(round_table.Table, 'append', append)
  with pytest.raises(OSError, match='No space left'):
    counting.run(tmp_path / 'run', counting.Counting())
  counting.run(tmp_path / 'run', counting.Counting())
  for name in ('metrics.csv', 'checkpoints/round_00000006.npz'):
    disturbed = (tmp_path / 'run' / name).read_bytes()
    assert disturbed == (tmp_path / 'undisturbed' / name).read_bytes()


def test_rows_are_durable_before_the_checkpoint_that_counts_them(tmp_path, monkeypatch):
  synced = []
  original = files.sync

  def sync(path):
    synced.append(pathlib.Path(path).name)
    original(path)

  monkeypatch.setattr(files, 'sync', sync)
  counting.run(tmp_path, counting.Counting(), checkpoint_every=3)
  names = [name.partition('-')[2] or name for name in synced]
  for round in (3, 6):
    at = next(k for k, name in enumerate(names) if f'round_0000000{round}' in name)
    assert {'metrics.csv', 'system.csv'} <= set(names[at - 3 : at])


@pytest.mark.parametrize(
  ('times', 'done', 'status'), [(1, 3, 130), (2, 2, 130)], ids=['finish', 'abandon']
)
def test_ctrl_c(tmp_path, capsys, times, done, status):
  def interrupt():
    for _ in range(times):
      os.kill(os.getpid(), signal.SIGINT)

  before = signal.getsignal(signal.SIGINT)
  with pytest.raises(interruption.Interrupted) as stopped:
    counting.run(tmp_path, counting.Counting(interrupt, at=3), checkpoint_every=100)
  assert stopped.value.code == status
  assert signal.getsignal(signal.SIGINT) is before
  assert f'stopped after round {done} of 6' in capsys.readouterr().err
  assert counting.run(tmp_path, counting.Counting())['count'] == 6
  assert [row['count'] for row in launch.table(tmp_path)] == list('123456')


def test_an_interruption_in_the_evaluation_repeats_the_round(tmp_path):
  def evaluate(state, round):
    if round == 4:
      raise KeyboardInterrupt
    return {'double': 2.0 * state['count']}

  with pytest.raises(KeyboardInterrupt):
    counting.run(tmp_path, counting.Counting(), evaluate_fn=evaluate, evaluate_every=2)
  assert len(launch.table(tmp_path)) == 3
  counting.run(
    tmp_path, counting.Counting(), evaluate_fn=lambda s, _: {'double': 2.0 * s['count']}
  )
  assert launch.table(tmp_path)[-1]['double'] == '12.0'


def test_a_measurement_that_fails_repeats_no_round(tmp_path):
  measured = []

  def measure(state, round):
    measured.append(round)
    if measured == [2, 4]:
      raise KeyboardInterrupt
    return {'double': 2.0 * state['count']}

  settings = {'measurement': loop.Measurement(measure, 2), 'checkpoint_every': 100}
  with pytest.raises(KeyboardInterrupt):
    counting.run(tmp_path, counting.Counting(), **settings)
  assert (tmp_path / 'checkpoints' / 'round_00000004.npz').exists()
  again = counting.Counting()
  counting.run(tmp_path, again, **settings)
  table = launch.table(tmp_path)
  assert [row['double'] for row in table] == ['', '4.0', '', '8.0', '', '12.0']
  assert measured == [2, 4, 4, 6] and [row['count'] for row in table] == list('123456')


def evaluate_last(state, round):
  return {'double': 2.0 * state['count']}


def fail_to_evaluate(state, round):
  raise ValueError('case 3 has two labels')


def test_the_last_round_is_saved_before_it_is_evaluated(tmp_path):
  undisturbed, run = tmp_path / 'undisturbed', tmp_path / 'run'
  counting.run(undisturbed, counting.Counting(), evaluate_fn=evaluate_last)
  kept = []
  with pytest.raises(ValueError, match='case 3 has two labels'):
    counting.run(
      run, counting.Counting(), evaluate_fn=fail_to_evaluate, keep_fn=kept.append
    )
  assert kept == [{'count': 6}]
  assert [row['count'] for row in launch.table(run)] == list('123456')
  assert (run / 'checkpoints' / 'round_00000006.npz').exists()
  assert not (run / 'evaluation.json').exists()
  counting.run(run, counting.Counting(), evaluate_fn=evaluate_last, keep_fn=kept.append)
  assert len(kept) == 2
  for name in DETERMINISTIC:
    assert (run / name).read_bytes() == (undisturbed / name).read_bytes()
  # Nothing is left to evaluate.
  counting.run(run, counting.Counting(), evaluate_fn=fail_to_evaluate)


@pytest.mark.parametrize('writes', [0, 1])
def test_a_run_killed_after_its_last_evaluation_ends_alike(
  tmp_path, monkeypatch, writes
):
  """Between the rewriting of the tables, of which system.csv is the last."""
  undisturbed, run = tmp_path / 'undisturbed', tmp_path / 'run'
  counting.run(undisturbed, counting.Counting(), evaluate_fn=evaluate_last)
  original, done = round_table.Table.replace, []

  def replace(self, *arguments):
    if len(done) == writes:
      raise KeyboardInterrupt
    done.append(arguments)
    original(self, *arguments)

  with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
    patch.setattr(round_table.Table, 'replace', replace)
    counting.run(run, counting.Counting(), evaluate_fn=evaluate_last)
  counting.run(run, counting.Counting(), evaluate_fn=evaluate_last)
  for name in DETERMINISTIC:
    assert (run / name).read_bytes() == (undisturbed / name).read_bytes()
  last = launch.table(run, 'system.csv')[-1]
  assert float(last['evaluation_seconds']) >= 0
  assert last['round'] == '6'


def test_non_finite_metrics_are_written(tmp_path):
  def nan(state, round):
    return {'bad': math.nan, 'worse': -math.inf}

  counting.run(tmp_path, counting.Counting(), evaluate_fn=nan)
  last = launch.table(tmp_path)[-1]
  assert (last['bad'], last['worse']) == ('nan', '-inf')


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ({'rounds': -1}, 'rounds is -1; it must be at least 0'),
    ({'checkpoint_every': 0}, 'checkpoint_every is 0'),
    ({'rounds': 2}, 'has 6 rounds: rounds=2 must not be fewer'),
    ({'rounds': 7, 'evaluate_fn': lambda *_: {'count': 1.0}}, "same name 'count'"),
  ],
)
def test_bad_input(tmp_path, arguments, message):
  counting.run(tmp_path, counting.Counting())
  with pytest.raises(ValueError, match=message):
    counting.run(tmp_path, counting.Counting(), **arguments)


def test_progress_is_a_few_plain_lines_off_a_terminal(tmp_path, capsys):
  counting.run(tmp_path / 'a', counting.Counting(), rounds=50)
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 10
  assert lines[-1].startswith('round 50/50, ')
  counting.run(tmp_path / 'b', counting.Counting(), rounds=50, progress=False)
  assert capsys.readouterr().err == ''
