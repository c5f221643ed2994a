"""What every algorithm must do, whatever it is for: a table of them, and the checks."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import tiny
from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms import table
from tests.algorithms import with_states
from tff_ssl import algorithms
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import federated_linear
from tff_ssl.algorithms import one_round
from tff_ssl.algorithms import view_moments
from tff_ssl.algorithms.labels_at_server import labelled_only
from tff_ssl.execution import contexts
from tff_ssl.federated import phases
from tff_ssl.federated import processes

_TABLE = table.TABLE
_WRAPPED = with_states.WithStates | harness.ClientsAlone | numbered.Numbered
_FEDERATED = [name for name, row in _TABLE.items() if row.federated]
# At least one of each way in which the builder computes packs: over the union of the
# clients, over clients of equal size, one by one, with states, with numbers of the
# clients, in slots of groups, with data at the server. SCAFFOLD, FedBN, FeatARC,
# Fed-BYOL and those without a server are checked packed in their own tests; the others
# share their client's part with a row.
_PACKED = (
  'dcco',
  'fedavg_nt_xent',
  'fedavg_batch_norm',
  'l_dawa',
  'fedu2',
  'fedema',
  'per_ssfl',
  'maml_ssfl',
  'fedca',
  'fedsup',
  'fedmatch',
)


# Over the union of clients, with states, with data at the server, with two payloads.
_WITH_A_WORKER = ('dcco', 'fedbn_simsiam', 'fedsup', 'fedca')
_D = harness.DIMENSION
_MOMENTS = 2 * _D + _D**2
# The seed and the rate; for clients with a state the round, too.
_TOLD, _TOLD_WITH_STATE = 3, 4
# The weight, the counts and the loss.
_COUNTED = 1 + harness.COUNTS + 1
# Numbers that a client receives and sends, of those of the model, as papers have them.
_NUMBERS = {
  # DCCO, Section 3.3: d^2 + 4d statistics and the number of examples, for the alarm 2d
  # means; what moments are taken around costs 2d, down alone.
  'dcco': lambda m: (m + 2 + _D**2 + 6 * _D, m + _COUNTED + _D**2 + 6 * _D),
  'fedavg_nt_xent': lambda m: (m + _TOLD, m + _COUNTED + _MOMENTS),
  'fed_byol': lambda m: (m + _TOLD_WITH_STATE, m + _COUNTED + _MOMENTS),
  # Without batch norm; the spread and the rank of a client's own in place of moments.
  'fedbn_simsiam': lambda m: (m + _TOLD_WITH_STATE, m + _COUNTED + 2),
  'scaffold': lambda m: (2 * m + _TOLD_WITH_STATE, 2 * m + _COUNTED + _MOMENTS),
  # The weights of all; a sketch of 64 numbers, its mark and its weight, two parts of
  # the loss. Lengths are those of sketches.
  'fedu2': lambda m: (
    m + _TOLD_WITH_STATE + numbered.POPULATION,
    m + 64 + 2 + _COUNTED - 32 + 2 + _MOMENTS,
  ),
  # Five centroids, and one byte: whether there are any; two clusters, each with a mark.
  'orchestra': lambda m: (
    m + _TOLD + 5 * _D + 1 / 4,
    m + 2 * (_D + 1) + _COUNTED + 2 + _MOMENTS,
  ),
  'ssd': lambda m: (m + _TOLD, m + _COUNTED + 2 + _MOMENTS),
  # mu, divergence, lambda and whether there is one.
  'fedema': lambda m: (m + _TOLD_WITH_STATE, m + _COUNTED + 4 + 2),
  # Both models with 12 statistics each; one with them, two parts of the loss, clients
  # and weight of each cluster, switches.
  'featarc': lambda m: (
    2 * (m + 12) + _TOLD_WITH_STATE,
    m + 12 + _COUNTED + 2 + 2 + 2 + 2 + 1,
  ),
}


@dataclasses.dataclass(frozen=True)
class _Trained:
  """A process after its first rounds that changed the weights."""

  process: object
  initial: object
  state: object
  metrics: object
  scratch: tuple[str, ...]

  def weights(self, state) -> np.ndarray:
    return harness.weights(self.process, state)

  def kept(self, state) -> np.ndarray:
    """Returns what is kept, of clients that took part in the first rounds alone."""
    return _kept(state, self.scratch, getattr(self.state, 'clients', ()))

  def next(self, datasets):
    output = self.process.next(self.state, datasets)
    return output.state, output.metrics['client_work']

  @functools.cached_property
  def after(self):
    """The state after a round more, and its metrics."""
    return self.next(_cohort())


def _kept(state, scratch, clients) -> np.ndarray:
  """Returns what server and clients keep besides what is trained as one vector."""
  server = getattr(state, 'server', state)
  values = [getattr(server, name, ()) for name in ('optimizer', 'objective')]
  values.append(server.global_model_weights.non_trainable)
  stored = getattr(server, 'extra', {})
  values += [value for name, value in stored.items() if name not in scratch]
  values += [state.clients[key].kept for key in clients]
  return harness.flat(tf.nest.flatten(values))


def _cohort():
  return harness.cohort(tiny.partition().values(), tiny.floats())


@pytest.fixture(scope='module')
def trained(tff_context):
  """Returns a function from a row's name to its process, trained once a module."""
  made = {}

  def get(name):
    if name not in made:
      row = _TABLE[name]
      process = table.process(name, False)
      states, metrics = harness.rounds_of(process, [_cohort()] * (row.collects + 1))
      work = metrics[-1]['client_work']
      made[name] = _Trained(process, states[0], states[-1], work, row.scratch)
    return made[name]

  return get


