import json

import numpy as np
import pytest

from binaries import dcco
from binaries.building import algorithms
from binaries.config import programs as config_programs
from binaries.experiment import evaluating
from tests.binaries import conftest
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import registry as encoder_registry
from tff_ssl.runs import checkpoints

# They share the runs of conftest.py, which take minutes.
pytestmark = pytest.mark.xdist_group('runs')

# A centralized run is below, and in failures_test.
_ALGORITHMS = pytest.mark.long_for(*[*conftest.ALGORITHMS][1:])

# Only TensorFlow: what a person has to whom the encoder is given.
LOAD = """
import sys
import numpy as np, tensorflow as tf
encoder = tf.keras.models.load_model(sys.argv[1])
np.save(sys.argv[2], encoder(np.load(sys.argv[3])))
assert not any(name.startswith('tff_ssl') for name in sys.modules)
"""


# What a run of DCCO imports: its program, what runs it, and what builds its algorithm.
IMPORTS = """
import sys
from binaries import dcco
from binaries.config import command_line
from binaries.launching import program
program.import_tff()
from binaries.building import algorithms
from binaries.experiment import running
algorithms.of(command_line.parse_run('dcco', ['--run_dir=r']))
for package in ('binaries', 'binaries.building', 'tff_ssl.algorithms'):
  own = [name.split('.') for name in sys.modules if name.startswith(f'{package}.')]
  print(*sorted({parts[package.count('.') + 1] for parts in own}))
"""


@pytest.mark.long
def test_it_imports_no_other_family():
  ended = launch.python(IMPORTS, check=True)
  programs, building, algorithms = map(str.split, ended.stdout.splitlines())
  assert programs == ['building', 'config', 'dcco', 'experiment', 'launching']
  families = {each.family for each in config_programs.all_methods().values()}
  assert families & {*building} == {'statistics'}
  # The others train heads and upper bounds, and collect sums, of any method.
  assert {*algorithms} == {
    'statistics',
    'collected_sums',
    'view_moments',
    'fedavg',
    'centralized',
    'federated_linear',
    'one_round',
  }


@_ALGORITHMS
@pytest.mark.parametrize('algorithm', conftest.ALGORITHMS)
def test_each_algorithm_leaves_a_complete_run_folder(runs, algorithm):
  run = runs[algorithm]
  assert run.status == 0, run.stderr
  assert run.stdout.splitlines()[-1] == f'Run folder: {run.folder}'
  rounds = conftest.ROUNDS if algorithm == 'dcco' else 2
  rows = launch.table(run.folder)
  assert [row['round'] for row in rows] == [str(n + 1) for n in range(rounds)]
  assert all(np.isfinite(float(row['client_work/loss'])) for row in rows)
  evaluation = json.loads((run.folder / 'evaluation.json').read_text())
  assert evaluation['round'] == rounds
  accuracy = evaluation['knn/10%/accuracy']
  assert float(rows[-1]['knn/10%/accuracy']) == accuracy > 0.2
  # The last line of the table, with its accuracy of kNN; lines of the draws and of a
  # classifier of its own come after it.
  last = -4 if algorithm == 'centralized_supervised' else -3
  deviation = evaluation['knn/10%/accuracy/deviation']
  shown = f'{100 * accuracy:.1f} ± {100 * deviation:.1f}%'
  assert shown in run.stdout.splitlines()[last]
  assert run.stdout.splitlines()[last + 1].startswith('±: deviation over 8 draws')
  config = json.loads((run.folder / 'config.json').read_text())['config']
  assert f'--method={config["method"]["kind"]}' in conftest.ALGORITHMS[algorithm]
  assert json.loads((run.folder / 'encoder.json').read_text())['rounds'] == rounds
  assert (run.folder / 'partition.csv').read_text().startswith('client_id,size,label_0')
  assert not list(run.folder.rglob('.aside-*'))


def test_progress_is_all_that_is_said_on_stderr(runs):
  lines = runs['dcco'].stderr.splitlines()
  assert lines
  assert all(line.startswith('round ') for line in lines), lines


def test_encoder_is_loaded_with_tensorflow_alone(runs, tmp_path):
  path = runs['dcco'].folder / 'encoder.keras'
  images = np.random.default_rng(0).random((3, 8, 8, 1)).astype(np.float32)
  np.save(tmp_path / 'images.npy', images)
  files = path, tmp_path / 'out.npy', tmp_path / 'images.npy'
  launch.python(LOAD, *files, cwd=tmp_path, env={'PATH': ''}, check=True)
  features = np.load(tmp_path / 'out.npy')
  encoder = encoder_registry.build_encoder('conv2', (8, 8, 1), 0.125)
  _, params = checkpoints.read_newest(
    runs['dcco'].folder / 'checkpoints', algorithms.ENCODER
  )
  np.testing.assert_allclose(features, encoder.apply(params, images), atol=1e-5)


def test_an_evaluation_that_fails_loses_nothing(tmp_path, monkeypatch):
  arguments = (
    *launch.SMALL,
    '--method=centralized_steps',
    '--objective=cco:projector=8/8',
    '--rounds=1',
    f'--run_dir={tmp_path}',
  )

  def fail(*_):
    raise ValueError('case 3 has two labels')

  with monkeypatch.context() as patch:
    patch.setattr(evaluating.Evaluator, 'evaluate_model', fail)
    with pytest.raises(
      ValueError, match=r'same command repeats it: case 3 has two labels'
    ):
      in_process.call(dcco, *arguments)
  for name in ('encoder.keras', 'encoder.json', 'checkpoints/round_00000001.npz'):
    assert (tmp_path / name).is_file()
  in_process.call(dcco, *arguments)
  assert json.loads((tmp_path / 'evaluation.json').read_text())['round'] == 1
  (row,) = launch.table(tmp_path)
  assert 0 < float(row['knn/10%/accuracy']) < 1
