"""The benchmark with models and cohorts so small that only its bookkeeping shows."""

import itertools
import json
import pathlib
import uuid

import numpy as np
import psutil
import pytest

from binaries import benchmark_experiments
from binaries import benchmark_measure
from tests import tiny
from tests.binaries import launch
from tff_ssl.algorithms import local_training
from tff_ssl.augment import configs
from tff_ssl.encoders import projector
from tff_ssl.encoders import resnet
from tff_ssl.objectives import dual_encoder

SMALL = ('--encoder_width=0.25', '--projector=8,8', '--rounds=2', '--image_size=8')


def benchmark(*flags) -> launch.Ended:
  """Runs the benchmark, and checks that nothing that it started is left."""
  mark = uuid.uuid4().hex
  process = launch.start('benchmark', *flags, environment={'BENCHMARK_TEST': mark})
  ended = launch.end(process, pathlib.Path())
  assert not [pid for pid in psutil.pids() if mark in environment_of(pid)]
  return ended


def environment_of(pid: int) -> str:
  try:
    return pathlib.Path(f'/proc/{pid}/environ').read_text(errors='replace')
  except OSError:
    return ''


def problem(local=None) -> benchmark_experiments.Problem:
  encoder = resnet.build_encoder('resnet8', tiny.IMAGE_SHAPE, width=0.25)
  model = dual_encoder.Siamese(
    encoder, projector.build_projector(encoder.output_dim, (8, 8)), configs.FLIP
  )
  return benchmark_experiments.Problem(
    model, tiny.clients(), local or local_training.LocalTraining(), seed=0
  )


def test_json_has_all_numbers_and_nothing_else_is_printed():
  ended = benchmark(
    '--experiment=dcco',
    '--clients=3',
    '--examples_per_client=2',
    '--memory_rounds=21',
    '--format=json',
    *SMALL,
  )
  assert (ended.status, ended.stderr) == (0, '')
  result = json.loads(ended.stdout)
  assert (result['clients'], result['examples_per_client']) == (3, 2)
  assert result['ratio'] == pytest.approx(
    result['federated_seconds'] / result['centralized_seconds']
  )
  assert result['samples_per_second'] == pytest.approx(6 / result['federated_seconds'])
  # A worker alone maps more than 50 MiB, a driver with TensorFlow several hundred.
  peaks = result['driver_peak_memory_mib'], result['worker_peak_memory_mib']
  assert peaks[0] > 300
  assert peaks[1] > 50
  assert result['peak_memory_mib'] == pytest.approx(sum(peaks))
  for name in ('driver', 'worker'):
    assert result[f'{name}_growth'] == pytest.approx(
      result[f'{name}_mib_final'] / result[f'{name}_mib_settled']
    )
  assert result['federated_cpu_seconds'] > 0
  assert result['bytes_up'] > result['bytes_down'] // 2 > 0
  assert result['nonfinite_clients'] == 0


def test_table_is_one_line():
  ended = benchmark(
    '--experiment=fedavg',
    '--clients=2',
    '--examples_per_client=3',
    '--batch_size=2',
    '--local_epochs=2',
    *SMALL,
  )
  assert (ended.status, ended.stderr) == (0, '')
  (line,) = ended.stdout.splitlines()
  assert line.split()[:4] == ['fedavg', '2', 'x', '3']


def test_bad_flags_are_one_sentence():
  messages = {
    '--batch_size=4': 'it is for fedavg only',
    '--memory_rounds=20': 'it must be 0 or more than 20',
    '--run_dir=somewhere': 'does not take it',
  }
  # Side by side: each takes seconds to start.
  started = [launch.start('benchmark', flag) for flag in messages]
  for process, message in zip(started, messages.values(), strict=True):
    ended = launch.end(process, pathlib.Path())
    assert (ended.status, ended.stdout) == (1, '')
    (line,) = ended.stderr.splitlines()
    assert line.startswith('Error: --')
    assert message in line


def test_random_clients_share_out_all_examples():
  data = benchmark_experiments.random_clients(3, 2, image_size=4, seed=0)
  elements = [
    element
    for client_id in data.client_ids
    for element in data.create_tf_dataset_for_client(client_id)
  ]
  assert [int(e['example_id']) for e in elements] == list(range(6))
  assert {e['image'].shape for e in elements} == {(4, 4, 3)}


@pytest.mark.parametrize(
  ('epochs', 'batch_size', 'sizes'),
  [(1, None, [9]), (1, 4, [4, 4, 1]), (2, 5, [5, 4, 5, 4])],
)
def test_centralized_batches_hold_what_clients_visit(epochs, batch_size, sizes):
  batches = benchmark_experiments.centralized_batches(
    problem(local_training.LocalTraining(epochs, batch_size))
  )
  ids = [[int(e['example_id']) for e in batch] for batch in batches]
  assert [len(batch) for batch in ids] == sizes
  assert [*itertools.chain(*ids)] == [*tiny.arrays()['example_id']] * epochs


@pytest.mark.parametrize('name', benchmark_experiments.EXPERIMENTS)
def test_both_sides_start_from_the_same_weights(tff_context, name):
  experiment = benchmark_experiments.EXPERIMENTS[name](problem())
  federated, centralized = (
    side.get_model_weights(side.initialize()).trainable for side in experiment
  )
  assert federated.keys() == centralized.keys()
  for key, value in federated.items():
    np.testing.assert_allclose(value, centralized[key], rtol=1e-6)


def test_dcco_and_its_counterpart_take_the_same_step(tff_context):
  case = problem()
  experiment = benchmark_experiments.EXPERIMENTS['dcco'](case)
  runner = benchmark_measure.Runner(case, experiment)
  before = weights(experiment.federated, runner._federated)
  runner.federated_round()
  runner.centralized_round()
  federated = weights(experiment.federated, runner._federated) - before
  centralized = weights(experiment.centralized, runner._centralized) - before
  difference = np.linalg.norm(federated - centralized)
  assert difference < 1e-2 * np.linalg.norm(centralized)


def weights(algorithm, state) -> np.ndarray:
  trainable = algorithm.get_model_weights(state).trainable
  return np.concatenate([np.ravel(value) for value in trainable.values()])


class FakeContext:
  """Counts CPU time as a round that takes 3 s in the worker and 1 s in the driver."""

  def __init__(self):
    self.driver = self.worker = 0.0

  def cpu_seconds(self):
    return {'driver': self.driver, 'worker': self.worker}


class FakeRunner:
  def __init__(self, execution):
    self.execution = execution

  def federated_round(self):
    self.execution.driver += 1.0
    self.execution.worker += 2.5

  def centralized_round(self):
    self.execution.driver += 2.0
    # The worker still cleans up after the round.
    self.execution.worker += 0.5


def test_cpu_time_is_that_of_the_side_that_caused_it():
  execution = FakeContext()
  result = benchmark_measure.compare(execution, FakeRunner(execution), rounds=3)
  assert result['federated_driver_cpu_seconds'] == 1.0
  assert result['federated_worker_cpu_seconds'] == 3.0
  assert result['centralized_cpu_seconds'] == 2.0
  assert result['cpu_ratio'] == 2.0
