"""Means of two views: those of clients are those of all examples in one place."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import view_moments
from tff_ssl.evaluation import signals
from tff_ssl.federated import packs
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


def _pooled(rows=slice(None)):
  features = _examples()['features'][rows]
  return signals.moments(features[:, :_D], features[:, _D:])


def _collect(process, cohorts):
  states, metrics = harness.rounds_of(process, cohorts)
  return view_moments.moments(process.get_model_weights(states[-1])), metrics


def _close(found, want, rtol=1e-12):
  for a, b in zip(found[:5], want[:5], strict=True):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
  assert found[5:] == want[5:]


@pytest.fixture(scope='module')
def process():
  return processes.build(view_moments.view_moments(_D), _ELEMENT)


def test_means_of_clients_in_any_order_are_those_of_all_examples(tff_context, process):
  clients = harness.split(_SIZES)
  for some in (clients, clients[::-1]):
    found, _ = _collect(process, [harness.cohort(some, _examples())])
    _close(found, _pooled())


@pytest.mark.long
def test_packs_and_several_rounds_give_the_same(tff_context):
  packed = processes.build(
    view_moments.view_moments(_D, chunk_size=8), packs.PackSpec(_ELEMENT)
  )
  clients = harness.split(_SIZES)
  cohorts = [
    harness.packed_cohort(some, _examples()) for some in (clients[:2], clients[2:])
  ]
  _close(_collect(packed, cohorts)[0], _pooled())


def test_secure_sums_swap_in():
  secure = aggregations.secure(float(max(_SIZES)), max(_SIZES))
  secured = processes.build(view_moments.view_moments(_D), _ELEMENT, secure)
  tff.test.assert_not_contains_unsecure_aggregation(secured.next)


def test_encoder_of_another_width_is_refused(tff_context):
  def encode(params, examples, seed):
    del params, seed
    return examples['features'], examples['features']

  with pytest.raises(ValueError, match=r'must be \[n, 3\], as num_features'):
    processes.build(view_moments.view_moments(_D, encode), _ELEMENT)
