"""Tests of DINO on linear networks, against NumPy in float64."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.losses import references
from tests.objectives import networks
from tests.oracles import losses
from tff_ssl.augment import byol
from tff_ssl.augment import multiview
from tff_ssl.objectives import base
from tff_ssl.objectives import dino
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])
_LOCAL = (multiview.local_crop(byol.by_name('byol'), 1),) * 3
_K = 4


def _objective(local_crops=(), momentum=0.996, **options) -> dino.DinoObjective:
  settings = objectives.Dino(target_momentum=momentum)
  return dino.DinoObjective(
    networks.siamese('byol'), local_crops, _K, settings, **options
  )


def _start(objective, n=5, dtype=tf.float64):
  """Parameters, a teacher that is not the student, a centre, and examples."""
  params = objective.init(_SEED, dtype)
  state = objective.init_state(objective.init(tf.constant([3, 4]), dtype))
  state['centre'] = tf.cast(tf.linspace(-0.1, 0.2, _K), dtype)
  return params, state, networks.tensors(networks.examples(n))


def _views(objective, batch):
  """The mean channels of every crop in float64: what the encoder makes of them."""
  configs = (objective.model.augmentation,) * 2 + objective.local_crops
  crops = objective.model.crops(batch, _SEED, configs)
  return [crop.numpy().astype(np.float64).mean(axis=(1, 2)) for crop in crops]


def _scores(params, view, prefix='') -> np.ndarray:
  """Products of unit projections and unit prototypes, which has no bias."""
  z = networks.numpy_linear(params, f'{prefix}projector', view)
  kernel = np.asarray(params[f'{prefix}prototypes/dense0/kernel'])
  return references.unit(z) @ (kernel / np.linalg.norm(kernel, axis=0))


def _expected_loss(objective, params, state, views, teacher_temperature) -> float:
  teacher = [_scores(state, view, 'target/') for view in views[:2]]
  student = [_scores(params, view) for view in views]
  return losses.dino(
    teacher, student, np.asarray(state['centre']), teacher_temperature, 0.1
  )


@pytest.mark.parametrize('local', [(), _LOCAL])
def test_loss_equals_numpy(local):
  objective = _objective(local_crops=local)
  params, state, batch = _start(objective)
  loss, metrics, _ = objective.loss_with_state(params, state, batch, _SEED)
  views = _views(objective, batch)
  assert len(views) == 2 + len(local)
  expected = _expected_loss(objective, params, state, views, 0.04)
  assert float(loss) == pytest.approx(expected, rel=1e-6)
  z = networks.numpy_linear(params, 'projector', views[0])
  got = objective.summarize(metrics)['encoding_std']
  assert float(got) == pytest.approx(references.encoding_std(z), rel=1e-5)


def test_one_step_of_a_round_equals_numpy():
  """Gradient by differences; teacher and centre by the schedules at round 5 of 20."""
  objective = _objective(local_crops=_LOCAL, warmup_rounds=11).at(tf.constant(5), 20)
  params, state, batch = _start(objective)
  views = _views(objective, batch)
  temperature = 0.04 + 0.03 * 5 / 10
  with tf.GradientTape() as tape:
    tape.watch((params, state))
    loss, _, carry = objective.loss_with_state(params, state, batch, _SEED)
  gradient, of_state = tape.gradient(loss, (params, state))
  assert all(value is None for value in of_state.values())
  numbers = {name: value.numpy() for name, value in params.items()}

  def by_hand(moved):
    return _expected_loss(objective, moved, state, views, temperature)

  for name, value in numbers.items():
    place = (0,) * value.ndim
    expected = differences.slope(by_hand, numbers, name, place)
    assert float(gradient[name][place]) == pytest.approx(expected, rel=1e-5, abs=1e-8)
  trained = networks.stepped(params, 0.1)
  same, after = objective.after_step(trained, state, carry)
  assert same is trained
  assert list(after) == list(state)
  momentum = 1 - 0.004 * (1 + math.cos(math.pi * 5 / 20)) / 2
  for name in (name for name in state if name != 'centre'):
    online = trained[name.removeprefix('target/')].numpy()
    expected = momentum * state[name].numpy() + (1 - momentum) * online
    np.testing.assert_allclose(after[name], expected, rtol=1e-12)
  logits = np.concatenate([_scores(state, view, 'target/') for view in views[:2]])
  expected = 0.9 * state['centre'].numpy() + 0.1 * logits.mean(axis=0)
  np.testing.assert_allclose(after['centre'], expected, rtol=1e-6)


@pytest.mark.parametrize(
  ('round', 'total', 'momentum', 'temperature'),
  [
    (0, 100, 0.9, 0.04),
    (50, 100, 0.95, 0.07),  # Half way between 0.9 and 1.
    (100, 100, 1.0, 0.07),
    (200, 100, 1.0, 0.07),  # A run that went on.
    (29, 100, 1 - 0.1 * (1 + math.cos(0.29 * math.pi)) / 2, 0.07),
    (10, None, 0.9, 0.04 + 0.03 * 10 / 29),
  ],
)
def test_schedules(round, total, momentum, temperature):
  objective = base.at_round(_objective(momentum=0.9), tf.constant(round), total)
  np.testing.assert_allclose(objective.now, (momentum, temperature), rtol=1e-12)


def test_without_a_round_it_is_the_first():
  objective = _objective()
  params, state, _ = _start(objective)
  carry = {'centre': state['centre']}
  both = objective, objective.at(0, 10)
  one, other = (each.after_step(params, state, carry)[1] for each in both)
  tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def test_the_teacher_begins_as_the_student_and_the_centre_at_0():
  objective = _objective()
  params, _, _ = _start(objective, dtype=tf.float32)
  state = objective.init_state(params)
  np.testing.assert_array_equal(state['centre'], [0] * _K)
  name = 'prototypes/dense0/kernel'
  np.testing.assert_array_equal(state[f'target/{name}'], params[name])
