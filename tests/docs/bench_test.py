"""The benchmark with models and cohorts so small that only its bookkeeping shows.

Its ratio means something if both sides do the same work: the same examples, from the
same weights, to the same weights.
"""

import dataclasses
import functools
import itertools
import json
import pathlib
import typing

import numpy as np
import psutil
import pytest

from docs.bench import __main__ as bench
from docs.bench import experiments
from docs.bench import measure
from docs.bench import report
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

SMALL = (
  '--encoder=conv2:width=0.125',
  '--rounds=2',
  '--image_size=8',
)
STATEFUL = ('fedema', 'per_ssfl', 'featarc')
REFUSED = {
  '--experiment=fedavg --runtime=ray': 'runtime is ray; it must be worker or in_p',
  '--experiment=dcco --batch_size=4': '--batch_size is given with --experiment=dcco',
  '--experiment=fedsup --objective=byol': 'it is for fedavg, precision only',
  '--experiment=precision --encoder=precision=bfloat16': 'measures both precisions',
  '--experiment=precision --runtime=worker': 'measures both precisions in this proc',
  '--trackers=wandb': 'There is no flag --trackers',
  '--experiment=dcco --regime=B': 'its local batches are for the other experiments',
  '--regime=A --clients=3': '--clients is given with --regime=A; leave one of them out',
  '--regime=A --batch_size=2 --experiment=fedavg': '--batch_size is given with --re',
  '--clients=8,x': '--clients=8,x is given: it must be a whole number',
  '--clients=8,4': '--clients is 8,4; it must be one or several numbers, ascending',
  '--examples_per_client=0': 'it must be a whole number at least 1',
  '--clients=2,4 --population=4,5': '--clients and --population have several values',
  '--population=63,100': 'population is 63; it must be at least the 64 clients',
}


def problem(local=None, norm='group') -> experiments.Problem:
  encoder = registry.build_encoder('conv2', tiny.IMAGE_SHAPE, 0.125, normalization=norm)
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
  return experiments.Problem(model, clients, local or learning.SgdClients(), 0)


@functools.cache
def built(name: str) -> tuple[sides.Side, sides.Side]:
  """Returns both sides of the tiny problem, made once: tracing takes seconds."""
  return sides.build(problem(), name)


def weights(side: sides.Side) -> np.ndarray:
  """Returns the global model's weights, or those of FeatARC's cluster models."""
  held = side.weights()
  chosen = held.non_trainable or held.trainable
  return np.concatenate([np.ravel(chosen[name]) for name in sorted(chosen)])


@pytest.mark.long
@pytest.mark.parametrize('name', ['dcco', 'fedsup', *STATEFUL])
def test_both_sides_compute_the_same(tff_context, name):
  pair = built(name)
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


@pytest.mark.long
@pytest.mark.parametrize('name', experiments.OBJECTIVES)
def test_a_centralized_step_moves_the_weights(name):
  side = sides.Centralized(problem(), experiments.OBJECTIVES[name](problem().model))
  before = weights(side)
  assert np.isfinite(side.round(0)['loss'])
  assert np.abs(weights(side) - before).max() > 0


@pytest.mark.parametrize(
  ('epochs', 'batch_size', 'sizes'),
  [(1, None, [9]), (1, 4, [4, 4, 1]), (2, 5, [5, 4, 5, 4])],
)
def test_centralized_batches_hold_what_clients_visit(epochs, batch_size, sizes):
  batches = sides.batches(
    problem(learning.SgdClients(epochs=epochs, batch_size=batch_size)), 0
  )
  ids = [[int(e['example_id']) for e in batch] for batch in batches]
  assert [len(batch) for batch in ids] == sizes
  assert [*itertools.chain(*ids)] == [*tiny.arrays()['example_id']] * epochs


@pytest.mark.parametrize(
  ('drop_last', 'sizes'), [('small', [4, 4, 1]), ('always', [4, 4])]
)
def test_centralized_batches_lack_what_clients_with_batch_norm_leave_out(
  drop_last, sizes
):
  # Clients of four and five in batches of four: one is a quarter, and is kept.
  plan = learning.SgdClients(batch_size=4, epochs=2, drop_last_batch=drop_last)
  case = problem(plan, 'batch')
  assert [len([*batch]) for batch in sides.batches(case, 0)] == sizes * 2
  assert sides.visited_examples(case, 0) == 2 * sum(sizes)


