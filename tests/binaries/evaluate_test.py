import json
import shutil

import numpy as np
import pytest

from binaries import evaluate
from binaries import evaluation
from tasks import registry
from tests.binaries import conftest
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import resnet
from tff_ssl.runtime import checkpoints


@pytest.fixture
def run(runs, tmp_path):
  """A copy of the run of dcco, to be written to."""
  return shutil.copytree(runs.small['dcco'].folder, tmp_path / 'run')


def read(folder):
  return json.loads((folder / 'evaluation.json').read_text())


def test_adds_a_method_to_the_numbers_of_the_run(run, capsys):
  before = read(run)
  in_process.call(evaluate, f'--run={run}', '--evaluation_methods=knn,lars')
  shown = capsys.readouterr().out
  assert f'{run}: the encoder after round 6 of 6\n' in shown
  after = read(run)
  # Rebuilt from the checkpoint alone, the encoder is the one that the run evaluated.
  assert {name: after[name] for name in before} == before
  added = set(after) - set(before)
  assert 'lars/10%/accuracy' in added
  assert all(name.startswith('lars/10%/') for name in added)
  row = shown.splitlines()[-1].split()
  assert row[0] == 'dcco'
  assert row[-1] == f'{100 * after["lars/10%/accuracy"]:.1f}%'
  assert not list(run.glob('.aside-*'))


def test_flags_that_are_given_win(run, capsys):
  in_process.call(evaluate, f'--run={run}', '--label_fractions=0.5')
  assert '50% (7' in capsys.readouterr().out
  assert 'knn/50%/accuracy' in read(run)


def test_baselines_have_numbers_of_their_own(run, capsys):
  before = read(run)
  in_process.call(
    evaluate,
    f'--run={run}',
    '--baselines',
    '--supervised_steps=2',
    '--evaluation_methods=knn',
  )
  rows = capsys.readouterr().out.splitlines()[-3:]
  names = ['random encoder', 'dcco', 'supervised from scratch']
  assert [row[: len(name)] for row, name in zip(rows, names, strict=True)] == names
  after = read(run)
  assert after['knn/10%/accuracy'] == before['knn/10%/accuracy']
  assert 0 < after['random_encoder/knn/10%/accuracy'] < 1
  assert 0 < after['supervised_from_scratch/finetune/10%/accuracy'] < 1


@pytest.mark.parametrize('algorithm', conftest.ALGORITHMS[1:])
def test_random_encoder_is_the_one_that_every_algorithm_starts_from(runs, algorithm):
  folder = runs.small[algorithm].folder / 'checkpoints'
  assert checkpoints.Checkpoints(folder).rounds() == [0, 2]
  with np.load(folder / 'round_00000000.npz') as archive:
    start = f'state/{evaluate.ENCODER}/'
    stored = {
      name.removeprefix(start): archive[name]
      for name in archive.files
      if name.startswith(start)
    }
  task = registry.load('digits')
  encoder = resnet.build_encoder('resnet8', task.image_shape, width=0.25)
  with in_process.parsed('--seed=0'):
    initial = evaluation.Evaluator(task, encoder).initial_params()
  assert stored.keys() == initial.keys()
  for name, value in initial.items():
    np.testing.assert_array_equal(stored[name], value)


def test_unfinished_run_is_evaluated_where_it_is(run, capsys):
  (run / 'checkpoints' / 'round_00000006.npz').unlink()
  before = read(run)
  in_process.call(evaluate, f'--run={run}')
  shown = capsys.readouterr().out
  assert 'the encoder after round 4 of 6' in shown
  assert 'has been evaluated at a later round' in shown
  assert read(run) == before
  (run / 'evaluation.json').unlink()
  in_process.call(evaluate, f'--run={run}', '--evaluation_methods=knn')
  assert read(run)['round'] == 4


def no_folder(run):
  shutil.rmtree(run)


def not_a_run(run):
  (run / 'config.json').unlink()


def no_checkpoint(run):
  shutil.rmtree(run / 'checkpoints')


def corrupted_checkpoint(run):
  path = run / 'checkpoints' / 'round_00000006.npz'
  content = bytearray(path.read_bytes())
  content[1000:2000] = bytes(1000)
  path.write_bytes(content)


def short_checkpoint(run):
  path = run / 'checkpoints' / 'round_00000006.npz'
  path.write_bytes(path.read_bytes()[:1000])


def other_task(run):
  config = json.loads((run / 'config.json').read_text())
  (run / 'config.json').write_text(json.dumps({**config, 'task': 'abc'}))


@pytest.mark.parametrize(
  'break_it, message',
  [
    (no_folder, 'is not a run: there is no such folder'),
    (not_a_run, 'is not a run: it has no config.json'),
    (no_checkpoint, 'checkpoints has no checkpoint'),
    (corrupted_checkpoint, 'cannot read the checkpoint .*round_00000006.npz'),
    (short_checkpoint, 'cannot read the checkpoint .*round_00000006.npz'),
    (other_task, 'has other examples than when'),
  ],
)
def test_what_is_not_a_run_to_evaluate_is_named(run, break_it, message):
  break_it(run)
  with pytest.raises(ValueError, match=message):
    in_process.call(evaluate, f'--run={run}')


def test_run_is_needed():
  with pytest.raises(ValueError, match='run is not given'):
    in_process.call(evaluate)


def test_what_the_run_has_fixed_cannot_be_given(run):
  with pytest.raises(ValueError, match='--seed=3 is given, but the run has --seed=0'):
    in_process.call(evaluate, f'--run={run}', '--seed=3')
  in_process.call(evaluate, f'--run={run}', '--seed=0', '--evaluation_methods=knn')


def test_as_a_program(run):
  ended = launch.end(launch.start('evaluate', f'--run={run}'), run)
  assert (ended.status, ended.stderr) == (0, '')
  assert 'the encoder after round 6 of 6' in ended.stdout
