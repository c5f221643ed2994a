"""The benchmark with models and cohorts so small that only its bookkeeping shows.

Its ratio means something if both sides do the same work: the same examples, from the
same weights, to the same weights.
"""

import itertools
import json
import pathlib
import types
import typing

import numpy as np
import psutil
import pytest

from docs.bench import __main__ as bench
from docs.bench import comparison
from docs.bench import experiments
from docs.bench import measure
from docs.bench import sides
from docs.bench import workloads
from tests import forked
from tests import tiny
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.augment import configs
from tff_ssl.computing import kinds
from tff_ssl.encoders import precision
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.objectives import dual_encoder
from tff_ssl.settings import learning
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

SMALL = ('--encoder=conv2:width=0.125', '--rounds=2', '--image_size=8')
REFUSED = {
  '--experiment=fedavg --runtime=ray': 'runtime is ray; it must be worker or in_p',
  '--experiment=dcco --batch_size=4': 'is given with --experiment=dcco, which has no',
  '--experiment=dcco --regime=B': 'is given with --experiment=dcco, which has no',
  '--experiment=fedsup --objective=byol': 'it is for fedavg',
  '--experiment=precision --encoder=precision=bfloat16': 'measures both precisions',
  '--experiment=precision --runtime=worker': 'measures both precisions in this proc',
  '--regime=A --clients=3': '--clients is given with --regime=A; leave one of them out',
  '--clients=8,4': '--clients is 8,4; it must be one or several numbers, ascending',
  '--clients=2,4 --population=4,5': '--clients and --population have several values',
  '--population=63,100': 'population is 63; it must be at least the 64 clients',
}


def problem(norm='group', **local) -> experiments.Problem:
  encoder = registry.build_encoder('conv2', tiny.IMAGE_SHAPE, 0.125, normalization=norm)
  head = projector.build_projector(encoder.output_dim, (8, 8))
  model = dual_encoder.Siamese(encoder, head, configs.FLIP)
  names = list(tiny.CLIENT_SIZES)
  cohorts, data = cohort_sampling.Cohorts(names, len(names), seed=0), tiny.clients()
  simulated = simulated_clients.Clients(data, num_packs=1)
  clients = workloads.Clients(data, simulated, tiny.partition(), cohorts, 0.0)
  return experiments.Problem(model, clients, learning.SgdClients(**local), 0)


def weights(side: sides.Side) -> np.ndarray:
  """Returns the global model's weights, or those of FeatARC's cluster models."""
  held = side.weights()
  chosen = held.non_trainable or held.trainable
  return np.concatenate([np.ravel(chosen[name]) for name in sorted(chosen)])


@pytest.mark.long
@pytest.mark.parametrize('name', ['dcco', 'fedsup', 'fedema', 'per_ssfl', 'featarc'])
def test_both_sides_compute_the_same(tff_context, name):
  pair = sides.build(problem(), name)
  before = [weights(side) for side in pair]
  np.testing.assert_allclose(*before, rtol=1e-6)
  # Clusters are so alike at this rate that rounding decides who chooses which, except
  # in the first round.
  for number in range(3 if name in ('fedema', 'per_ssfl') else 1):
    metrics, _ = [side.round(number) for side in pair]
  if name == 'fedema':
    # All clients have come back: their mu depends on what they kept.
    assert metrics['returning'] == pytest.approx(1.0)
    assert 0 < metrics['mu'] <= 1
  moved = [weights(side) - start for side, start in zip(pair, before, strict=True)]
  assert np.linalg.norm(moved[0]) > 0
  # FedSup's clients train locally: its work is a centralized step's, its result not.
  if name != 'fedsup':
    difference = np.linalg.norm(moved[0] - moved[1])
    assert difference < 1e-2 * np.linalg.norm(moved[1])


@pytest.mark.parametrize(
  ('local', 'sizes'),
  [
    ({}, [9]),
    ({'batch_size': 4}, [4, 4, 1]),
    ({'batch_size': 5, 'epochs': 2}, [5, 4, 5, 4]),
    # Clients of four and five with batch norm: one example is a quarter, and is kept.
    ({'batch_size': 4, 'norm': 'batch'}, [4, 4, 1]),
    ({'batch_size': 4, 'norm': 'batch', 'drop_last_batch': 'always'}, [4, 4]),
  ],
)
def test_centralized_batches_hold_the_examples_that_clients_visit(local, sizes):
  case = problem(**local)
  ids = [[int(e['example_id']) for e in batch] for batch in sides.batches(case, 0)]
  assert [len(batch) for batch in ids] == sizes
  assert sides.visited_examples(case, 0) == sum(sizes)
  if 'norm' not in local:
    every = [*tiny.arrays()['example_id']] * local.get('epochs', 1)
    assert [*itertools.chain(*ids)] == every


def test_both_sides_have_the_examples_of_the_drawn_cohort():
  sizes = workloads.Workload(clients=3, examples_per_client=2, population=40).sizes(0)
  images = workloads.random_images(80, 2, seed=0)
  clients = workloads.register(images, sizes, 3, seed=0, num_packs=0)
  case = experiments.Problem(problem().model, clients, learning.SgdClients(), 0)
  seen = []
  for number in range(2):
    cohort = clients.simulation.cohort(clients.cohorts(number))
    federated = [[int(e['example_id']) for e in data] for data in cohort]
    (batch,) = sides.batches(case, number)
    assert [len(ids) for ids in federated] == [2, 2, 2]
    assert [int(e['example_id']) for e in batch] == [*itertools.chain(*federated)]
    seen.append(federated)
  assert seen[0] != seen[1]