def test_both_sides_have_the_examples_of_the_cohort_that_is_drawn():
  workload = workloads.Workload(clients=3, examples_per_client=2, population=40)
  clients = workloads.register(workload, image_size=2, seed=0, num_packs=0)
  case = dataclasses.replace(problem(), clients=clients)
  seen = []
  for number in range(2):
    cohort = clients.simulation.cohort(clients.cohorts(number))
    federated = [[int(e['example_id']) for e in data] for data in cohort]
    (batch,) = sides.batches(case, number)
    assert [len(ids) for ids in federated] == [2, 2, 2]
    assert [int(e['example_id']) for e in batch] == [*itertools.chain(*federated)]
    seen.append(federated)
  assert seen[0] != seen[1]


class FakeContext:
  """Counts CPU time as a round that takes 3 s in the worker and 1 s in the driver."""

  def __init__(self):
    self.driver = self.worker = 0.0
    self.rounds = []

  def cpu_seconds(self):
    return {'driver': self.driver, 'worker': self.worker}

  def peak_memory(self):
    return {'driver': 300.0, 'worker': 50.0}

  def side(self, driver, worker):
    """Returns a side whose rounds take so many seconds."""

    class Side:
      def round(side, number):  # noqa: N805
        self.rounds.append(number)
        self.driver += driver
        self.worker += worker
        return {'bytes_up': 7}

    return Side()


def test_cpu_time_counts_for_the_side_that_caused_it():
  execution = FakeContext()
  # The worker still cleans up after the round while a step is taken.
  pair = execution.side(1.0, 2.5), execution.side(2.0, 0.5)
  result = measure.compare(execution, *pair, rounds=3)
  assert result['federated_driver_cpu_seconds'] == 1.0
  assert result['federated_worker_cpu_seconds'] == 3.0
  assert result['centralized_cpu_seconds'] == 2.0
  assert result['cpu_ratio'] == 2.0
  assert (result['bytes_up'], result['peak_memory_mib']) == (7, 350.0)
  # Both sides take every round, the one right after the other.
  assert execution.rounds == [k for k in range(6) for _ in range(2)]


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
  slopes = report.slopes(points, 'clients')
  assert slopes['federated_slope'] == pytest.approx(0.7)
  assert slopes['centralized_slope'] == pytest.approx(0.35)


def test_what_can_be_asked_for_is_what_there_is():
  types = kinds.field_types(bench.Options)
  for name, known in (
    ('experiment', experiments.NAMES),
    ('regime', workloads.REGIMES),
    ('objective', experiments.OBJECTIVES),
  ):
    assert typing.get_args(kinds.without_none(types[name])[1]) == (*known,)


def environment_of(pid: int) -> str:
  try:
    return pathlib.Path(f'/proc/{pid}/environ').read_text(errors='replace')
  except OSError:
    return ''


@pytest.mark.long
def test_json_has_all_numbers_and_nothing_else_is_printed():
  process = forked.Process(
    'docs.bench.__main__',
    '--experiment=dcco',
    '--runtime=worker',
    '--clients=3',
    '--examples_per_client=2',
    '--format=json',
    *SMALL,
  )
  ended = launch.end(process, pathlib.Path())
  assert not [pid for pid in psutil.pids() if process.mark in environment_of(pid)]
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
  assert result['federated_cpu_seconds'] > 0
  assert result['bytes_up'] > result['bytes_down'] // 2 > 0
  assert result['nonfinite_clients'] == 0


@pytest.mark.long
def test_several_values_are_measured_and_their_slope_is_printed():
  ended = in_process.run(
    bench,
    '--experiment=fedavg',
    '--population=2,4',
    '--clients=2',
    '--examples_per_client=1',
    *SMALL,
  )
  assert (ended.status, ended.stderr) == (0, '')
  first, second, last = ended.stdout.splitlines()
  assert first.split()[:4] == ['fedavg', '2', 'x', '1']
  assert 'of      4 clients, registered in' in second
  assert last.startswith('seconds grow as population to the power of ')


@pytest.mark.long
def test_precisions_are_measured_in_turns():
  try:
    precision.check('bfloat16')
  except ValueError as error:
    # As of processors without AVX-512.
    pytest.skip(str(error))
  ended = in_process.run(
    bench, '--experiment=precision', '--clients=3', '--format=json', *SMALL
  )
  # TensorFlow may warn on stderr of how many graphs the tests before have traced.
  assert ended.status == 0, ended.stderr
  result = json.loads(ended.stdout)
  assert result['samples_per_second'] == pytest.approx(12 / result['federated_seconds'])


@pytest.mark.parametrize('line', REFUSED)
def test_bad_flags_are_one_sentence(line):
  with pytest.raises(ValueError) as error:
    in_process.call(bench, *line.split())
  assert REFUSED[line] in str(error.value)
  assert str(error.value).endswith('.')
