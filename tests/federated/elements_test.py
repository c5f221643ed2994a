"""What is no example for an objective's encoders is an error of one sentence."""

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
  ],
  ids=['missing', 'int64', 'rank', 'channels'],
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
  make = harness.packed_cohort if packed else harness.cohort
  with pytest.raises(ValueError, match=f'`image` of an example is {said} floating'):
    cohort.read(make([range(4)], arrays)[0])


def test_an_aggregation_is_one_of_ours():
  with pytest.raises(ValueError, match='aggregation is a str; it must be'):
    aggregations.checked('secure')