def test_cpu_time_counts_for_the_side_that_caused_it():
  used, rounds = {'driver': 0.0, 'worker': 0.0}, []

  def side(driver, worker):
    def round(number):
      rounds.append(number)
      used['driver'] += driver
      used['worker'] += worker
      return {'bytes_up': 7}

    return types.SimpleNamespace(round=round)

  context = types.SimpleNamespace(
    cpu_seconds=lambda: dict(used),
    peak_memory=lambda: {'driver': 300.0, 'worker': 50.0},
  )
  # The worker still cleans up after the round while a step is taken.
  result = comparison.compare(context, side(1.0, 2.5), side(2.0, 0.5), rounds=3)
  assert result['federated_driver_cpu_seconds'] == 1.0
  assert result['federated_worker_cpu_seconds'] == 3.0
  assert result['centralized_cpu_seconds'] == 2.0
  assert result['cpu_ratio'] == 2.0
  assert (result['bytes_up'], result['peak_memory_mib']) == (7, 350.0)
  assert rounds == [k for k in range(6) for _ in range(2)]


def test_a_different_contestant_begins_each_turn():
  assert ' '.join(measure.turns('abc', 4)) == 'a b c b c a c a b a b c'
  assert [*measure.turns([], 2)] == []


def test_cases_are_as_large_as_lesions_of_ham10000():
  assert len(workloads.REGIMES['D'].sizes(seed=0)) == 256
  # 10,015 photographs of 7,470 lesions, 1,956 of them with more than one and 43 with
  # more than three. Tolerances: five standard deviations of 20,000 draws.
  sizes = workloads.Workload(20_000, None).sizes(seed=3)
  assert np.mean(sizes) == pytest.approx(10_015 / 7_470, abs=0.023)
  assert np.mean(sizes > 1) == pytest.approx(1_956 / 7_470, abs=0.016)
  assert np.mean(sizes > 3) == pytest.approx(43 / 7_470, abs=0.003)


@pytest.mark.parametrize('pool_bytes', [2**20, 500, 10])
def test_images_differ_and_share_the_pool(pool_bytes):
  images = workloads.random_images(50, 4, seed=0, pool_bytes=pool_bytes)
  assert len(np.unique(images.reshape(50, -1), axis=0)) == 50
  low, high = np.byte_bounds(images)
  assert high - low <= max(pool_bytes, 50) + 4 * 4 * 3


def test_slope_is_the_power_of_a_power_law():
  points = [
    {'clients': x, 'federated_seconds': 0.3 * x**0.7, 'centralized_seconds': x**0.35}
    for x in (8, 32, 128)
  ]
  slopes = comparison.slopes(points, 'clients')
  assert slopes['federated_slope'] == pytest.approx(0.7)
  assert slopes['centralized_slope'] == pytest.approx(0.35)


def test_options_name_every_experiment_regime_and_objective():
  types_ = kinds.field_types(bench.Options)
  for name, known in (
    ('experiment', experiments.NAMES),
    ('regime', workloads.REGIMES),
    ('objective', experiments.OBJECTIVES),
  ):
    assert typing.get_args(kinds.without_none(types_[name])[1]) == (*known,)


def environment_of(pid: int) -> str:
  try:
    return pathlib.Path(f'/proc/{pid}/environ').read_text(errors='replace')
  except OSError:
    return ''


@pytest.mark.long
def test_json_has_all_numbers_and_nothing_else_is_printed():
  words = '--experiment=dcco --runtime=worker --clients=3 --examples_per_client=2'
  process = forked.Process(
    'docs.bench.__main__', *words.split(), '--format=json', *SMALL
  )
  ended = launch.end(process, pathlib.Path())
  assert not [pid for pid in psutil.pids() if process.mark in environment_of(pid)]
  assert (ended.status, ended.stderr) == (0, '')
  result = json.loads(ended.stdout)
  assert (result['regime'], result['population'], result['examples']) == (None, 3, 6)
  assert result['ratio'] == pytest.approx(
    result['federated_seconds'] / result['centralized_seconds']
  )
  assert result['samples_per_second'] == pytest.approx(6 / result['federated_seconds'])
  # A worker alone maps more than 50 MiB, a driver with TensorFlow several hundred.
  assert result['driver_peak_memory_mib'] > 300
  assert result['worker_peak_memory_mib'] > 50
  assert result['bytes_up'] > result['bytes_down'] // 2 > 0
  assert result['nonfinite_clients'] == 0


@pytest.mark.long
def test_several_values_are_measured_and_their_slope_is_printed():
  words = '--experiment=fedavg --population=2,4 --clients=2 --examples_per_client=1'
  ended = in_process.run(bench, *words.split(), *SMALL)
  assert (ended.status, ended.stderr) == (0, '')
  first, second, last = ended.stdout.splitlines()
  assert first.split()[:4] == ['fedavg', '2', 'x', '1']
  assert 'of      4 clients, registered in' in second
  assert last.startswith('seconds grow as population to the power of ')


@pytest.mark.long
def test_precisions_are_measured_in_turns():
  if precision.fault():
    pytest.skip('As of processors without AVX-512.')
  words = '--experiment=precision', '--clients=3', '--format=json'
  ended = in_process.run(bench, *words, *SMALL)
  # TensorFlow may warn on stderr of how many graphs the tests before have traced.
  assert ended.status == 0, ended.stderr
  result = json.loads(ended.stdout)
  assert result['samples_per_second'] == pytest.approx(12 / result['federated_seconds'])


@pytest.mark.parametrize('line', REFUSED)
def test_options_that_do_nothing_are_refused(line):
  with pytest.raises(ValueError) as error:
    in_process.call(bench, *line.split())
  assert REFUSED[line] in str(error.value)
  assert str(error.value).endswith('.')
