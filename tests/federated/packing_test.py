"""Packs: how clients are dealt, and that they give what clients apart give."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import packing
from tff_ssl.federated import packs
from tff_ssl.federated import steps


@pytest.mark.parametrize('num_packs', [1, 2, 3, 8])
def test_every_client_is_in_one_pack_small_ones_first(num_packs):
  sizes = [3, 0, 6, 1, 1, 2, 5, 4, 0]
  dealt = packs.deal(sizes, num_packs, bytes_per_example=100)
  assert len(dealt) == num_packs
  assert sorted(k for pack in dealt for k in pack) == list(range(9))
  for pack in dealt:
    assert [sizes[k] for k in pack] == sorted(sizes[k] for k in pack)
  loads = [sum(sizes[k] for k in pack) for pack in dealt]
  # Nobody has more than the mean and one client.
  assert max(loads) <= 22 / num_packs + 6


def test_equal_clients_are_dealt_equally():
  assert [len(p) for p in packs.deal([4] * 128, 2, 1)] == [64, 64]
  assert [len(p) for p in packs.deal([0] * 6, 3, 1)] == [2, 2, 2]


def test_there_are_no_packs_without_clients():
  assert packs.deal([5, 5], 16, 1) in ([[0], [1]], [[1], [0]])
  with pytest.raises(ValueError, match='The cohort is empty'):
    packs.deal([], 2, 1)
  with pytest.raises(ValueError, match='num_packs is 0'):
    packs.deal([1], 0, 1)


def test_packs_can_be_sent():
  # 64 clients of 4 MiB: 256 MiB must not go in two values.
  dealt = packs.deal([1] * 64, 2, 4 * 2**20)
  assert len(dealt) == 4
  assert {len(pack) for pack in dealt} == {16}


def test_states_count_when_packs_are_sent():
  # One client with much to do, and 100 with little and with a state of 1 MiB each.
  dealt = packs.deal([1000, *[1] * 100], 2, 100, bytes_per_client=2**20)
  assert len(dealt) == 2
  assert sorted(k for pack in dealt for k in pack) == list(range(101))
  assert max(len(pack) for pack in dealt) <= 64
  # What is too large by itself goes by itself.
  assert packs.deal([1, 1], 1, 1, bytes_per_client=2**27) == [[1], [0]]


def test_stacked_states_come_apart_again():
  states = [
    collections.OrderedDict(z=np.float32([k, 2 * k]), a=np.int32(k)) for k in range(3)
  ]
  stacked = packs.stack(states)
  assert list(stacked) == ['z', 'a']
  assert stacked['z'].tolist() == [[0, 0], [1, 2], [2, 4]]
  assert stacked['a'].dtype == np.int32
  for state, own in zip(states, packs.unstack(stacked), strict=True):
    tf.nest.map_structure(np.testing.assert_array_equal, state, own)


def test_a_pack_is_one_element_of_its_type():
  (dataset,) = harness.cohort([[3], [0, 1], []], packed=True, num_packs=1)
  spec = harness.PACKS.pack_spec
  fits = tf.nest.map_structure(
    lambda a, b: a.is_compatible_with(b), spec, dataset.element_spec
  )
  assert all(tf.nest.flatten(fits))
  pack = dataset.get_single_element()
  assert pack[packs.SIZES].numpy().tolist() == [0, 1, 2]
  assert pack[packs.EXAMPLES]['example_id'].numpy().tolist() == [103, 100, 101]
  assert list(pack[packs.EXAMPLES]) == list(harness.ELEMENT)


def test_batches_are_not_examples():
  batch = collections.OrderedDict(example_id=tf.TensorSpec([None], tf.int64))
  with pytest.raises(ValueError, match='single examples'):
    packs.PackSpec(batch)


def test_sizes_may_be_a_list_or_an_array():
  sizes = np.random.default_rng(0).integers(1, 7, 50).tolist()
  assert packs.deal(sizes, 4, 1) == packs.deal(np.array(sizes), 4, 1)


_SHARED = tff.types.to_type(
  collections.OrderedDict(params=np.float32, seed=tff.TensorType(np.int32, [2]))
)


def _function(additive=False, mean_fn=None, chunk_size=64):
  """Sends the mean of pixels plus a parameter, and the mean's square.

  The first is additive over examples, the second is not.
  """

  def client_fn(shared, examples):
    n = tf.shape(examples['image'])[0]
    weight = tf.cast(n, tf.float32)
    value = tf.math.divide_no_nan(tf.reduce_sum(examples['image'][:, 0, 0, 0]), weight)
    value += shared['params'] * tf.cast(n > 0, tf.float32)
    sent = collections.OrderedDict(update=value)
    if not additive:
      sent['metrics'] = tf.square(value)
    return sent

  return client_functions.ClientFunction(
    client_fn, additive, mean_fn, chunk_size=chunk_size
  )


def _of_equal_clients(shared, examples, num_clients):
  # Empty clients must not come here: the mean of nothing is not a number.
  own = tf.reshape(examples['image'][:, 0, 0, 0], [num_clients, -1])
  mean = tf.reduce_mean(own, axis=1) + shared['params']
  return collections.OrderedDict(
    update=tf.reduce_mean(mean), metrics=tf.reduce_mean(tf.square(mean))
  )


def _run(function, sizes, aggregation=None, bad=()):
  """Runs a function over one pack; returns what it sends, and each client's mean."""
  cohort = packing.PackedClients(harness.PACKS, aggregation or aggregations.plain())
  total = sum(sizes)
  examples = collections.OrderedDict(
    image=np.random.default_rng(3).random((total, 8, 8, 1)).astype(np.float32),
    example_id=np.arange(total),
    label=np.zeros(total, np.int32),
  )
  ends = np.cumsum(sizes)
  for k in bad:
    examples['image'][ends[k] - 1] = np.nan
  shared = collections.OrderedDict(params=np.float32(2.0), seed=np.zeros([2], np.int32))
  kinds = {'update': combine.UPDATE}
  if not function.additive:
    kinds['metrics'] = combine.METRICS
  exchange_spec = client_functions.ExchangeSpec(kinds, counted=True)
  pack = cohort.read(tf.data.Dataset.from_tensors(packs.content(examples, sizes)))
  sent = cohort.map(function, exchange_spec, _SHARED)(shared, pack)
  pixels = np.split(examples['image'][:, 0, 0, 0].astype(np.float64), ends[:-1])
  return sent, [np.mean(p) + 2 if len(p) else 0.0 for p in pixels]


