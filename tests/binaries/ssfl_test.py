"""A run of SSFL's family, whose clients' own models are evaluated."""

import json

import numpy as np

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
  '--evaluation=methods=knn,personal=federated_linear',
)


def test_personal_and_global_accuracy_are_recorded(tmp_path):
  first = in_process.run(ssfl, f'--run_dir={tmp_path}/per', *_FLAGS)
  assert first.status == 0, first.stderr
  rows = launch.table(first.folder)
  assert len(rows) == 2
  assert all(np.isfinite(float(row['client_work/personal_loss'])) for row in rows)
  numbers = json.loads((first.folder / 'evaluation.json').read_text())
  for name in (
    'personal/knn',
    'personal/local_knn',
    'personal/federated_linear',
    'knn',
  ):
    assert 0.1 < numbers[f'{name}/10%/accuracy'] <= 1
  assert float(rows[-1]['personal/clients']) == 5
  assert 'worst decile' in first.stdout
