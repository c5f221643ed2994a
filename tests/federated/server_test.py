"""Tests of the server's part: seeds and the update that did not arrive."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.settings import learning

_O = tff.learning.optimizers


@pytest.mark.parametrize(
  'optimizer',
  [tf.keras.optimizers.SGD(), _O.build_sgdm, 'sgd', None, 0.1, _O.build_adafactor(0.1)],
)
def test_what_is_no_optimizer_of_graphs_is_refused(optimizer):
  with pytest.raises(ValueError, match=r"The server's optimizer is .* must be"):
    processes.build(fedavg.fedavg(harness.cco(), optimizer), harness.ELEMENT)


@pytest.mark.parametrize(
  ('name', 'build'),
  {
    'objective': lambda sgd: fedavg.fedavg(sgd, harness.cco()),
    'training': lambda sgd: fedavg.fedavg(harness.cco(), sgd, sgd),
    'clients': lambda sgd: fedavg.Training(sgd),
    'algorithm': lambda _: processes.build(harness.cco(), harness.ELEMENT),
  }.items(),
)
def test_arguments_in_the_place_of_others_are_named(name, build):
  with pytest.raises(ValueError, match=f'^{name} is .*; it must be a tff_ssl'):
    build(_O.build_sgdm(1.0))


def test_a_rate_that_is_set_scales_the_step(tff_context):
  config = fedavg.Training(learning.SgdClients(learning_rate=0.25))
  algorithm = fedavg.fedavg(harness.cco(), _O.build_sgdm(0.5), config)
  process = processes.build(algorithm, harness.ELEMENT)
  state, cohort = process.initialize(), harness.cohort([[0, 1], [2, 3, 4]])
  before = harness.weights(process, state)

  def step(state):
    return harness.weights(process, process.next(state, cohort).state) - before

  hparams = process.get_hparams(state)
  rates = {'client_work': {'learning_rate': 0.25}, 'finalizer': {'learning_rate': 0.5}}
  assert {group: dict(own) for group, own in hparams.items()} == rates
  once = step(state)
  hparams['finalizer']['learning_rate'] = 1.5
  assert harness.relative(step(process.set_hparams(state, hparams)), 3 * once) < 1e-4
  hparams['client_work']['learning_rate'] = 1.5
  with pytest.raises(tf.errors.InvalidArgumentError, match='of client_work is fixed'):
    process.set_hparams(state, hparams)


def test_seeds_are_a_function_of_the_run_and_the_round():
  def seeds(run):
    seed, result = server.initial_round_seed(run), []
    for _ in range(20):
      result.append(tuple(int(x) for x in seed))
      seed = server.next_round_seed(seed)
    return result

  assert seeds(1) == seeds(1)
  # Both halves of a seed of 64 bits count.
  several = [seeds(run) for run in (1, 2, 2**32 + 1, 2**62 + 1)]
  assert len({seed for each in several for seed in each}) == 80


def test_a_round_is_one_more_and_draws_another_seed():
  optimizer = tff.learning.optimizers.build_sgdm(1.0)
  state = server.initial_state(server.as_weights({'a': tf.ones([2])}), 3, optimizer)
  after = server.next_round(state)
  assert (int(state.round), int(after.round)) == (0, 1)
  np.testing.assert_array_equal(state.round_seed, server.initial_round_seed(3))
  expected = server.next_round_seed(state.round_seed)
  np.testing.assert_array_equal(after.round_seed, expected)


def test_initial_weights_are_all_trainable_and_follow_the_seed():
  runs = (1, 1, 2, 2**32 + 1)
  one, same, *others = (server.initial_weights(harness.cco(), s) for s in runs)
  assert not one.non_trainable
  assert set(one.trainable) == set(harness.cco().init(tf.constant([0, 0])))
  np.testing.assert_array_equal(
    harness.flat(one.trainable), harness.flat(same.trainable)
  )
  for other in others:
    ours, theirs = (harness.flat(state.trainable) for state in (one, other))
    assert harness.relative(ours, theirs) > 0.1


@pytest.mark.parametrize(
  ('update', 'rejected'),
  [
    ([0.0, 0.0], True),
    ([np.nan, 1.0], True),
    ([np.inf, -np.inf], True),
    ([1e-20, 0.0], False),
    ([1.0, -1.0], False),
  ],
)
def test_an_update_of_nothing_is_left_unused(update, rejected):
  given = {'a': tf.constant(update), 'b': tf.zeros([2])}
  assert bool(server.is_nothing(given)) == rejected
  optimizer = tff.learning.optimizers.build_sgdm(1.0, 0.9)
  weights = server.as_weights({'a': tf.ones([2]), 'b': tf.zeros([2])})
  state = server.initial_state(weights, 0, optimizer)
  after, measured = server.apply(optimizer, state, {'update': given})
  assert int(measured['update_rejected']) == rejected
  expected = np.ones(2) - (0 if rejected else np.array(update))
  np.testing.assert_allclose(after.global_model_weights.trainable['a'], expected)
  if rejected:
    np.testing.assert_array_equal(
      harness.flat(after.optimizer).astype(np.float32),
      harness.flat(state.optimizer).astype(np.float32),
    )


@pytest.mark.parametrize(('counted', 'expected'), [(0.0, 7.0), (3.0, 5.0)])
def test_statistics_of_nobody_leave_the_old_ones(counted, expected):
  optimizer = tff.learning.optimizers.build_sgdm(1.0)
  weights = tff.learning.models.ModelWeights(
    {'a': tf.ones([2])}, {'mean': tf.constant([7.0])}
  )
  state = server.initial_state(weights, 0, optimizer)
  aggregated = {
    'update': {'a': tf.constant([1.0, 0.0])},
    'statistics': {
      'statistics': {'mean': tf.constant([5.0])},
      'num_examples': tf.constant(counted),
    },
  }
  after, _ = server.apply(optimizer, state, aggregated)
  found = after.global_model_weights.non_trainable
  np.testing.assert_array_equal(harness.flat(found), [expected])
