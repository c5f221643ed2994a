"""Tests of what all clients with a state have in common, in plain numbers."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.objectives import base

_SHARED_TYPE = tff.types.to_type(
  collections.OrderedDict(params=np.float32, round=np.int32)
)


_KINDS = {'update': combine.UPDATE}


def _function(weigh=client_functions.by_examples):
  """Keeps a sum that begins at the parameter, a count and a flag."""

  def first(shared):
    return collections.OrderedDict(
      total=shared['params'], count=tf.constant(0, tf.int64), odd=tf.constant(False)
    )

  def client_fn(shared, state, examples):
    kept = collections.OrderedDict(
      total=state.kept['total'] + tf.reduce_sum(examples['image']),
      count=state.kept['count'] + 1,
      odd=tf.logical_not(state.kept['odd']),
    )
    update = kept['total'] - shared['params'] + tf.cast(state.last_round, tf.float32)
    return collections.OrderedDict(update=update), kept

  return client_functions.StatefulFunction(first, client_fn, weigh)


def _visit(state, image, function=None):
  examples = collections.OrderedDict(
    image=tf.constant(image, tf.float32), example_id=tf.range(len(image))
  )
  shared = collections.OrderedDict(params=tf.constant(10.0), round=tf.constant(7))
  return harness.visit(function or _function(), _KINDS, shared, examples, state)


def _blank():
  one = client_states.blank_state(
    client_states.state_type(_function().first, _SHARED_TYPE)
  )
  return one._replace(client=np.int32(3))


def _state(last_round, total, count, odd):
  return client_states.ClientState(
    np.int32(3),
    np.int32(last_round),
    collections.OrderedDict(
      total=np.float32(total), count=np.int64(count), odd=np.bool_(odd)
    ),
  )


def _equal(state, expected):
  tf.nest.map_structure(np.testing.assert_array_equal, state, expected)


def test_the_blank_state_has_never_taken_part():
  _equal(_blank(), _state(client_states.NEVER, 0, 0, False))
  assert list(_blank().kept) == ['total', 'count', 'odd']


def test_types_of_one_and_of_many():
  one = client_states.state_type(_function().first, _SHARED_TYPE)
  assert one.python_container is client_states.ClientState
  many = client_states.stacked_type(one)
  assert many.python_container is client_states.ClientState
  assert many.client == tff.TensorType(np.int32, [None])
  assert many.kept['total'] == tff.TensorType(np.float32, [None])


def test_the_first_time_a_client_begins_as_the_function_says():
  result, state = _visit(_blank(), [1.0, 2.0])
  assert float(result.means['update']) == 13 - 10 - 1
  assert float(result.weight) == 2
  assert int(result.totals['counts']['examples']) == 2
  _equal(state, _state(7, 13, 1, True))


@pytest.mark.parametrize('last_round', [0, 2])
def test_later_it_goes_on_with_what_it_kept(last_round):
  result, state = _visit(_state(last_round, 5, 4, True), [1.0])
  assert float(result.means['update']) == 6 - 10 + last_round
  _equal(state, _state(7, 6, 5, False))


@pytest.mark.parametrize('state', [_blank(), _state(2, 5, 4, True)])
@pytest.mark.parametrize(
  ('image', 'count'), [([], 'empty_clients'), ([np.nan], 'nonfinite_clients')]
)
def test_uncounted_clients_send_zeros_and_keep_their_state(state, image, count):
  result, after = _visit(state, image)
  assert float(result.weight) == float(result.means['update']) == 0
  assert int(result.totals['counts'][count]) == 1
  assert int(result.totals['counts']['examples']) == 0
  _equal(after, state)


def test_a_state_that_is_not_finite_is_not_kept():
  """Even where all that would be sent is finite."""
  function = _function()

  def client_fn(shared, state, examples):
    _, kept = function.client_fn(shared, state, examples)
    return collections.OrderedDict(update=tf.constant(1.0)), kept

  result, after = _visit(
    _state(2, 5, 4, True),
    [np.inf],
    client_functions.StatefulFunction(function.first, client_fn),
  )
  assert float(result.weight) == float(result.means['update']) == 0
  assert int(result.totals['counts']['nonfinite_clients']) == 1
  _equal(after, _state(2, 5, 4, True))


def test_a_client_may_send_counts_alone():
  function = client_functions.ClientFunction(
    lambda _, examples: collections.OrderedDict(seen=base.example_count(examples))
  )
  examples = {'example_id': tf.constant([4, 5, 6], tf.int64)}
  result, _ = harness.visit(function, {'seen': combine.TOTAL}, {}, examples)
  assert float(result.weight) == int(result.totals['seen']) == 3


def test_a_sum_is_sent_as_a_mean_that_weights_make_the_sum_again():
  function = client_functions.ClientFunction(
    lambda _, examples: collections.OrderedDict(total=tf.reduce_sum(examples['x']))
  )
  examples = {'x': tf.constant([2.0, 4.0, 9.0]), 'example_id': tf.range(3)}
  result, _ = harness.visit(function, {'total': combine.Sum()}, {}, examples)
  assert float(result.weight) == 3
  assert float(result.means['total']) == pytest.approx(5)


def test_weights_are_the_function_s():
  result, _ = _visit(_blank(), [1.0, 2.0], _function(client_functions.uniformly))
  assert float(result.weight) == 1


def test_a_value_is_clipped_by_the_norm_of_its_kind():
  kinds = {'update': combine.UPDATE, 'metrics': combine.METRICS, 'n': combine.TOTAL}
  exchange_spec = client_functions.ExchangeSpec(kinds, counted=False)
  norms = {'update': 2.0}
  found = {name: exchange_spec.clip_norm(name, norms) for name in kinds}
  assert found == {'update': 2.0, 'metrics': None, 'n': None}


def test_weights_of_clients_by_their_sizes():
  sizes = tf.constant([0, 1, 5])
  np.testing.assert_array_equal(client_functions.by_examples(sizes), [0, 1, 5])
  np.testing.assert_array_equal(client_functions.uniformly(sizes), [0, 1, 1])
