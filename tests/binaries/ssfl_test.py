"""A run of SSFL's family, and the same command again."""

import json

import numpy as np
import pytest
import tensorflow as tf

from binaries import ssfl
from tests.binaries import in_process
from tests.binaries import launch

_FLAGS = (
  '--method=per',
  launch.APART,
  launch.FLIP,
  '--task=digits',
  '--encoder=conv2:width=0.125',
  '--objective=projector=16/8,predictor_width=8',
  '--partition=classes:per_client=2,clients=5',
  '--participation=1',
  # One step a round: local batches make the graph several times as large.
  '--clients=learning_rate=0.3',
  '--rounds=2',
  '--evaluation=methods=knn',
)


def _run(folder, *flags):
  return in_process.run(ssfl, f'--run_dir={folder}', *flags)


@pytest.fixture(scope='module')
def first(tmp_path_factory):
  return _run(tmp_path_factory.mktemp('ssfl') / 'per', *_FLAGS)


def test_personal_and_global_accuracy_are_recorded(first):
  assert first.status == 0, first.stderr
  rows = launch.table(first.folder)
  assert len(rows) == 2
  assert all(np.isfinite(float(row['client_work/personal_loss'])) for row in rows)
  for name in ('personal/knn/10%', 'personal/local_knn/10%', 'knn/10%'):
    assert 0.1 < float(rows[-1][f'{name}/accuracy']) <= 1
  assert float(rows[-1]['personal/clients']) == 5
  assert 'worst decile' in first.stdout


# Clients' methods are in personal_test, the export of one is in fedema_test.
@pytest.mark.long
def test_the_same_command_takes_other_methods_and_exports(first):
  again = _run(
    first.folder,
    *_FLAGS,
    '--evaluation=personal=linear/federated_linear,export_clients=client_3',
  )
  assert again.status == 0, again.stderr
  assert len(launch.table(again.folder)) == 2
  evaluation = json.loads((first.folder / 'evaluation.json').read_text())
  clients = launch.table(first.folder, 'clients.csv')
  assert [row['round'] for row in clients] == ['2'] * 5
  for method in ('knn', 'linear', 'federated_linear'):
    own = [float(row[f'{method}/10%/accuracy']) for row in clients]
    mean = evaluation[f'personal/{method}/10%/accuracy']
    assert mean == pytest.approx(np.mean(own))
    assert 0.1 < mean <= 1
  assert 'clients/client_3/encoder.keras' in again.stdout
  card = json.loads((first.folder / 'clients/client_3/encoder.json').read_text())
  assert (card['client'], card['algorithm']) == ('client_3', 'per simsiam')
  personal, shared = (
    tf.keras.models.load_model(first.folder / name / 'encoder.keras', compile=False)
    for name in ('clients/client_3', '.')
  )
  image = np.linspace(0, 1, 64, dtype=np.float32).reshape(1, 8, 8, 1)
  difference = personal(image).numpy() - shared(image).numpy()
  assert np.isfinite(difference).all()
  assert np.abs(difference).max() > 1e-4