_SIZES = {
  'mixed': [0, 0, 1, 1, 1, 3, 5, 5],
  'one': [4],
  'larger than a chunk': [1, 100, 100, 100, 300, 300, 700],
  'many small': [1] * 300 + [2] * 150,
}


@pytest.mark.parametrize('form', ['apart', 'additive', 'equal'])
@pytest.mark.parametrize('sizes', _SIZES)
@pytest.mark.parametrize('broken', [False, True])
def test_the_sums_of_a_pack(tff_context, form, sizes, broken):
  sizes = _SIZES[sizes]
  bad = [len(sizes) // 2] if broken else []
  function = _function(
    form == 'additive', _of_equal_clients if form == 'equal' else None
  )
  sent, means = _run(function, sizes, bad=bad)
  used = [k for k in range(len(sizes)) if k not in bad]
  weights = np.array([sizes[k] for k in used], np.float64)
  values = np.array([means[k] for k in used])
  total = weights.sum()
  assert sent['weight'] == total
  expected = (weights @ values) / total if total else 0.0
  assert sent['update'] == pytest.approx(expected, rel=1e-5)
  if form != 'additive':
    expected = (weights @ values**2) / total if total else 0.0
    assert sent['metrics'] == pytest.approx(expected, rel=1e-5)
  assert sent['counts'] == {
    'clients': len(sizes),
    'examples': total,
    'empty_clients': sizes.count(0),
    'nonfinite_clients': len(bad),
  }


def test_so_many_examples_as_are_said_go_together(tff_context):
  def client_fn(shared, examples):
    del shared
    count = tf.shape(examples['image'])[0]
    return collections.OrderedDict(update=tf.cast(count, tf.float32))

  function = client_functions.ClientFunction(client_fn, additive=True, chunk_size=32)
  sent, _ = _run(function, [1] * 100)
  # Three chunks of 32 and one of 4, weighted by their examples.
  assert sent['update'] == pytest.approx((3 * 32**2 + 4**2) / 100)


def test_private_aggregation_clips_each_client(tff_context):
  aggregation = aggregations.private(1.0, update_clip=4.0, statistics_clip=1.0)
  sizes = [1, 1, 2, 3]
  sent, means = _run(_function(True), sizes, aggregation)
  clipped = [min(n * value, 4.0) for n, value in zip(sizes, means, strict=True)]
  assert 0 < sum(value < 4.0 for value in clipped) < 4
  assert sent['update'] == pytest.approx(sum(clipped) / sum(sizes), rel=1e-5)


def test_secure_sums_and_own_factories_refuse_packs():
  own = aggregations.of(updates=tff.aggregators.MeanFactory())
  for aggregation in (aggregations.secure(1.0, 8), own):
    with pytest.raises(ValueError, match='acts on each client'):
      steps.build_cohort(harness.PACKS, aggregation)


def test_packs_do_not_clip_what_was_clipped(tff_context):
  aggregation = aggregations.private(1e-6, update_clip=1.0, statistics_clip=1.0)
  factory = aggregation.packs.aggregation.updates
  process = factory.create(
    tff.to_type(collections.OrderedDict(a=np.float32)), tff.TensorType(np.float32)
  )
  output = process.next(process.initialize(), [{'a': 50.0}, {'a': 20.0}], [3.0, 1.0])
  assert output.result['a'] == pytest.approx(170 / 4, rel=1e-5)
