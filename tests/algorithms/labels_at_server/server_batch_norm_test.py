"""Batch norm where the server has labels, and in FedCA."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms.labels_at_server import fedmatch
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import labelled_only
from tff_ssl.algorithms.labels_at_server import server_finetuned
from tff_ssl.augment import byol
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.federated import processes
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import simclr
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.settings import methods

_PIXELS = 'encoder/pixels/population'
_DIMENSION = 4


def _encode(ops, x):
  x = ops.batch_norm(x, 'pixels')
  ops.tap(x, 'stage1')
  x = ops.conv2d(x, 'conv', filters=3, kernel_size=1)
  return ops.global_average_pool(ops.relu(ops.batch_norm(x, 'norm')))


_ENCODER = network.Network('encoder', tiny.IMAGE_SHAPE, _encode)
_LABELLED = labels.labelled(_ENCODER)
_PSEUDO_LABELS = labels.pseudo_labels(_ENCODER)
_MODEL = dual_encoder.Siamese(
  _ENCODER,
  projector.build_projector(3, (_DIMENSION,), normalization='batch'),
  harness.model('mild').augmentation,
)
_STUDENT = teacher_student.FedSupObjective(
  _MODEL, predictor.build_predictor(_DIMENSION, 3, normalization='batch')
)
_TEACHER = teacher_student.TeacherObjective(
  _LABELLED, _MODEL.projector, projector.build_linear(_DIMENSION, tiny.NUM_CLASSES)
)
_ALGORITHMS = {
  'fixmatch': lambda: server_finetuned.server_finetuned(
    _PSEUDO_LABELS, _LABELLED, harness.ELEMENT, *labels.PLANS
  ),
  'simclr': lambda: server_finetuned.server_finetuned(
    simclr.SimclrObjective(_MODEL), _LABELLED, harness.ELEMENT, *labels.PLANS
  ),
  'fedrgd': lambda: fedrgd.fedrgd(
    _PSEUDO_LABELS, _LABELLED, harness.ELEMENT, *labels.PLANS, grouping.Grouping(1, 1.0)
  ),
  'fedsup': lambda: fedsup.fedsup(
    _STUDENT, _TEACHER, harness.ELEMENT, *labels.PLANS, grouping.Grouping(1, 1.0)
  ),
  'fedmatch': lambda: fedmatch.fedmatch(
    labels.unlabelled(_ENCODER),
    helper_consistency.LabelledObjective(_LABELLED),
    harness.ELEMENT,
    methods.Fedmatch(helper_interval=2),
    labels.CLIENT_CONFIG,
    numbered.POPULATION,
    labels.SERVER_PLAN,
  ),
}


def _statistics_of(params):
  own = labels.as_params({n: v for n, v in params.items() if 'population' not in n})
  return batch_norm_statistics.compute(_LABELLED, own, labels.server_examples())


def _assert_close(got, expected):
  assert set(got) == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(got[name], value, rtol=2e-4, atol=1e-5, err_msg=name)


@functools.cache
def _two_rounds(name):
  """Returns the process, a cohort, and the states before and after each round."""
  algorithm = _ALGORITHMS[name]()
  process = processes.build(algorithm, harness.element(algorithm))
  cohort, states = harness.cohort(labels.CLIENTS), [process.initialize()]
  if algorithm.client_numbers:
    cohort = [numbered.numbered(dataset) for dataset in cohort]
  for _ in range(2):
    states.append(process.next(states[-1], harness.server_data(), cohort).state)
  return process, cohort, states


@pytest.mark.long_for('fixmatch', 'simclr', 'fedrgd', 'fedmatch')
@pytest.mark.parametrize('name', _ALGORITHMS)
def test_statistics_are_those_of_the_server_s_images_at_the_last_weights(
  name, tff_context
):
  process, _, states = _two_rounds(name)
  initial = states[0].global_model_weights.non_trainable
  assert not np.any(initial[f'{_PIXELS}_mean'])
  # The first layer's need no network.
  pixels = labels.server_examples()['image'].numpy().astype(np.float64)
  for state in states[1:]:
    weights = process.get_model_weights(state)
    _assert_close(weights.non_trainable, _statistics_of(weights.trainable))
    for moment, value in (('mean', pixels), ('square', pixels**2)):
      got = weights.non_trainable[f'{_PIXELS}_{moment}']
      np.testing.assert_allclose(got, value.mean((0, 1, 2)), rtol=1e-5)
  # Scales and shifts are trained.
  before, after = (s.global_model_weights.trainable for s in (states[0], states[2]))
  moved = [n for n in after if n.endswith(('gamma', 'beta', 'scale', 'shift'))]
  assert len(moved) >= 4
  for each in (each for each in moved if each.startswith('encoder')):
    assert np.abs(np.asarray(after[each]) - before[each]).max() > 1e-6, each
  # Classifiers can be tested on one image.
  images = tf.cast(labels.server_examples()['image'], tf.float32)
  for own in process.graph.algorithm.classifiers(states[-1]).values():
    params = labels.as_params(own)
    together, alone = (_LABELLED.logits(params, x) for x in (images, images[:1]))
    np.testing.assert_allclose(alone, together[:1], rtol=1e-4, atol=1e-5)


def test_without_server_images_statistics_stay(tff_context):
  process, cohort, states = _two_rounds('fedsup')
  output = process.next(states[1], harness.server_data(0), cohort)
  _assert_close(
    process.get_model_weights(output.state).non_trainable,
    states[1].global_model_weights.non_trainable,
  )


def test_teacher_has_statistics_of_its_own(tff_context):
  process, _, states = _two_rounds('fedsup')
  own = process.graph.algorithm.classifiers(states[-1])
  teacher, student = own['teacher'], own['student']
  names = set(batch_norm_statistics.initial(_LABELLED))
  _assert_close({n: teacher[n] for n in names}, _statistics_of(teacher))
  _assert_close({n: student[n] for n in names}, _statistics_of(student))
  differ = [n for n in names if np.abs(np.asarray(teacher[n]) - student[n]).max() > 0]
  assert differ


def test_labelled_only_has_the_same_rule(tff_context):
  process = processes.build(
    labelled_only.labelled_only(_LABELLED, harness.ELEMENT, labels.SERVER_PLAN)
  )
  state = process.next(process.initialize(), harness.server_data()).state
  weights = process.get_model_weights(state)
  _assert_close(weights.non_trainable, _statistics_of(weights.trainable))


def test_fixmatch_normalises_each_view_by_itself():
  objective = _PSEUDO_LABELS
  params = objective.init(tf.constant([3, 4]))
  examples = harness.tensors(harness.take(harness.arrays(), range(5)))
  seed = tf.constant([1, 2])
  encodings = objective.encode(params, examples, seed)
  arguments = examples['image'], examples['example_id'], seed, objective.augmentation
  for name, view in (
    ('weak', weak_strong.weak_view(*arguments)),
    ('strong', weak_strong.strong_view(*arguments)),
  ):
    alone = supervised.logits(objective.encoder, objective.head, params, view)
    np.testing.assert_allclose(encodings[name], alone, rtol=1e-4, atol=1e-5)


def test_fedca_fills_its_dictionary_with_a_batch_s_projections():
  objective = dictionary_contrast.FedCAObjective(_MODEL)
  params = objective.init(tf.constant([3, 4]))
  examples = harness.tensors(harness.take(harness.arrays(), range(5)))
  image = byol.to_float(examples['image'])
  expected = tf.math.l2_normalize(_MODEL.project(params, image), axis=1)
  rows = objective.entries(params, examples)
  np.testing.assert_allclose(rows, expected, rtol=1e-5)