def test_every_algorithm_is_in_the_table():
  defined = set()
  for found in pkgutil.walk_packages(algorithms.__path__, f'{algorithms.__name__}.'):
    module = importlib.import_module(found.name)
    # The function of a method has its module's name.
    member = getattr(module, found.name.rpartition('.')[2], None)
    if inspect.isfunction(member):
      returned = inspect.signature(member).return_annotation
      assert returned is not inspect.Signature.empty, f'{member} has no type'
      if returned is phases.Algorithm:
        defined.add(member)
  assert defined, 'no algorithm was found'
  # FedAvg over features instead of images, with tests of its own.
  defined.remove(federated_linear.federated_linear)
  # Sums of features in a single round, without a loss.
  defined -= {one_round.one_round, view_moments.view_moments}
  # Without clients, with tests of its own.
  defined.remove(labelled_only.labelled_only)
  missing = defined - {row.method for row in _TABLE.values()}
  assert not missing, f'add {missing} to tests/algorithms/table.py'


@pytest.mark.parametrize(
  'name', ['fedu2', 'orchestra', 'fedca', 'fedmatch', 'decentralized']
)
def test_a_table_with_a_row_for_each_client_needs_numbers_and_has_no_noise(name):
  algorithm = _TABLE[name].algorithm()
  with pytest.raises(ValueError, match='The aggregation adds noise, as a private one'):
    private = aggregations.private(1.0, 1.0, 1.0)
    processes.build(algorithm, harness.element(algorithm), private)
  with pytest.raises(ValueError, match='must have an int32 scalar `client`'):
    processes.build(algorithm, harness.ELEMENT)


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _FEDERATED)
def test_it_is_a_process_whose_state_keeps_its_type_and_takes_weights(trained, name):
  run = trained(name)
  process, states = run.process, [run.initial, run.state]
  while isinstance(process, _WRAPPED):
    process = process.process
    states = [getattr(own, 'server', own) for own in states]
  assert isinstance(process, processes.Built)
  state_type = process.initialize.type_signature.result
  assert state_type.is_identical_to(process.next.type_signature.result.state)
  weights_type = process.get_model_weights.type_signature.result
  assert weights_type.python_container is tff.learning.models.ModelWeights
  weights = process.get_model_weights(states[1])
  taken = process.set_model_weights(states[0], weights)
  assert int(taken.round) == int(states[0].round)
  got = process.get_model_weights(taken)
  np.testing.assert_array_equal(
    *(harness.flat(tf.nest.flatten(w)) for w in (got, weights))
  )


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _TABLE)
def test_a_round_changes_the_weights_and_keeps_them_finite(trained, name):
  run = trained(name)
  before, after = run.weights(run.initial), run.weights(run.state)
  assert np.isfinite(after).all()
  assert harness.relative(after, before) > 1e-3


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _TABLE)
def test_a_state_that_was_taken_apart_goes_on_alike(trained, name):
  run = trained(name)
  leaves = [np.array(x) for x in tf.nest.flatten(run.state)]
  restored = dataclasses.replace(run, state=tf.nest.pack_sequence_as(run.state, leaves))
  for a, b in zip(run.after, restored.next(_cohort()), strict=True):
    np.testing.assert_array_equal(
      harness.flat(tf.nest.flatten(a)), harness.flat(tf.nest.flatten(b))
    )


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _TABLE)
def test_rounds_differ_only_by_their_seed(trained, name):
  run = trained(name)
  first, metrics = run.after
  again, same = run.next(_cohort())
  np.testing.assert_array_equal(run.weights(first), run.weights(again))
  assert metrics == same
  # The next round sees other views.
  later = dataclasses.replace(run, state=first).next(_cohort())[1]
  assert later['loss'] != metrics['loss']


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _TABLE)
def test_metrics_say_loss_and_examples(trained, name):
  metrics = trained(name).metrics
  assert np.isfinite(float(metrics['loss']))
  assert float(metrics['loss']) != 0
  assert int(metrics['examples']) == 9
  assert all(np.isfinite(float(value)) for value in metrics.values())
  assert all(np.ndim(value) == 0 for value in metrics.values())


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _FEDERATED)
def test_metrics_say_clients_and_bytes(trained, name):
  run = trained(name)
  metrics, messages = run.metrics, _TABLE[name].messages
  assert metrics['clients'] == 2
  for kind in ('empty', 'nonfinite', 'outlying'):
    assert metrics[f'{kind}_clients'] == 0
  model = 4 * run.weights(run.state).size
  for direction in ('bytes_down', 'bytes_up'):
    # A dense model, and a sparse one with as many places, for each of two clients.
    least, most = messages * model, 2 * messages * model
    if _TABLE[name].sparse:
      least, most = 0, 6 * model
    assert least < metrics[direction] < most + 2000
    assert metrics[direction] % 2 == 0
  if name in _NUMBERS:
    numbers = metrics['bytes_down'] / 8, metrics['bytes_up'] / 8
    assert numbers == _NUMBERS[name](model // 4)


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _TABLE)
def test_a_cohort_without_examples_changes_nothing(trained, name):
  run = trained(name)
  state, metrics = run.next(harness.cohort([[], []]))
  np.testing.assert_array_equal(run.weights(state), run.weights(run.state))
  np.testing.assert_array_equal(run.kept(state), run.kept(run.state))
  assert int(metrics['examples']) == 0
  # Where nobody has measured a loss there is none.
  assert np.isnan(float(metrics['loss']))
  if _TABLE[name].federated:
    assert metrics['empty_clients'] == 2
    assert metrics['nonfinite_clients'] == 0


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('value', [np.nan, np.inf])
@pytest.mark.parametrize('name', _TABLE)
def test_a_cohort_without_finite_images_changes_nothing(trained, name, value):
  run = trained(name)
  state, metrics = run.next([harness.broken([0, 1], value), harness.broken([2], value)])
  np.testing.assert_array_equal(run.weights(state), run.weights(run.state))
  np.testing.assert_array_equal(run.kept(state), run.kept(run.state))
  assert int(metrics['examples']) == 0
  if _TABLE[name].federated:
    assert metrics['nonfinite_clients'] == 2
    assert metrics['empty_clients'] == 0
    assert np.isnan(float(metrics['loss']))
  else:
    assert int(metrics['nonfinite_batches']) == 1


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _FEDERATED)
@pytest.mark.parametrize(
  ('dataset', 'counted'),
  [
    (lambda: harness.broken([4, 5, 6]), 'nonfinite_clients'),
    (lambda: harness.cohort([[]])[0], 'empty_clients'),
  ],
)
def test_a_client_that_can_not_contribute_might_as_well_be_absent(
  trained, name, dataset, counted
):
  run = trained(name)
  good = _cohort()
  expected, expected_metrics = run.after
  got, metrics = run.next([good[0], dataset(), good[1]])
  step = run.weights(got) - run.weights(run.state)
  expected_step = run.weights(expected) - run.weights(run.state)
  assert harness.relative(step, expected_step) < 1e-5
  np.testing.assert_allclose(run.kept(got), run.kept(expected), rtol=1e-5, atol=1e-6)
  assert metrics.pop(counted) == 1
  for metric, value in expected_metrics.items():
    if metric not in (counted, 'clients', 'bytes_down', 'bytes_up'):
      assert metrics[metric] == pytest.approx(value, rel=1e-5), metric


