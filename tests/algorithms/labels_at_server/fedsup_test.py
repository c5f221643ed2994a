"""FedSup: rounds against local training written out, and its teacher."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.federated import local_training
from tff_ssl.federated import processes
from tff_ssl.objectives import teacher_student
from tff_ssl.optimization import schedules

_WEIGHT = schedules.Exponential(1.0, 1e-2, 4)


def _build(student, teacher):
  own = *labels.PLANS, grouping.Grouping(2, 1.0), _WEIGHT
  return processes.build(
    fedsup.fedsup(student, teacher, harness.ELEMENT, *own), labels.spec(grouping.GROUP)
  )


@pytest.fixture(scope='module', name='process')
def _process(tff_context):
  return _build(labels.student(), labels.teacher())


def _cohort():
  return harness.cohort(labels.CLIENTS, labels.examples(grouping.GROUP))


@harness.for_any_size
def _train_teacher(params, seed, optimizer):
  return labels.train_at_server(labels.teacher(), params, seed, optimizer)


@harness.for_any_size
def _train_student(context, params, examples, seed):
  return local_training.train(
    labels.student().bind_context(context),
    labels.CLIENT_CONFIG.clients,
    params,
    examples,
    seed,
    0.05,
  ).params


def _reference_round(state, round):
  """Returns student and teacher after a round, by the order of the pseudocode."""
  seed = harness.round_seed(round)
  teacher = _train_teacher(
    labels.as_params(state.extra['teacher']),
    seed,
    tf.nest.map_structure(tf.constant, state.optimizer),
  )
  start = labels.as_params(state.global_model_weights.trainable)
  context = collections.OrderedDict(
    [
      (teacher_student.TEACHER, teacher),
      (teacher_student.FEATURE_WEIGHT, tf.constant(0.01 ** (round / 4))),
    ]
  )
  trained = [
    _train_student(
      context, start, harness.tensors(harness.take(harness.arrays(), positions)), seed
    )
    for positions in labels.CLIENTS
  ]
  after = {}
  for name in start:
    means, shares = [], []
    for group, share in ((0, 3 / 4), (1, 2 / 3)):
      members = [k for k in range(5) if labels.GROUPS[k] == group]
      own = np.average(
        [trained[k][name].numpy().astype(np.float64) for k in members],
        axis=0,
        weights=[labels.SIZES[k] for k in members],
      )
      if name in teacher:
        own = share * own + (1 - share) * teacher[name].numpy()
      means.append(own)
      shares.append(share)
    # What the teacher does not have is averaged with the clients' coefficients alone.
    after[name] = np.average(means, axis=0, weights=None if name in teacher else shares)
  return after, teacher


def test_rounds_are_those_of_the_pseudocode(process):
  state = process.initialize()
  for round in range(2):
    student, teacher = _reference_round(state, round)
    before = state
    state = process.next(state, harness.server_data(), _cohort()).state
    for old, new, expected in (
      (before.extra['teacher'], state.extra['teacher'], teacher),
      (
        before.global_model_weights.trainable,
        state.global_model_weights.trainable,
        student,
      ),
    ):
      assert old.keys() == expected.keys()
      step = labels.moved(old, expected)
      assert harness.relative(labels.moved(old, new), step) < 1e-3


def test_the_teacher_s_download_is_counted(process):
  metrics = process.next(process.initialize(), harness.server_data(), _cohort()).metrics
  student = labels.student().init(tf.constant([0, 0]))
  down = sum(np.size(v) for v in student.values()) + sum(
    np.size(v) for n, v in student.items() if n.split('/')[0] != 'predictor'
  )
  # With seed, rate and the weight of the feature maps.
  assert metrics['client_work']['bytes_down'] == 5 * 4 * (down + 2 + 1 + 1)


def test_labels_that_are_not_finite_leave_the_teacher_as_it_was(process):
  state = process.initialize()
  output = process.next(state, harness.server_data(value=np.nan), _cohort())
  for name, value in state.extra['teacher'].items():
    np.testing.assert_array_equal(output.state.extra['teacher'][name], value)
  assert output.metrics['server_work']['nonfinite_batches'] == 1
  assert np.isfinite(harness.weights(process, output.state)).all()


def test_mismatched_arguments_are_refused():
  with pytest.raises(ValueError, match='teacher has no projector'):
    _build(labels.student(), labels.teacher(consistency=False))
  with pytest.raises(ValueError, match='must have an int32 scalar `group`'):
    processes.build(
      fedsup.fedsup(labels.student(), labels.teacher(), harness.ELEMENT),
      harness.ELEMENT,
    )
  unlabelled = collections.OrderedDict(harness.ELEMENT)
  del unlabelled['label']
  with pytest.raises(ValueError, match='must have a `label`'):
    processes.build(
      fedsup.fedsup(labels.student(), labels.teacher(), unlabelled),
      labels.spec('group'),
    )
