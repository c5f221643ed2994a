"""Batch norm where the server has labels, and in FedCA."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms import fedca as fedca_lib
from tff_ssl.algorithms.labels_at_server import fedmatch as fedmatch_lib
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.labels_at_server import fedsup as fedsup_lib
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import labelled_only
from tff_ssl.algorithms.labels_at_server import server_finetuned
from tff_ssl.augment import byol
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import simclr
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

_PIXELS = 'encoder/pixels/population'
_DIMENSION = 4


def _encode(ops, x):
  x = ops.batch_norm(x, 'pixels')
  ops.tap(x, 'stage1')
  x = ops.conv2d(x, 'conv', filters=3, kernel_size=1)
  return ops.global_average_pool(ops.relu(ops.batch_norm(x, 'norm')))


def _encoder():
  return network.Network('encoder', tiny.IMAGE_SHAPE, _encode)


def _labelled():
  head = projector.build_linear(3, tiny.NUM_CLASSES)
  return supervised.SupervisedObjective(_encoder(), head, byol.by_name('none'))


def _model():
  head = projector.build_projector(3, (_DIMENSION,), normalization='batch')
  return dual_encoder.Siamese(_encoder(), head, harness.model('mild').augmentation)


def _pseudo_labels():
  own = _labelled()
  return fixmatch.FixMatchObjective(
    own.encoder, own.head, labels.VIEWS, objectives.Fixmatch(0.0)
  )


def _student():
  return teacher_student.FedSupObjective(
    _model(), predictor.build_predictor(_DIMENSION, 3, normalization='batch')
  )


def _teacher():
  return teacher_student.TeacherObjective(
    _labelled(),
    _model().projector,
    projector.build_linear(_DIMENSION, tiny.NUM_CLASSES),
  )


def _finetuned(objective):
  return processes.build(
    server_finetuned.server_finetuned(
      objective, _labelled(), harness.ELEMENT, labels.CLIENT_CONFIG, labels.SERVER_PLAN
    ),
    labels.spec(),
  )


def _fedrgd():
  own = labels.CLIENT_CONFIG, labels.SERVER_PLAN, grouping.Grouping(1, 1.0)
  return processes.build(
    fedrgd.fedrgd(_pseudo_labels(), _labelled(), harness.ELEMENT, *own), labels.spec()
  )


def _fedsup():
  own = labels.CLIENT_CONFIG, labels.SERVER_PLAN, grouping.Grouping(1, 1.0)
  return processes.build(
    fedsup_lib.fedsup(_student(), _teacher(), harness.ELEMENT, *own), labels.spec()
  )


def _fedmatch():
  own = _labelled()
  return processes.build(
    fedmatch_lib.fedmatch(
      helper_consistency.UnlabelledObjective(
        own.encoder, own.head, labels.VIEWS, objectives.Fedmatch(0.0), l2_weight=0.1
      ),
      helper_consistency.LabelledObjective(own),
      harness.ELEMENT,
      methods.Fedmatch(helper_interval=2),
      labels.CLIENT_CONFIG,
      numbered.POPULATION,
      labels.SERVER_PLAN,
    ),
    labels.spec(contextual.CLIENT),
  )


_PROCESSES = {
  'fixmatch': lambda: _finetuned(_pseudo_labels()),
  'simclr': lambda: _finetuned(simclr.SimclrObjective(_model())),
  'fedrgd': _fedrgd,
  'fedsup': _fedsup,
  'fedmatch': _fedmatch,
}


def _cohort(name):
  if name != 'fedmatch':
    return harness.cohort(labels.CLIENTS)
  arrays = labels.examples(contextual.CLIENT, range(len(labels.CLIENTS)))
  return [
    tf.data.Dataset.from_tensor_slices(harness.take(arrays, positions))
    for positions in labels.CLIENTS
  ]


def _server_images():
  return harness.tensors(harness.take(harness.arrays(20), range(12, 18)))


def _statistics_of(params):
  own = labels.as_params({n: v for n, v in params.items() if 'population' not in n})
  return batch_norm_statistics.compute(_labelled(), own, _server_images())


def _assert_close(got, expected):
  assert set(got) == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(got[name], value, rtol=2e-4, atol=1e-5, err_msg=name)


@functools.cache
def _two_rounds(name):
  """Returns the states before, after one and after two rounds, and their outputs."""
  process = _PROCESSES[name]()
  state, states, metrics = process.initialize(), [], []
  states.append(state)
  for _ in range(2):
    output = process.next(state, harness.server_data(), _cohort(name))
    state = output.state
    states.append(state)
    metrics.append(output.metrics)
  return process, states, metrics


@pytest.mark.long_for('fixmatch', 'simclr', 'fedrgd', 'fedmatch')
@pytest.mark.parametrize('name', _PROCESSES)
def test_statistics_are_those_of_the_server_s_images_at_the_last_weights(
  name, tff_context
):
  process, states, _ = _two_rounds(name)
  initial = states[0].global_model_weights.non_trainable
  assert not np.any(initial[f'{_PIXELS}_mean'])
  for state in states[1:]:
    weights = process.get_model_weights(state)
    _assert_close(weights.non_trainable, _statistics_of(weights.trainable))
    # The first layer's need no network.
    pixels = _server_images()['image'].numpy().astype(np.float64)
    np.testing.assert_allclose(
      weights.non_trainable[f'{_PIXELS}_mean'], pixels.mean((0, 1, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(
      weights.non_trainable[f'{_PIXELS}_square'],
      (pixels**2).mean((0, 1, 2)),
      rtol=1e-5,
    )


@pytest.mark.long_for('fixmatch', 'simclr', 'fedrgd', 'fedmatch')
@pytest.mark.parametrize('name', _PROCESSES)
def test_classifiers_can_be_tested_on_one_image(name, tff_context):
  process, states, _ = _two_rounds(name)
  objective = _labelled()
  images = tf.cast(_server_images()['image'], tf.float32)
  for own in process.graph.algorithm.classifiers(states[-1]).values():
    params = labels.as_params(own)
    alone = objective.logits(params, images[:1])
    np.testing.assert_allclose(
      alone, objective.logits(params, images)[:1], rtol=1e-4, atol=1e-5
    )


@pytest.mark.long_for('fixmatch', 'simclr', 'fedrgd', 'fedmatch')
@pytest.mark.parametrize('name', _PROCESSES)
def test_scales_and_shifts_are_trained(name, tff_context):
  _, states, _ = _two_rounds(name)
  before, after = (s.global_model_weights.trainable for s in (states[0], states[2]))
  moved = [n for n in after if n.endswith(('gamma', 'beta', 'scale', 'shift'))]
  assert len(moved) >= 4
  for name_ in moved:
    if name_.startswith('encoder'):
      assert np.abs(np.asarray(after[name_]) - before[name_]).max() > 1e-6, name_


def test_without_server_images_statistics_stay(tff_context):
  process, states, _ = _two_rounds('fedsup')
  output = process.next(states[1], harness.server_data(0), _cohort('fedsup'))
  _assert_close(
    process.get_model_weights(output.state).non_trainable,
    states[1].global_model_weights.non_trainable,
  )


def test_teacher_has_statistics_of_its_own(tff_context):
  process, states, _ = _two_rounds('fedsup')
  own = process.graph.algorithm.classifiers(states[-1])
  teacher, student = own['teacher'], own['student']
  names = set(batch_norm_statistics.initial(_labelled()))
  _assert_close({n: teacher[n] for n in names}, _statistics_of(teacher))
  _assert_close({n: student[n] for n in names}, _statistics_of(student))
  differ = [n for n in names if np.abs(np.asarray(teacher[n]) - student[n]).max() > 0]
  assert differ


def test_labelled_only_has_the_same_rule(tff_context):
  process = processes.build(
    labelled_only.labelled_only(_labelled(), harness.ELEMENT, labels.SERVER_PLAN)
  )
  state = process.next(process.initialize(), harness.server_data()).state
  weights = process.get_model_weights(state)
  _assert_close(weights.non_trainable, _statistics_of(weights.trainable))


def test_fixmatch_normalises_each_view_by_itself():
  objective = _pseudo_labels()
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


@pytest.mark.long
def test_fedca_fills_its_dictionary_with_a_batch_s_projections(tff_context):
  objective = dictionary_contrast.FedCAObjective(_model())
  params = objective.init(tf.constant([3, 4]))
  examples = harness.tensors(harness.take(harness.arrays(), range(5)))
  rows = objective.entries(params, examples)
  image = byol.to_float(examples['image'])
  expected = tf.math.l2_normalize(_model().project(params, image), axis=1)
  np.testing.assert_allclose(rows, expected, rtol=1e-5)
  config = methods.FedCA(3), labels.CLIENT_CONFIG, len(labels.CLIENTS)
  one = optimizers.build_optimizer(learning.SgdServer())
  process = processes.build(
    fedca_lib.fedca(objective, one, *config), labels.spec(contextual.CLIENT)
  )
  state = process.initialize()
  for _ in range(2):
    output = process.next(state, _cohort('fedmatch'))
    state = output.state
  work = collections.OrderedDict(output.metrics['client_work'])
  # Clients of 1, 2, 3, 4 and 2 examples share at most three each.
  assert work['dictionary_rows'] == 1 + 2 + 3 + 3 + 2
  assert np.isfinite(work['loss'])