@pytest.mark.long_for(*table.LONG)
@pytest.mark.parametrize('name', _TABLE)
def test_a_cohort_of_one_example_is_defined(trained, name):
  run = trained(name)
  state, metrics = run.next(harness.cohort([[0]]))
  assert np.isfinite(run.weights(state)).all()
  assert np.isfinite(run.kept(state)).all()
  assert np.isfinite(float(metrics['loss']))
  assert int(metrics['examples']) == 1


@pytest.mark.long_for(*table.LONG, 'fedca', 'fedavg_nt_xent', 'fedsup')
@pytest.mark.parametrize('broken', [False, True])
@pytest.mark.parametrize('name', _PACKED)
def test_packed_clients_give_the_same_rounds(tff_context, name, broken):
  """Clients of many sizes, one empty; and one whose images are not finite."""
  row = _TABLE[name]
  examples = harness.arrays()
  examples['image'][5] *= np.nan if broken else 1
  members = harness.split([1, 0, 3, 1, 3, 4])
  results = []
  for is_packed in (False, True):
    cohort = harness.cohort(members, examples, is_packed)
    process = table.process(name, is_packed)
    states, metrics = harness.rounds_of(process, [cohort] * (row.collects + 2))
    start, end = (harness.weights(process, s) for s in (states[0], states[-1]))
    clients = sorted(getattr(states[-1], 'clients', ()))
    kept = _kept(states[-1], (), clients)
    results.append((end - start, clients, kept, metrics[-1]['client_work']))
  (apart, *apart_kept, apart_metrics), (packed, *packed_kept, packed_metrics) = results
  # Adam makes whole steps of gradients that are rounding noise.
  assert harness.relative(packed, apart) < 1e-3
  assert packed_kept[0] == apart_kept[0]
  np.testing.assert_allclose(packed_kept[1], apart_kept[1], rtol=1e-3, atol=1e-5)
  assert packed_metrics == pytest.approx(apart_metrics, rel=1e-4, abs=1e-6)
  assert packed_metrics['nonfinite_clients'] == broken
  assert packed_metrics['empty_clients'] == 1


@pytest.mark.long_for(*table.LONG, 'fedsup', 'fedca')
@pytest.mark.parametrize('name', _WITH_A_WORKER)
def test_rounds_of_a_worker_are_the_same(trained, name):
  """Up to the last digits: TensorFlow has been compiled otherwise for the worker."""
  run = trained(name)
  expected, expected_metrics = run.after
  with contexts.local(concurrency=2, optimize_graphs=False):
    got, metrics = run.next(_cohort())
  step = run.weights(got) - run.weights(run.state)
  expected_step = run.weights(expected) - run.weights(run.state)
  assert harness.relative(step, expected_step) < 1e-4
  # A rank near 1 is of small differences.
  assert metrics == pytest.approx(expected_metrics, rel=1e-3, abs=1e-6)
