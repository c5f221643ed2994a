"""FedCA: what a client sends, whose rows land where, what the server keeps."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import dictionaries
from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms import fedca
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.settings import learning

_SGD = learning.SgdServer(0.25)


@pytest.fixture(scope='module', name='process')
def _process(tff_context):
  return processes.build(
    fedca.fedca(
      dictionaries.objective(),
      optimizers.build_optimizer(_SGD),
      *dictionaries.config(),
      dictionaries.base(),
    ),
    labels.spec(contextual.CLIENT),
  )


def _cohort(*numbers, broken=()):
  examples = dictionaries.examples()
  for number in broken:
    examples['image'][labels.CLIENTS[dictionaries.NUMBERS.index(number)]] = np.nan
  return harness.cohort(
    [
      labels.CLIENTS[dictionaries.NUMBERS.index(k)] if k is not None else []
      for k in numbers
    ],
    examples,
  )


def _dictionary(state):
  context = state.extra[fedca.CONTEXT]
  return np.asarray(context[dictionary_contrast.ROWS]), np.asarray(
    context[dictionary_contrast.FILLED]
  )


@pytest.fixture(scope='module', name='rounds')
def _rounds(process):
  """Returns states and metrics of two rounds.

  In the first client 2 is absent and one is empty; in the second client 0 is absent and
  client 3 not finite.
  """
  return harness.rounds_of(
    process, [_cohort(0, 3, None, 1, 4), _cohort(4, 2, 3, 1, broken=(3,))]
  )


def test_a_round_is_the_mean_of_what_clients_send(process, rounds):
  """Written out: of each client what `client_function` says, weighted by examples."""
  states, metrics = rounds
  function = fedca.client_function(dictionaries.objective(), *dictionaries.config())
  function = dataclasses.replace(
    function, client_fn=harness.for_any_size(function.client_fn)
  )
  for r, cohort in enumerate(((0, 3, 1, 4), (4, 2, 1))):
    state = states[r]
    shared = dictionaries.shared(
      state.extra[fedca.CONTEXT],
      labels.as_params(process.get_model_weights(state).trainable),
      harness.round_seed(r),
    )
    results = [
      dictionaries.sends(function, shared, dictionaries.batch(k)) for k in cohort
    ]
    sizes = [dictionaries.SIZE_OF[k] for k in cohort]
    update = np.average(
      [harness.flat(result.means['update']) for result in results], 0, sizes
    )
    moved = harness.weights(process, state) - harness.weights(process, states[r + 1])
    assert harness.relative(moved, _SGD.learning_rate * update) < 1e-3
    loss = np.average(
      [float(result.means['metrics']['loss']) for result in results], 0, sizes
    )
    assert metrics[r]['client_work']['loss'] == pytest.approx(loss, rel=1e-4)
    rows, filled = _dictionary(states[r + 1])
    for number, result in zip(cohort, results, strict=True):
      own_rows, own_filled = dictionaries.sum_of(result)
      np.testing.assert_allclose(rows[number], own_rows[number], atol=1e-5)
      np.testing.assert_array_equal(filled[number], own_filled[number] > 0.5)


def test_absent_clients_keep_their_rows(rounds):
  (_, first, second), _ = rounds
  assert not np.any(_dictionary(first)[1][[2, 5]])
  for before, after in zip(_dictionary(first), _dictionary(second), strict=True):
    np.testing.assert_array_equal(after[[0, 3, 5]], before[[0, 3, 5]])
  assert _dictionary(second)[1].sum(axis=1).tolist() == [1, 3, 2, 2, 3, 0]


def test_rows_land_in_their_places_in_any_order_of_the_cohort(process, rounds):
  output = process.next(rounds[0][0], _cohort(4, 1, 0, None, 3))
  for got, expected in zip(
    _dictionary(output.state), _dictionary(rounds[0][1]), strict=True
  ):
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_the_base_model_stays_and_bytes_are_those_of_rows(process, rounds):
  states, metrics = rounds
  base = states[-1].extra[fedca.CONTEXT][dictionary_contrast.BASE]
  for name, value in dictionaries.base().items():
    np.testing.assert_array_equal(base[name], value)
  model, encoder = (
    harness.weights(process, states[0]).size,
    harness.flat(dictionaries.base()).size,
  )
  # A row is four numbers; of 1, 2, 3 and 4 examples at most three are shared.
  given, sent, senders = (0, 9), (9, 8), (4, 3)
  clients, seed_and_rate = (5, 4), 3
  # Weight, counts, loss and its parts, moments.
  told = 1 + harness.COUNTS + 3 + 2 * harness.DIMENSION + harness.DIMENSION**2
  for r in range(2):
    work = metrics[r]['client_work']
    down = 4 * (model + encoder + seed_and_rate + harness.DIMENSION * given[r])
    assert work['bytes_down'] == clients[r] * down
    up = clients[r] * (model + told) + harness.DIMENSION * sent[r] + senders[r]
    assert work['bytes_up'] == 4 * up
    assert work['dictionary_rows'] == given[r]


@pytest.mark.parametrize(
  ('spec', 'base', 'message'),
  [
    (labels.spec('client'), None, 'alignment_weight is 0.5 without base_params'),
    (
      labels.spec('client'),
      {},
      'params of the base model has no .*; it must hold all 1 parameters',
    ),
    (
      labels.spec('client'),
      {**dictionaries.base(), 'conv/kernel': np.zeros([3, 3, 1, 5])},
      r'conv/kernel of the base model is .*; it must be \(3, 3, 1, 6\)',
    ),
  ],
)
def test_mismatched_arguments_are_refused(spec, base, message):
  with pytest.raises(ValueError, match=message):
    processes.build(
      fedca.fedca(dictionaries.objective(), None, *dictionaries.config(), base), spec
    )


@pytest.mark.parametrize('number', [4, 2])
def test_a_client_sends_unit_projections_of_its_images_at_its_number(number):
  params = dictionaries.objective().init(dictionaries.SEED)
  result = dictionaries.visit(number)
  rows, filled = dictionaries.sum_of(result)
  # Client 4 has four images for three slots, client 2 has two.
  expected = np.zeros((dictionaries.POPULATION, dictionaries.SLOTS))
  expected[number, : dictionaries.SIZE_OF[number]] = 1
  np.testing.assert_allclose(filled, expected, atol=1e-6)
  trained = {n: params[n] - u for n, u in result.means['update'].items()}
  z = harness.model().project(trained, dictionaries.batch(number)['image']).numpy()
  z /= np.linalg.norm(z, axis=1, keepdims=True)
  distance = np.linalg.norm(rows[number][:, np.newaxis] - z[np.newaxis], axis=2)
  count = min(dictionaries.SLOTS, dictionaries.SIZE_OF[number])
  assert len(set(np.argmin(distance, axis=1)[:count])) == count
  np.testing.assert_allclose(np.min(distance, axis=1)[:count], 0, atol=1e-5)
  assert not np.any(np.delete(rows, number, axis=0))
  assert not np.any(rows[number][count:])
  assert any(np.any(value) for value in result.means['update'].values())


def test_a_draw_depends_on_the_round_and_the_client_alone():
  many = harness.tensors(harness.arrays(12))
  draws = [tuple(fedca.draw(many, (5, k), 4).numpy()) for k in range(6)]
  assert all(len(set(d)) == 4 and max(d) < 12 for d in draws)
  assert len(set(draws)) > 3
  assert draws[0] == tuple(fedca.draw(many, (5, 0), 4).numpy())
  assert draws[0] == tuple(fedca.draw(many, (5, 0), 6).numpy())[:4]
  assert sorted(fedca.draw(many, (5, 0), 99).numpy()) == list(range(12))


def test_the_dictionary_and_the_base_model_move_a_client():
  objective = dictionaries.objective()
  start = harness.flat(
    dictionaries.visit(4, full=False, minimised=dictionaries.objective(0.0)).means[
      'update'
    ]
  )
  for options in (
    {'minimised': objective, 'full': False},
    {'minimised': dictionaries.objective(0)},
  ):
    other = harness.flat(dictionaries.visit(4, **options).means['update'])
    assert harness.relative(other, start) > 1e-2
  # One example has nothing to be told from but what others have shared.
  alone = dictionaries.visit(4, size=1, minimised=dictionaries.objective(0.0))
  assert np.abs(harness.flat(alone.means['update'])).max() > 1e-4


def test_the_server_keeps_what_each_client_sent_last():
  objective, config = dictionaries.objective(), dictionaries.config()
  before = dictionaries.context(objective, config, full=True)
  generator = np.random.default_rng(4)
  rows = generator.normal(
    size=(dictionaries.POPULATION, dictionaries.SLOTS, harness.DIMENSION)
  )
  filled = np.zeros((dictionaries.POPULATION, dictionaries.SLOTS))
  filled[1], filled[4, :2] = 1, 1
  rows *= filled[:, :, np.newaxis]
  # With the noise of sums that are quantised.
  noise = 1e-3 * generator.normal(size=filled.shape)
  aggregated = collections.OrderedDict(
    [
      (dictionary_contrast.ROWS, tf.constant(rows, tf.float32)),
      (dictionary_contrast.FILLED, tf.constant(filled + noise, tf.float32)),
    ]
  )
  after = fedca.update_dictionary(before, aggregated)
  assert list(after) == list(before)
  for k in range(dictionaries.POPULATION):
    if k not in (1, 4):
      np.testing.assert_array_equal(
        after[dictionary_contrast.ROWS][k], before[dictionary_contrast.ROWS][k]
      )
    np.testing.assert_array_equal(
      after[dictionary_contrast.FILLED][k],
      filled[k] if k in (1, 4) else [True] * dictionaries.SLOTS,
    )
  unit = rows[1] / np.linalg.norm(rows[1], axis=1, keepdims=True)
  np.testing.assert_allclose(after[dictionary_contrast.ROWS][1], unit, rtol=1e-5)
  assert not np.any(after[dictionary_contrast.ROWS][4, 2])
