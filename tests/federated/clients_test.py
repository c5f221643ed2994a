"""What every algorithm's clients have in common, and what is no example of theirs."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.aggregators import aggregations
from tff_ssl.federated import clients
from tff_ssl.federated import packs
from tff_ssl.federated import steps


@pytest.mark.parametrize('n', [0, 1, 5])
def test_all_examples_are_one_batch_in_order(n):
  expected = harness.take(harness.arrays(), range(n))
  got = tf.function(clients.all_examples)(tf.data.Dataset.from_tensor_slices(expected))
  assert list(got) == list(expected)
  for name, value in expected.items():
    assert got[name].dtype == value.dtype
    assert got[name].shape[1:] == value.shape[1:]
    np.testing.assert_array_equal(got[name], value)


def test_all_examples_are_those_of_a_filtered_data_set():
  # Its number of examples is not known before it is read.
  dataset = harness.cohort([range(12)])[0].filter(lambda x: x['example_id'] % 5 == 0)
  assert clients.all_examples(dataset)['example_id'].numpy().tolist() == [100, 105, 110]
  nothing = dataset.filter(lambda x: x['example_id'] < 0)
  assert clients.all_examples(nothing)['image'].shape == [0, 8, 8, 1]


def test_ragged_elements_are_refused():
  dataset = tf.data.Dataset.from_generator(
    lambda: iter([[1.0], [1.0, 2.0]]),
    output_signature=tf.TensorSpec([None], tf.float32),
  )
  with pytest.raises((ValueError, TypeError, tf.errors.InvalidArgumentError)):
    clients.all_examples(dataset)


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_is_finite_sees_one_bad_entry(bad):
  good = {'a': tf.ones([3, 2]), 'b': [tf.zeros([]), tf.ones([2], tf.float64)]}
  assert bool(clients.is_finite(good))
  assert bool(clients.is_finite({'a': tf.zeros([0])}))
  assert bool(clients.is_finite({}))
  values = np.zeros([3, 2], np.float32)
  values[1, 1] = bad
  assert not bool(clients.is_finite({**good, 'c': tf.constant(values)}))


def test_is_finite_is_not_deceived_by_infinities_that_cancel():
  assert not bool(clients.is_finite([tf.constant([np.inf, -np.inf])]))
  assert not bool(clients.is_finite([tf.constant(np.inf), tf.constant(-np.inf)]))


@pytest.mark.parametrize(
  ('value', 'weight', 'usable'),
  [
    # The l2 norm of 3 and 4 is 5; the bound is 2^63, some 9.2e18.
    ([3e18, 4e18], 1.0, True),
    ([6e18, 8e18], 1.0, False),
    ([3e18, -4e18], 2.0, False),
    ([3e18, -4e18], 0.5, True),
    ([1e30, 0.0], 1.0, False),
    ([0.0, 0.0], 1e30, True),
    ([np.nan, 0.0], 0.0, False),
    ([np.inf, -np.inf], 1.0, False),
  ],
)
def test_a_value_is_usable_if_sums_can_hold_it(value, weight, usable):
  one, other = (tf.constant([x], tf.float32) for x in value)
  found = clients.is_usable({'a': one, 'b': [other]}, tf.constant(weight))
  assert bool(found) == usable


def test_a_value_of_nothing_is_usable():
  assert bool(clients.is_usable({}, tf.constant(1.0)))


def test_choose_and_keep_if_take_whole_structures():
  value = {'a': tf.constant([1.0, np.nan]), 'b': tf.constant(3, tf.int32)}
  other = {'a': tf.constant([5.0, 6.0]), 'b': tf.constant(7, tf.int32)}
  chosen = clients.choose(tf.constant(False), value, other)
  np.testing.assert_array_equal(chosen['a'], [5.0, 6.0])
  assert int(chosen['b']) == 7
  kept = clients.keep_if(tf.constant(False), value)
  np.testing.assert_array_equal(kept['a'], [0.0, 0.0])
  assert kept['b'].dtype == tf.int32
  np.testing.assert_array_equal(
    clients.keep_if(tf.constant(True), value)['a'], [1.0, np.nan]
  )


@pytest.mark.parametrize(
  ('num_examples', 'finite', 'expected'),
  [
    (3, True, (1, 3, 0, 0)),
    (3, False, (1, 0, 0, 1)),
    (0, True, (1, 0, 1, 0)),
    # Discarded for one reason alone: SCAFFOLD and the groups subtract both counts.
    (0, False, (1, 0, 1, 0)),
  ],
)
def test_counts(num_examples, finite, expected):
  names = ('clients', 'examples', 'empty_clients', 'nonfinite_clients')
  eager = clients.counts(tf.constant(num_examples), tf.constant(finite))
  # A TFF computation traces a graph of TensorFlow 1, where `==` compares objects.
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    traced = session.run(clients.counts(tf.constant(num_examples), tf.constant(finite)))
  for counted in (eager, traced):
    assert tuple(counted) == names
    assert tuple(int(counted[name]) for name in names) == expected


def test_empty_and_nonfinite_clients_do_not_count():
  sums = {'clients': 7, 'examples': 20, 'empty_clients': 2, 'nonfinite_clients': 1}
  assert clients.counting(sums) == 4


def test_zeros_of_a_structure():
  specs = collections.OrderedDict(
    b=tf.TensorSpec([2], tf.float32),
    a=collections.OrderedDict(c=tf.TensorSpec([], tf.int64)),
  )
  made = clients.zeros(specs)
  assert list(made) == ['b', 'a']
  np.testing.assert_array_equal(made['b'], [0.0, 0.0])
  assert made['a']['c'].dtype == tf.int64


def test_no_counts_are_the_names_and_types_of_counts():
  none, counts = clients.no_counts(), clients.counts(tf.constant(3), tf.constant(True))
  assert list(none) == list(counts)
  for name, value in counts.items():
    assert int(none[name]) == 0 and none[name].dtype == value.dtype


def test_noise_in_a_table_is_refused_and_plain_sums_are_not():
  clients.check_not_noised(aggregations.plain())
  with pytest.raises(ValueError, match='The aggregation adds noise'):
    clients.check_not_noised(aggregations.private(1.0, 1.0, 1.0))


@pytest.mark.parametrize('examples', [0, 3])
def test_metrics_without_examples_are_none(examples):
  given = {'loss': 32.0, 'deep': {'spread': np.float32(0.5)}, 'steps': np.int32(4)}
  found = clients.with_counts(given, {'examples': tf.constant(examples)})
  assert list(found) == ['loss', 'deep', 'steps', 'examples']
  assert int(found['steps']) == 4
  values = float(found['loss']), float(found['deep']['spread'])
  np.testing.assert_array_equal(values, (32.0, 0.5) if examples else (np.nan, np.nan))


@pytest.mark.parametrize('norm', [None, 3.0, 1e6])
def test_each_row_is_clipped_over_the_whole_structure(norm):
  generator = np.random.default_rng(2)
  a, b = generator.normal(size=(5, 2, 3)), generator.normal(size=(5, 4))
  weights = np.array([1.0, 4.0, 0.5, 0.0, 2.0])
  a[3], b[3, 1] = np.nan, np.inf
  a[2], b[2] = 0.0, 0.0
  found = clients.sum_of_rows(
    {'a': tf.constant(a), 'b': tf.constant(b)},
    tf.constant(weights, tf.float32),
    norm,
  )
  expected = {'a': np.zeros([2, 3]), 'b': np.zeros([4])}
  for k in (0, 1, 2, 4):
    length = weights[k] * np.sqrt(np.sum(a[k] ** 2) + np.sum(b[k] ** 2))
    factor = weights[k] * (min(1.0, norm / length) if norm and length else 1.0)
    expected['a'] += factor * a[k]
    expected['b'] += factor * b[k]
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, rtol=1e-6)


def test_the_squares_of_rows_tell_what_is_not_finite():
  a, b = np.full([4, 2, 2], 0.5), np.full([4, 3], 2.0)
  a[1, 0, 1], b[3, 2] = np.nan, np.inf
  found = clients.squares_of_rows([tf.constant(a), tf.constant(b)])
  np.testing.assert_array_equal(found, [13, np.nan, 13, np.inf])


@pytest.mark.parametrize('length', [2.0, 5.0, 1e30])
def test_one_client_is_clipped_by_itself(length):
  value = {'a': tf.constant([0.6, 0.0]) * length, 'b': tf.constant(-0.8 * length)}
  found = clients.clip(value, 3.0)
  # Of 1e30 the square is more than float32 has: finite it must be, and no longer.
  clipped = min(length, 3.0) if length < 1e19 else 0.0
  np.testing.assert_allclose(found['a'], [0.6 * clipped, 0.0], rtol=1e-6)
  np.testing.assert_allclose(found['b'], -0.8 * clipped, rtol=1e-6)


def test_a_row_too_long_for_a_square_adds_nothing_unbounded():
  found = clients.sum_of_rows(tf.constant([[1e30], [1.0]]), tf.ones([2]), 2.0)
  assert abs(found[0]) <= 4.0


_OBJECTIVE = harness.cco()


def _spec(**fields):
  return collections.OrderedDict(harness.ELEMENT, **fields)


@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize(
  ('image', 'said'),
  [
    (None, 'have the fields example_id, label; they must have `image`'),
    (tf.TensorSpec(tiny.IMAGE_SHAPE, tf.int64), '`image` of an example is int64'),
    (tf.TensorSpec([8, 8], tf.uint8), r'shape \[8, 8\]; the encoder takes \[8, 8, 1\]'),
    (tf.TensorSpec([8, 8, 3], tf.uint8), r'shape \[8, 8, 3\]; the encoder takes'),
    (tf.TensorSpec([8, 4, 1], tf.uint8), r'shape \[8, 4, 1\]; the encoder takes'),
    (tf.TensorSpec([None, 8, 1], tf.uint8), r'shape \[None, 8, 1\]; the encoder'),
  ],
  ids=['missing', 'int64', 'rank', 'channels', 'size', 'unknown size'],
)
def test_fields_that_the_encoder_cannot_read_are_named(packed, image, said):
  spec = _spec(image=image)
  if image is None:
    del spec['image']
  given = packs.PackSpec(spec) if packed else spec
  with pytest.raises(ValueError, match=said):
    clients.check_fields(given, _OBJECTIVE)
  clients.check_fields(_spec(), _OBJECTIVE)


@pytest.mark.parametrize(
  ('fields', 'said'),
  [
    ({'example_id': tf.TensorSpec([], tf.int32)}, 'int64 scalar `example_id`'),
    ({'example_id': tf.TensorSpec([None], tf.int64)}, 'not batches'),
    ({'label': tf.TensorSpec([], tf.int64)}, '`label` of an example is int64'),
    (
      {'label': tf.TensorSpec([3], tf.int32)},
      'is int32 of shape',
    ),
  ],
)
def test_ids_and_labels_are_checked(fields, said):
  with pytest.raises(ValueError, match=said):
    clients.check_element(_spec(**fields))
  clients.check_element(_spec())


def test_what_has_no_id_is_no_element():
  for element in (collections.OrderedDict(image=tf.TensorSpec([2])), None):
    with pytest.raises(ValueError, match='int64 scalar `example_id`'):
      clients.check_element(element)


def test_a_loss_of_labels_needs_the_field():
  examples = harness.tensors(harness.arrays(2))
  del examples['label']
  with pytest.raises(ValueError, match='image, example_id; they must have a `label`'):
    labels.labelled().example_mask(examples)


# Resizing may leave [0, 1] by a little.
@pytest.mark.parametrize('values', [[0.0, 1.0], [-0.004, 1.008], [np.nan, np.inf], []])
def test_floating_images_from_0_to_1_or_not_finite_pass(values):
  images = np.resize(np.array(values, np.float32), [len(values), 8, 8, 1])
  given = {'image': tf.constant(images)}
  np.testing.assert_array_equal(clients.in_range(given, _OBJECTIVE)['image'], images)


@pytest.mark.parametrize(
  ('values', 'said'), [([0, 255], 'from 0 to 255;'), ([-1, 1], 'from -1 to 1;')]
)
@pytest.mark.parametrize('packed', [False, True])
def test_floating_images_of_another_range_are_an_error(
  tff_context, packed, values, said
):
  arrays = harness.arrays(4)
  arrays['image'][:2, 0, 0, 0] = values
  cohort = steps.build_cohort(
    harness.PACKS if packed else harness.ELEMENT, aggregations.checked(None), _OBJECTIVE
  )
  with pytest.raises(ValueError, match=f'`image` of an example is {said} floating'):
    cohort.read(harness.cohort([range(4)], arrays, packed)[0])


def test_an_aggregation_is_one_of_ours():
  with pytest.raises(ValueError, match='aggregation is a str; it must be'):
    aggregations.checked('secure')
