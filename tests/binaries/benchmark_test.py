"""The benchmark with models and cohorts so small that only its bookkeeping shows."""

import collections
import dataclasses
import functools
import itertools
import json
import pathlib

import numpy as np
import psutil
import pytest
import tensorflow as tf

from binaries import benchmark
from binaries.benchmarking import experiments
from binaries.benchmarking import measure
from binaries.benchmarking import objectives
from binaries.benchmarking import problems
from binaries.benchmarking import workloads
from tests import forked
from tests import tiny
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.augment import configs
from tff_ssl.encoders import cnn
from tff_ssl.encoders import precision
from tff_ssl.encoders import projector
from tff_ssl.federated import local_training
from tff_ssl.objectives import dual_encoder
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

SMALL = (
  '--encoder=conv2',
  '--encoder_width=0.125',
  '--projector=8,8',
  '--rounds=2',
  '--image_size=8',
)
_PRECISIONS = (
  '--experiment=precision',
  '--clients=3',
  '--examples_per_client=2',
  *SMALL,
)


def started(*flags) -> launch.Ended:
  """Starts the benchmark, and checks that nothing that it started is left."""
  process = forked.Process('binaries.benchmark', *flags)
  ended = launch.end(process, pathlib.Path())
  assert not [pid for pid in psutil.pids() if process.mark in environment_of(pid)]
  return ended


def environment_of(pid: int) -> str:
  try:
    return pathlib.Path(f'/proc/{pid}/environ').read_text(errors='replace')
  except OSError:
    return ''


def problem(local=None) -> problems.Problem:
  encoder = cnn.build_encoder('conv2', tiny.IMAGE_SHAPE, 0.125)
  model = dual_encoder.Siamese(
    encoder, projector.build_projector(encoder.output_dim, (8, 8)), configs.FLIP
  )
  cohorts = cohort_sampling.Cohorts(
    list(tiny.CLIENT_SIZES), len(tiny.CLIENT_SIZES), seed=0
  )
  data = tiny.clients()
  clients = workloads.Clients(
    data, simulated_clients.Clients(data, num_packs=1), tiny.partition(), cohorts, 0.0
  )
  return problems.Problem(model, clients, local or local_training.LocalPlan(), seed=0)


@functools.cache
def experiment(name: str) -> tuple[problems.Problem, problems.Experiment]:
  """Returns one of the tiny problem, made once: to trace it takes seconds."""
  case = problem()
  return case, experiments.EXPERIMENTS[name](case)


@pytest.mark.long
def test_json_has_all_numbers_and_nothing_else_is_printed():
  ended = started(
    '--experiment=dcco',
    '--runtime=worker',
    '--clients=3',
    '--examples_per_client=2',
    '--memory_rounds=21',
    '--format=json',
    *SMALL,
  )
  assert (ended.status, ended.stderr) == (0, '')
  result = json.loads(ended.stdout)
  assert (result['clients'], result['examples_per_client']) == (3, 2)
  assert (result['regime'], result['population'], result['examples']) == (None, 3, 6)
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


def test_precisions_are_measured_in_turns():
  try:
    precision.check('bfloat16')
  except ValueError as error:
    # As of processors without AVX-512.
    pytest.skip(str(error))
  ended = in_process.run(benchmark, *_PRECISIONS, '--format=json')
  assert (ended.status, ended.stderr) == (0, '')
  result = json.loads(ended.stdout)
  for each in ('float32', 'bfloat16'):
    seconds = result[f'{each}_seconds']
    assert result[f'{each}_samples_per_second'] == pytest.approx(6 / seconds)
  halves = result['bfloat16_seconds'] / result['float32_seconds']
  assert result['ratio'] == pytest.approx(halves)
  # The same weights and views, and maps of 8 bits; of so small a network on noise a few
  # steps differ by a sixth.
  assert result['bfloat16_loss'] == pytest.approx(result['float32_loss'], rel=0.5)
  assert result['bfloat16_loss'] != result['float32_loss']


def test_a_machine_without_bfloat16_is_told_before_anything_is_measured(monkeypatch):
  monkeypatch.setattr(precision, '_fault', lambda: 'has none')
  ended = in_process.run(benchmark, *_PRECISIONS)
  assert (ended.status, ended.stdout) == (1, '')
  assert ended.stderr == (
    'Error: precision is bfloat16; it must be float32 on this machine, where '
    'TensorFlow has none.\n'
  )


@pytest.mark.long
def test_growth_measures_every_point_and_draws(tmp_path):
  path = tmp_path / 'growth.png'
  ended = in_process.run(
    benchmark,
    '--experiment=fedavg',
    '--growth=population',
    '--growth_points=2,4',
    '--clients=2',
    '--examples_per_client=1',
    '--format=json',
    f'--plot={path}',
    *SMALL,
  )
  # Not stderr: matplotlib may say there that it makes its cache of fonts.
  assert ended.status == 0, ended.stderr
  result = json.loads(ended.stdout)
  points = result['points']
  assert [point['population'] for point in points] == [2, 4]
  for point in points:
    assert (point['clients'], point['examples_per_client']) == (2, 1)
    assert point['samples_per_second'] == pytest.approx(2 / point['federated_seconds'])
    assert point['register_seconds'] > 0
  # A straight line through two points: log(y2 / y1) / log(2).
  for side in ('federated', 'centralized'):
    first, second = (point[f'{side}_seconds'] for point in points)
    assert result[f'{side}_slope'] == pytest.approx(np.log2(second / first))
  assert [file.name for file in tmp_path.iterdir()] == [path.name]
  assert path.read_bytes().startswith(b'\x89PNG')


