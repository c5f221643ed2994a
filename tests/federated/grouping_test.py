"""What a client of a group sends."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.federated import client_functions
from tff_ssl.federated import grouping


def _client(weigh):
  """A client whose update is the sum of its numbers, and a constant."""

  def each(shared, examples):
    del shared
    total = tf.reduce_sum(examples['x'])
    update = collections.OrderedDict(w=tf.stack([total, 0.0]), b=tf.constant(2.0))
    return collections.OrderedDict(update=update)

  return client_functions.ClientFunction(each, weigh=weigh)


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
  sent = grouping.client_function(_client(weigh), 3).each({}, examples)
  np.testing.assert_array_equal(sent[grouping.GROUP], [0, 1, 0])
  np.testing.assert_allclose(sent[grouping.ENERGY], [0, 40 * weight**2, 0])
