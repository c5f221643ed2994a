"""A run of FeatARC, whose clusters are evaluated."""

import json

import numpy as np
import pytest

from binaries import dec_ssl
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.runs import checkpoints

# Its rounds are in tests/algorithms, the choice among clusters in validation_test.
pytestmark = pytest.mark.long
_FLAGS = (
  '--method=featarc',
  launch.APART,
  launch.FLIP,
  '--task=digits',
  '--encoder=conv2:width=0.125',
  '--objective=projector=8/4',
  '--partition=skew:beta=0,clients=5',
  '--evaluation=methods=knn,personal_clients=5',
  # One step a round.
  '--clients=epochs=1,batch_size=512',
  '--rounds=2',
  '--evaluation=every=0',
  '--data=validation=0.2',
)


def test_each_cluster_is_evaluated_and_the_largest_is_left_behind(tmp_path):
  run = in_process.run(dec_ssl, f'--run_dir={tmp_path}/featarc', *_FLAGS)
  numbers = json.loads((run.folder / 'evaluation.json').read_text())
  rows = launch.table(run.folder)
  largest = int(float(rows[-1]['client_work/largest_cluster']))
  name = 'knn/10%/accuracy'
  values = [numbers[f'clusters/cluster_{j}/{name}'] for j in range(2)]
  assert numbers[name] == values[largest]
  held_out = [numbers[f'validation/clusters/cluster_{j}/{name}'] for j in range(2)]
  # Chosen on the validation split, not by the test accuracy.
  assert numbers[f'clusters/best/{name}'] == values[np.argmax(held_out)]
  assert numbers[f'validation/clusters/best/{name}'] == max(held_out)
  assert numbers[f'validation/{name}'] == held_out[largest]
  assert numbers[f'clusters/mean/{name}'] == pytest.approx(np.mean(values))
  assert 0 < numbers[f'personal/{name}'] <= 1
  _, stored = checkpoints.read_newest(
    run.folder / 'checkpoints', 'global_model_weights/trainable'
  )
  _, stacked = checkpoints.read_newest(
    run.folder / 'checkpoints', 'global_model_weights/non_trainable/clusters'
  )
  assert stored.keys() == stacked.keys()
  for name, value in stored.items():
    np.testing.assert_array_equal(value, stacked[name][largest])
  first, second = (
    np.concatenate([value[j].ravel() for value in stacked.values()]) for j in range(2)
  )
  assert np.abs(first - second).max() > 1e-4