def test_a_bad_flag_is_one_sentence():
  ended = in_process.run(benchmark, '--experiment=dcco', '--regime=B')
  assert (ended.status, ended.stdout) == (1, '')
  assert ended.stderr == (
    'Error: --regime=B is given with --experiment=dcco; its local batches are for '
    'fedavg, fedsup, fedema, per_ssfl, featarc, precision only.\n'
  )


@pytest.mark.parametrize(
  ('epochs', 'batch_size', 'sizes'),
  [(1, None, [9]), (1, 4, [4, 4, 1]), (2, 5, [5, 4, 5, 4])],
)
def test_centralized_batches_hold_what_clients_visit(epochs, batch_size, sizes):
  batches = experiments.centralized_batches(
    problem(local_training.LocalPlan(epochs, batch_size)), round=0
  )
  ids = [[int(e['example_id']) for e in batch] for batch in batches]
  assert [len(batch) for batch in ids] == sizes
  assert [*itertools.chain(*ids)] == [*tiny.arrays()['example_id']] * epochs


def test_centralized_batches_lack_what_clients_with_batch_norm_leave_out():
  """Clients of four and five in batches of four: one is a quarter, and is kept."""
  encoder = cnn.build_encoder('conv2', tiny.IMAGE_SHAPE, 0.125, 'batch')
  for drop_last, sizes in (('small', [4, 4, 1]), ('always', [4, 4])):
    plan = local_training.LocalPlan(2, batch_size=4, drop_last=drop_last)
    case = problem(plan)
    case = dataclasses.replace(
      case, model=dataclasses.replace(case.model, encoder=encoder)
    )
    batches = experiments.centralized_batches(case, round=0)
    assert [len([*batch]) for batch in batches] == sizes * 2
    assert experiments.visited_examples(case, round=0) == 2 * sum(sizes)
    assert experiments.held_examples(case, round=0) == 9


@pytest.mark.long_for('per_ssfl', 'featarc')
@pytest.mark.parametrize('name', experiments.EXPERIMENTS)
def test_both_sides_start_from_the_same_weights(tff_context, name):
  _, sides = experiment(name)
  # FeatARC's models are its clusters', which are told beside the global one.
  kind = 'non_trainable' if name == 'featarc' else 'trainable'
  federated, centralized = (
    getattr(side.get_model_weights(side.initialize()), kind) for side in sides
  )
  assert federated.keys() == centralized.keys()
  for key, value in federated.items():
    np.testing.assert_allclose(value, centralized[key], rtol=1e-6)


def test_dcco_and_its_counterpart_take_the_same_step(tff_context):
  case, sides = experiment('dcco')
  runner = measure.Runner(case, sides)
  before = weights(sides.federated, runner._federated)
  runner.federated_round(0)
  runner.centralized_round(0)
  federated = weights(sides.federated, runner._federated) - before
  centralized = weights(sides.centralized, runner._centralized) - before
  difference = np.linalg.norm(federated - centralized)
  assert difference < 1e-2 * np.linalg.norm(centralized)


@pytest.mark.long_for('per_ssfl', 'featarc')
@pytest.mark.parametrize('name', ['fedema', 'per_ssfl', 'featarc'])
def test_rounds_of_stateful_clients_are_those_in_memory(tff_context, name):
  case, sides = experiment(name)
  runner = measure.Runner(case, sides)
  before = weights(sides.federated, runner._federated)
  # Clusters are so alike at this rate that rounding decides who chooses which, but for
  # the first time.
  for round in range(1 if name == 'featarc' else 3):
    runner.federated_round(round)
    runner.centralized_round(round)
  if name == 'fedema':
    # All have come back: their mu is that of what they kept.
    assert runner.metrics['returning'] == pytest.approx(1.0)
    assert 0 < runner.metrics['mu'] <= 1
  if name == 'featarc':
    clusters = [runner.metrics[f'cluster_{k}_clients'] for k in (0, 1)]
    assert sum(clusters) > max(clusters)
  moved = [
    weights(side, state) - before
    for side, state in zip(sides, (runner._federated, runner._centralized), strict=True)
  ]
  assert np.linalg.norm(moved[0]) > 0
  difference = np.linalg.norm(moved[0] - moved[1])
  assert difference < 1e-2 * np.linalg.norm(moved[1])


def weights(algorithm, state) -> np.ndarray:
  """Returns the global model's weights, or those of FeatARC's cluster models."""
  found = algorithm.get_model_weights(state)
  chosen = found.non_trainable or found.trainable
  return np.concatenate([np.ravel(chosen[name]) for name in sorted(chosen)])


@pytest.mark.parametrize('name', objectives.OBJECTIVES)
def test_every_objective_has_a_gradient(name):
  objective = objectives.OBJECTIVES[name](problem().model)
  params = objective.init(tf.constant([0, 1]))
  examples = collections.OrderedDict(
    (field, tf.constant(value)) for field, value in tiny.arrays().items()
  )
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, *_ = objective.loss_with_state(
      params, objective.init_state(params), examples, tf.constant([2, 3])
    )
  gradient = tape.gradient(loss, params)
  assert any(np.abs(g).max() > 0 for g in gradient.values() if g is not None)
