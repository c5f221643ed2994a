"""FedMatch: what each side trains, whose psi helps whom, and what is sent."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms.labels_at_server import fedmatch
from tff_ssl.federated import processes
from tff_ssl.objectives import contextual
from tff_ssl.objectives import helper_consistency
from tff_ssl.settings import methods

_NUMBERS = (0, 3, 1, 4, 2)
_SETTINGS = methods.Fedmatch(helper_interval=2)


@pytest.fixture(scope='module', name='process')
def _process(tff_context):
  return processes.build(
    fedmatch.fedmatch(
      labels.unlabelled(),
      helper_consistency.LabelledObjective(labels.labelled()),
      harness.ELEMENT,
      _SETTINGS,
      labels.CLIENT_CONFIG,
      6,
      labels.SERVER_PLAN,
      sparse_below=0.05,
    ),
    labels.spec(contextual.CLIENT),
  )


@pytest.fixture(scope='module', name='rounds')
def _rounds(process):
  """Returns states and metrics of three rounds; client 5 is in none."""
  cohort = harness.cohort(labels.CLIENTS, labels.examples('client', _NUMBERS))
  states, metrics = [process.initialize()], []
  for _ in range(3):
    output = process.next(states[-1], harness.server_data(), cohort)
    states.append(output.state)
    metrics.append(output.metrics)
  return states, metrics


def test_numbers_may_add_up_beyond_int32(process):
  """A hundred clients with two helpers of 11 million weights each receive 2.2e9."""
  numbers = process.graph.steps['train'].sent_type[fedmatch.NUMBERS]
  assert numbers['sent'].dtype == numbers['received'].dtype == np.int64


def test_the_model_is_the_sum_of_both_parts(rounds):
  for state in rounds[0]:
    for name, value in state.global_model_weights.trainable.items():
      np.testing.assert_allclose(
        value,
        state.extra['sigma'][name] + state.extra['psi'][name],
        rtol=1e-6,
        atol=1e-6,
      )
  start = labels.labelled().init(tf.constant([harness.SEED, 0]))
  for name, value in rounds[0][0].global_model_weights.trainable.items():
    np.testing.assert_allclose(value, start[name], rtol=1e-6)


def test_psi_is_the_mean_of_what_clients_sent(rounds):
  before, after = rounds[0][:2]
  np.testing.assert_array_equal(after.extra['known'], [1, 1, 1, 1, 1, 0])
  sizes = [labels.SIZES[_NUMBERS.index(k)] for k in range(5)]
  for name, stack in after.extra['models'].items():
    expected = np.average(np.asarray(stack[:5], np.float64), axis=0, weights=sizes)
    np.testing.assert_allclose(after.extra['psi'][name], expected, rtol=1e-4, atol=1e-6)
    assert not np.any(stack[5])
    # What is sent is 0 or large.
    sent = np.abs(stack[stack != 0])
    assert not sent.size or sent.min() > 0.049
  assert not np.any([np.any(stack) for stack in before.extra['models'].values()])


def test_bytes_are_those_of_what_is_not_zero(rounds):
  (before, after, *_), metrics = rounds
  work = metrics[0]['client_work']
  sent = sum(np.count_nonzero(stack) for stack in after.extra['models'].values())
  assert work['bytes_up'] == 8 * sent
  size = sum(np.size(v) for v in before.extra['psi'].values())
  psi = sum(np.count_nonzero(v) for v in before.extra['psi'].values())
  assert work['bytes_down'] == 5 * (4 * size + 8 * psi)
  assert 0 < work['psi_density'] < 1
  assert work['psi_density'] == pytest.approx(sent / (5 * size), rel=1e-5)


def test_known_clients_have_helpers_in_each_second_round(rounds):
  helped = [int(m['client_work']['helped_clients']) for m in rounds[1]]
  assert helped == [0, 5, 0]
  size = sum(np.size(v) for v in rounds[0][1].extra['psi'].values())
  dense = 5 * (4 * size + 8 * size)
  assert rounds[1][1]['client_work']['bytes_down'] <= dense + 5 * 2 * 8 * size
  assert rounds[1][1]['client_work']['bytes_down'] > 5 * 4 * size


def test_helpers_are_those_with_the_nearest_predictions():
  """Models with one weight each: on noise the nearest in logits are the nearest."""
  objective = labels.unlabelled()
  sigma = objective.init(tf.constant([1, 2]))
  values = [0.0, 0.5, 3.0, 0.4, 2.9, 9.0]
  models = collections.OrderedDict(
    (name, tf.zeros([6, *value.shape])) for name, value in sigma.items()
  )
  bias = 'head/dense0/bias'
  models[bias] = tf.stack([tf.constant([v, 0.0]) for v in values])
  known = tf.constant([1, 1, 1, 1, 1, 0])

  def find(round):
    given = (sigma, models, known, tf.constant(round))
    return fedmatch.find_helpers(objective, _SETTINGS, *given)

  context = find(1)
  nearest = [set(row) for row in context[helper_consistency.HELPERS].numpy().tolist()]
  assert nearest[0] == {1, 3}
  assert nearest[1] == {3, 0}
  assert 4 in nearest[2]
  assert not any(5 in helpers for helpers in nearest)
  np.testing.assert_array_equal(context[helper_consistency.HELPED], known)
  early = find(0)
  assert not np.any(early[helper_consistency.HELPED])


def test_too_few_clients_are_refused():
  sides = labels.unlabelled(), None, harness.ELEMENT
  with pytest.raises(ValueError, match='population is 6; it must be above helpers, wh'):
    fedmatch.fedmatch(*sides, methods.Fedmatch(helpers=6), labels.CLIENT_CONFIG, 6)
