"""One-round heads: the sums of clients are those of all examples in one place."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import one_round
from tff_ssl.evaluation import closed_form
from tff_ssl.federated import packs
from tff_ssl.federated import processes

_N, _D, _CLASSES = 30, 3, 4
_ELEMENT = collections.OrderedDict(
  features=tf.TensorSpec([_D], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
  label=tf.TensorSpec([], tf.int32),
)
_SIZES = [7, 1, 0, 12, 10]


def _examples():
  """Features far from 0; nobody has class 2, and the last example has no label."""
  random = np.random.default_rng(0)
  label = random.choice([0, 1, 3], _N).astype(np.int32)
  label[-1] = -1
  features = random.normal(size=(_N, _D)) + 2 * np.eye(_CLASSES, _D)[label] + 30
  return collections.OrderedDict(
    features=features.astype(np.float32),
    example_id=np.arange(_N, dtype=np.int64),
    label=label,
  )


def _pooled(rows=slice(None, -1)):
  """The sums over some examples, by NumPy in float64."""
  examples = _examples()
  f = examples['features'][rows].astype(np.float64)
  members = np.eye(_CLASSES)[examples['label'][rows]]
  return closed_form.Moments(members.sum(axis=0), members.T @ f, f.T @ f)


def _close(found, want, rtol=1e-12):
  for a, b in zip(found, want, strict=True):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.fixture(scope='module')
def process():
  return processes.build(one_round.one_round(_D, _CLASSES), _ELEMENT)


def _collect(process, cohorts):
  states, metrics = harness.rounds_of(process, cohorts)
  return one_round.moments(process.get_model_weights(states[-1])), metrics


def test_sums_and_heads_are_those_of_all_examples(tff_context, process):
  clients = harness.split(_SIZES)
  found, metrics = _collect(process, [harness.cohort(clients, _examples())])
  _close(found, _pooled())
  assert metrics[0]['finalizer']['labelled_examples'] == _N - 1
  features = _examples()['features']
  for fit in (closed_form.fit_lda, closed_form.fit_ridge):
    ours, central = fit(found).classifier, fit(_pooled()).classifier
    np.testing.assert_allclose(ours.kernel, central.kernel, atol=1e-5)
    np.testing.assert_allclose(ours.bias, central.bias, atol=1e-5)
    assert not np.any(ours.predict(features) == 2)


def test_packs_and_several_rounds_give_the_same(tff_context):
  packed = processes.build(
    one_round.one_round(_D, _CLASSES, chunk_size=8), packs.PackSpec(_ELEMENT)
  )
  clients = harness.split(_SIZES)
  cohorts = [
    harness.cohort(some, _examples(), packed=True)
    for some in (clients[:2], clients[2:])
  ]
  found, metrics = _collect(packed, cohorts)
  _close(found, _pooled())
  assert [int(m['client_work']['clients']) for m in metrics] == [2, 3]


def test_encoder_of_an_own_reads_the_examples(tff_context):
  def encode(params, examples):
    return tf.matmul(examples['features'], params['kernel'])

  kernel = np.random.default_rng(1).normal(size=[_D, 2]).astype(np.float32)
  process = processes.build(
    one_round.one_round(2, _CLASSES, encode, {'kernel': kernel}), _ELEMENT
  )
  found, _ = _collect(process, [harness.cohort(harness.split(_SIZES), _examples())])
  labels, encoded = _examples()['label'], _examples()['features'] @ kernel
  _close(found, closed_form.moments(encoded[:-1], labels[:-1], _CLASSES), rtol=1e-5)
  with pytest.raises(ValueError, match=r'must be \[n, 5\], as num_features'):
    processes.build(
      one_round.one_round(5, _CLASSES, encode, {'kernel': kernel}), _ELEMENT
    )


def test_secure_sums_swap_in():
  secure = aggregations.secure(value_bound=1e5, max_examples_per_client=64)
  secured = processes.build(one_round.one_round(_D, _CLASSES), _ELEMENT, secure)
  tff.test.assert_not_contains_unsecure_aggregation(secured.next)


def _share(features, radius):
  """Sums that one client sends, by NumPy in float64, of features in the ball."""
  length = np.linalg.norm(features, axis=1, keepdims=True)
  f = features * np.minimum(1, radius / length)
  return f, np.sqrt(len(f) ** 2 + np.sum(f.sum(0) ** 2) + np.sum((f.T @ f) ** 2))


@pytest.mark.parametrize('n', [1, 8])
def test_share_of_a_client_is_bounded_and_the_worst_attains_it(n):
  generator = np.random.default_rng(n)
  bound = n * one_round.share_bound(2.0)
  assert bound == pytest.approx(n * np.sqrt(1 + 4 + 16))
  scattered = generator.normal(size=(n, _D)) * 10 ** generator.uniform(-1, 2, (n, 1))
  alike = np.tile(generator.normal(size=(1, _D)) * 100, (n, 1))
  for features, is_worst in ((scattered, n == 1), (alike, True)):
    sent = one_round.client_moments(
      tf.constant(features), tf.zeros([n], tf.int32), _CLASSES, feature_norm=2.0
    )
    inside, total = _share(features, 2.0)
    np.testing.assert_allclose(n * sent['second'], inside.T @ inside, atol=1e-12 * n)
    assert np.linalg.norm(n * harness.flat(sent)) == pytest.approx(total)
    assert total <= bound * (1 + 1e-12)
    if is_worst and np.linalg.norm(features[0]) > 2:
      assert total == pytest.approx(bound)


def test_private_sums_of_bounded_features_are_not_clipped(tff_context):
  clip = max(_SIZES) * one_round.share_bound(20.0)
  private = aggregations.private(1e-9, update_clip=1.0, statistics_clip=clip)
  process = processes.build(
    one_round.one_round(_D, _CLASSES, dtype=tf.float32, feature_norm=20.0),
    _ELEMENT,
    private,
  )
  cohort = harness.cohort(harness.split(_SIZES), _examples())
  found, _ = _collect(process, [cohort])
  # All features are longer: about 50.
  inside, _ = _share(_examples()['features'][:-1].astype(np.float64), 20.0)
  want = closed_form.moments(inside, _examples()['label'][:-1], _CLASSES)
  _close(found, want, rtol=1e-3)


def test_sizes_below_1_are_named():
  with pytest.raises(ValueError, match='num_features is 0; it must be at least 1'):
    processes.build(one_round.one_round(0, 2), _ELEMENT)
  one_round.one_round(1, 1)
  with pytest.raises(ValueError, match=r'feature_norm is -1\.0; it must be pos'):
    processes.build(one_round.one_round(2, 2, feature_norm=-1.0), _ELEMENT)
