"""FedSup's losses on a network of two stages, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.objectives import networks
from tests.objectives import staged
from tff_ssl.augment import byol
from tff_ssl.encoders import projector
from tff_ssl.objectives import supervised
from tff_ssl.objectives import teacher_student
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])
_WEIGHT = 0.3


def _student(**options) -> teacher_student.FedSupObjective:
  predictor = projector.build_linear(3, 3, 'predictor')
  settings = objectives.Fedsup(**options)
  return teacher_student.FedSupObjective(staged.siamese(), predictor, settings)


def _teacher() -> teacher_student.TeacherObjective:
  labelled = supervised.SupervisedObjective(
    staged.encoder(), projector.build_linear(staged.FEATURES, 2), byol.by_name('none')
  )
  return teacher_student.TeacherObjective(
    labelled, staged.siamese().projector, projector.build_linear(3, 2)
  )


def _start(objective, n=5):
  """Returns the student's parameters, another model's as the teacher, and a batch."""
  params = objective.init(_SEED, tf.float64)
  teacher = _student().init(tf.constant([7, 8]), tf.float64)
  context = collections.OrderedDict(
    [
      (teacher_student.TEACHER, teacher),
      (teacher_student.FEATURE_WEIGHT, tf.constant(_WEIGHT, tf.float64)),
    ]
  )
  return params, context, networks.examples(n)


def _gradient(objective, params, context, batch):
  bound, tensors = objective.bind_context(context), networks.tensors(batch)
  return networks.gradient(
    lambda both: bound.loss(both[0], tensors, _SEED),
    [params, context[teacher_student.TEACHER]],
  )


def _consistency(objective, params, teacher, batch) -> tuple[float, float]:
  """Returns D of each view's prediction and the other's projection by the teacher."""
  views = [
    view.numpy().astype(np.float64)
    for view in objective.model.views(networks.tensors(batch), _SEED)
  ]

  def project(weights, view):
    features = staged.numpy_features(weights, view)
    return networks.numpy_linear(weights, 'projector', features)

  p = [networks.numpy_linear(params, 'predictor', project(params, v)) for v in views]
  z = [project(teacher, view) for view in views]
  return -networks.cosine(p[0], z[1]), -networks.cosine(p[1], z[0])


def _distances(params, teacher, batch) -> list[float]:
  image = batch['image'] / 255
  return [
    ((a - b) ** 2).mean()
    for a, b in zip(
      staged.numpy_maps(params, image), staged.numpy_maps(teacher, image), strict=True
    )
  ]


@pytest.mark.parametrize('stages', [0, 1, 2, None])
@pytest.mark.parametrize('consistency', [True, False])
def test_the_loss_is_the_sum_of_its_parts(consistency, stages):
  objective = _student(consistency=consistency, stages=stages)
  params, context, batch = _start(objective)
  loss, metrics, _ = _gradient(objective, params, context, batch)
  expected = 0.0
  if consistency:
    # Both directions, and they differ: a loss of one of them would be another number.
    one, other = _consistency(
      objective, params, context[teacher_student.TEACHER], batch
    )
    assert abs(one - other) > 1e-3
    expected += (one + other) / 2
    assert float(metrics['consistency']) == pytest.approx((one + other) / 2, rel=1e-5)
  distances = _distances(params, context[teacher_student.TEACHER], batch)[:stages]
  expected += _WEIGHT * sum(distances)
  assert float(loss) == pytest.approx(expected, rel=1e-5)
  summary = objective.summarize(metrics)
  assert ('encoding_std' in summary) == consistency
  assert ('feature_distance' in summary) == (stages != 0)


def test_the_teacher_gets_no_gradient_and_the_student_all_of_it():
  objective = _student()
  params, context, batch = _start(objective)
  _, _, (of_student, of_teacher) = _gradient(objective, params, context, batch)
  assert all(value is None for value in of_teacher.values())
  arrays = {name: value.numpy() for name, value in params.items()}
  name, index = 'encoder/conv1/kernel', (0, 0, 1, 2)

  def by_hand(moved):
    directions = _consistency(objective, moved, context[teacher_student.TEACHER], batch)
    distances = _distances(moved, context[teacher_student.TEACHER], batch)
    return sum(directions) / 2 + _WEIGHT * sum(distances)

  slope = differences.slope(by_hand, arrays, name, index)
  # The views are float32.
  assert of_student[name].numpy()[index] == pytest.approx(slope, abs=1e-5)


def test_its_context_must_be_bound():
  objective = _student()
  params, context, batch = _start(objective)
  bound = objective.bind_context(context)
  assert np.isfinite(bound.loss(params, networks.tensors(batch), _SEED)[0])
  with pytest.raises(ValueError, match='context of FedSupObjective is None; it must'):
    objective.loss(params, networks.tensors(batch), _SEED)
  plain = _teacher()
  assert plain.bind_context({}) is plain


def test_without_consistency_there_is_no_projector():
  both, features = _student(), _student(consistency=False)
  assert both.shared_prefixes == ('encoder', 'projector', 'predictor')
  assert both.teacher_prefixes == ('encoder', 'projector')
  assert features.shared_prefixes == features.teacher_prefixes == ('encoder',)
  start = [objective.init(_SEED) for objective in (both, features)]
  for name, value in start[1].items():
    np.testing.assert_array_equal(value, start[0][name])


def test_stages_that_there_are_not_are_refused():
  with pytest.raises(ValueError, match='stages is 3; it must be at most 2'):
    _student(stages=3)
  with pytest.raises(ValueError, match='both must be, or neither'):
    teacher_student.TeacherObjective(_teacher().supervised, staged.siamese().projector)


def test_the_teacher_s_encoder_is_that_of_labels_alone():
  """Its projector is trained too, without a trace in encoder and head."""
  teacher = _teacher()
  labelled, batch = teacher.supervised, networks.tensors(networks.examples(6))
  params = teacher.init(_SEED, tf.float64)
  own = labelled.init(_SEED, tf.float64)
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([params, own])
    loss, metrics = teacher.loss(params, batch, _SEED)
    alone, expected = labelled.loss(own, batch, _SEED)
  gradient, of_alone = tape.gradient(loss, params), tape.gradient(alone, own)
  for name, value in of_alone.items():
    np.testing.assert_array_equal(own[name], params[name])
    np.testing.assert_allclose(gradient[name], value, rtol=1e-12)
  assert float(metrics['accuracy']) == float(expected['accuracy'])
  z = networks.numpy_linear(
    params,
    'projector',
    staged.numpy_features(params, networks.examples(6)['image'] / 255),
  )
  logits = networks.numpy_linear(params, 'projection_head', z)
  p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  other = -np.log(p[np.arange(6), networks.examples(6)['label']]).mean()
  assert float(loss - alone) == pytest.approx(other, rel=1e-5)
  assert np.any(gradient['projector/dense0/kernel'])
