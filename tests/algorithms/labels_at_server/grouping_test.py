"""What a client of a group sends."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.federated import client_functions


def _client(weigh):
  """A client whose update is the sum of its numbers, and a constant."""

  def client_fn(shared, examples):
    del shared
    total = tf.reduce_sum(examples['x'])
    update = collections.OrderedDict(w=tf.stack([total, 0.0]), b=tf.constant(2.0))
    return collections.OrderedDict(update=update)

  return client_functions.ClientFunction(client_fn, weigh=weigh)


@pytest.mark.parametrize(
  ('weigh', 'weight'),
  [(client_functions.by_examples, 3.0), (client_functions.uniformly, 1.0)],
)
def test_the_energy_is_the_square_of_the_weighted_update(weigh, weight):
  """|w u|^2 with u = (6, 0, 2): 40 w^2, in the place of the client's group."""
  examples = collections.OrderedDict(
    x=tf.constant([1.0, 2.0, 3.0]),
    example_id=tf.constant([5, 6, 7], tf.int64),
    **{grouping.GROUP: tf.constant([1, 1, 1])},
  )
  sent = grouping.client_function(_client(weigh), 3).client_fn({}, examples)
  np.testing.assert_array_equal(sent[grouping.GROUP], [0, 1, 0])
  np.testing.assert_allclose(sent[grouping.ENERGY], [0, 40 * weight**2, 0])


def test_the_weight_of_a_client_in_its_group():
  def to_weight(weight, clients, members):
    kind = groupwise.GroupMean(3)
    return kind.weigh(tf.constant(weight), tf.constant(clients), tf.constant(members))

  got = to_weight(7.5, 2, np.array([0, 1, 0], np.float32))
  assert (got['examples'], got['clients'], got['group']) == (7.5, 2, 1)
  # A pack of two groups is refused, unless nobody in it counts.
  mixed = np.array([0.5, 0.5, 0], np.float32)
  with pytest.raises(tf.errors.InvalidArgumentError, match='clients of several groups'):
    to_weight(7.5, 2, mixed)
  with pytest.raises(tf.errors.InvalidArgumentError, match='clients of several groups'):
    to_weight(1.0, 2, mixed)
  assert to_weight(0.0, 2, mixed)['examples'] == 0
  # The number of a group that there is not leaves all places at 0.
  with pytest.raises(tf.errors.InvalidArgumentError, match=r'is not in \[0, 3\)'):
    to_weight(1.0, 2, np.zeros(3, np.float32))


@pytest.mark.parametrize('server_weight', [0.0, 1.0])
def test_the_diversity_is_that_of_the_clients_coefficients(server_weight):
  """Yin et al., Definition 1, of c_k u_k written out; the server is no client."""
  groups, sizes = np.array([0, 1, 1, 2, 2]), np.array([3.0, 1, 2, 4, 0.5])
  updates = np.random.default_rng(0).normal(size=[5, 3])
  weights, counts = (np.bincount(groups, x) for x in (sizes, np.ones(5)))
  scales, share = groupwise.coefficients(
    tf.constant(weights, tf.float32), tf.constant(counts), server_weight
  )
  coefficients = sizes * scales.numpy()[groups]
  moved = (coefficients[:, np.newaxis] * updates).sum(0)
  expected = ((coefficients[:, np.newaxis] * updates) ** 2).sum() / (moved**2).sum()
  energy = np.bincount(groups, ((sizes[:, np.newaxis] * updates) ** 2).sum(1))
  # The mean is over the clients' coefficients alone, which are 1 without the server's.
  mean = (moved / (1 - float(share))).astype(np.float32)
  aggregated = {
    'mean': {'a': tf.constant(mean[:1]), 'b': tf.constant(mean[1:])},
    'scales': scales,
    'server_share': share,
  }
  got = grouping.diversity(tf.constant(energy, tf.float32), aggregated)
  assert float(got) == pytest.approx(expected, rel=1e-5)
  nothing = aggregated | {'mean': {'a': tf.zeros([3])}}
  assert float(grouping.diversity(tf.constant(energy, tf.float32), nothing)) == 0


@pytest.mark.parametrize(('groups', 'fields'), [(1, ()), (2, (grouping.GROUP,))])
def test_clients_of_several_groups_name_theirs(groups, fields):
  assert grouping.Grouping(groups).client_numbers == fields


@pytest.mark.parametrize('examples', [0.0, 6.0])
def test_the_server_s_model_has_its_share_of_the_parameters_that_it_has(examples):
  params = {'both': tf.constant([1.0, 2.0]), 'clients': tf.constant([3.0])}
  aggregated = {
    'update': {
      'mean': {'both': tf.constant([0.5, -1.0]), 'clients': tf.constant([1.0])},
      'server_share': tf.constant(0.25),
      'examples': tf.constant(examples),
    }
  }
  got = grouping.average(params, aggregated, {'both': tf.constant([10.0, 20.0])})
  # 3/4 of the clients' [0.5, 3] and 1/4 of the server's; without clients as it was.
  expected = {'both': [2.875, 7.25], 'clients': [2.0]} if examples else params
  assert list(got) == list(params)
  for name, value in expected.items():
    np.testing.assert_allclose(got[name], value)
