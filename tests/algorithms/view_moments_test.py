"""Means of two views: those of clients are those of all examples in one place."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.algorithms import view_moments
from tff_ssl.evaluation import signals
from tff_ssl.federated import processes

_N, _D = 30, 3
_ELEMENT = collections.OrderedDict(
  features=tf.TensorSpec([2 * _D], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
)
_SIZES = [7, 1, 0, 12, 10]


def _examples():
  features = np.random.default_rng(0).normal(size=(_N, 2 * _D)).astype(np.float32)
  return collections.OrderedDict(
    features=features, example_id=np.arange(_N, dtype=np.int64)
  )


# Packs, several rounds and secure sums are those of all collected sums: one_round_test.
def test_means_of_clients_in_any_order_are_those_of_all_examples(tff_context):
  process = processes.build(view_moments.view_moments(_D), _ELEMENT)
  features, clients = _examples()['features'], harness.split(_SIZES)
  want = signals.moments(features[:, :_D], features[:, _D:])
  for some in (clients, clients[::-1]):
    states, _ = harness.rounds_of(process, [harness.cohort(some, _examples())])
    found = view_moments.moments(process.get_model_weights(states[-1]))
    for name in want._fields[:5]:
      one, other = getattr(found, name), getattr(want, name)
      np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=name)
    assert found[5:] == want[5:]


def test_encoder_of_another_width_is_refused(tff_context):
  def encode(params, examples, seed):
    del params, seed
    return examples['features'], examples['features']

  with pytest.raises(ValueError, match=r'must be \[n, 3\], as num_features'):
    processes.build(view_moments.view_moments(_D, encode), _ELEMENT)
