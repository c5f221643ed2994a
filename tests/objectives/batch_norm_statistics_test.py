"""Tests of objectives whose networks have batch norm."""

import importlib
import pkgutil

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl import objectives
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import byol
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import linear_classifier
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import teacher_student
from tff_ssl.settings import objectives as objectives_lib

_SEED = tf.constant([1, 2])


def _forward(ops, x):
  x = ops.batch_norm(x, 'pixels')
  x = ops.conv2d(x, 'conv', filters=4, kernel_size=1)
  return ops.global_average_pool(ops.relu(ops.batch_norm(x, 'norm')))


def _encoder():
  return network.Network('encoder', networks.SHAPE, _forward)


def _siamese():
  return dual_encoder.build_siamese(_encoder(), (4, 3), augment.by_name('byol'))


def _simsiam():
  return simsiam.build_simsiam(_encoder(), settings=objectives_lib.Simsiam((4, 3), 5))


_OBJECTIVES = {
  'byol': lambda: byol.build_byol(_encoder(), settings=objectives_lib.Byol((4, 3), 5)),
  'fedsup': lambda: teacher_student.FedSupObjective(
    _siamese(), _simsiam().predictor, objectives_lib.Fedsup(stages=0)
  ),
  'simsiam': _simsiam,
  'swav': lambda: swav.SwavObjective(_siamese(), 5),
  'nt_xent': lambda: simclr.SimclrObjective(_siamese()),
}


def _project(model, params, view):
  """Encodings of one view by itself."""
  features = model.encoder.apply(parameter_names.select(params, 'encoder'), view)
  return model.projector.apply(parameter_names.select(params, 'projector'), features)


def _apart(objective, seed=_SEED):
  """Parameters, examples, and the projections of each view by itself."""
  params = objective.init(seed, tf.float64)
  batch = networks.tensors(networks.examples(6))
  views = objective.model.views(batch, seed)
  return params, batch, [_project(objective.model, params, view) for view in views]


def test_the_views_of_a_model_are_normalized_apart():
  objective = _OBJECTIVES['nt_xent']()
  params, batch, (f, g) = _apart(objective)
  got = objective.encode(params, batch, _SEED)
  np.testing.assert_allclose(got['f'], f, rtol=1e-9, atol=1e-11)
  np.testing.assert_allclose(got['g'], g, rtol=1e-9, atol=1e-11)


_PREDICTING = {
  'byol': similarity.byol_loss,
  'fedsup': similarity.simsiam_loss,
  'simsiam': similarity.simsiam_loss,
}


@pytest.mark.parametrize('name', _PREDICTING)
def test_predictor_and_targets_normalize_each_view_by_its_own_batch(name):
  objective = _OBJECTIVES[name]()
  params, batch, z = _apart(objective)
  other = objective.init(tf.constant([3, 4]), tf.float64)
  if name == 'fedsup':
    context = {teacher_student.TEACHER: other, teacher_student.FEATURE_WEIGHT: 1.0}
    objective = objective.bind_context(context)
  of_targets = params if name == 'simsiam' else other
  views = objective.model.views(batch, _SEED)
  targets = [_project(objective.model, of_targets, view) for view in views]
  own = parameter_names.select(params, 'predictor')
  p1, p2 = (objective.predictor.apply(own, each) for each in z)
  expected = _PREDICTING[name](p1, p2, *targets)
  state = objective.init_state(other)
  losses = [objective.loss_with_state(params, state, batch, _SEED)[0]]
  if name == 'simsiam':
    losses.append(objective.loss_with_outputs(params, batch, _SEED)[0])
  for loss in losses:
    assert float(loss) == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_networks_say_what_is_shared_and_whether_examples_mix(name):
  objective = _OBJECTIVES[name]()
  params = objective.init(_SEED)
  assert batch_norm_statistics.mixes_examples(objective)
  assert objective.shared_prefixes == tuple(objective.networks)
  assert {key.split('/')[0] for key in params} == set(objective.networks)
  found = batch_norm_statistics.batch_norm_names(objective)
  assert {'encoder/norm/gamma', 'encoder/norm/population_square'} <= set(found)
  assert 'projector/norm0/beta' in found
  statistics = {key for key in found if 'population' in key}
  assert set(found) - statistics <= set(params)
  assert not any(key.endswith(('kernel', 'bias')) for key in found)


def test_every_objective_with_networks_names_them():
  found = {}
  for module in pkgutil.iter_modules(objectives.__path__, f'{objectives.__name__}.'):
    for name, member in vars(importlib.import_module(module.name)).items():
      if name.endswith('Objective') and member.__module__ == module.name:
        found[name] = member
  assert len(found) > 7
  # A classifier of features, without a network; and bases.
  for name in ('LinearObjective', 'Objective', 'ContextObjective'):
    del found[name]
  without = base.Objective.networks
  assert all(member.networks is not without for member in found.values()), found


def test_without_batch_norm_there_is_nothing():
  for objective in (
    simclr.SimclrObjective(networks.siamese()),
    linear_classifier.LinearObjective(3, 2),
  ):
    assert not batch_norm_statistics.mixes_examples(objective)
    assert not batch_norm_statistics.initial(objective)
    params = objective.init(_SEED)
    assert not batch_norm_statistics.compute(objective, params, {})
    assert batch_norm_statistics.batch_norm_names(objective) == ()


def test_the_population_is_that_of_plain_images():
  objective = _OBJECTIVES['byol']()
  params = objective.init(_SEED, tf.float64)
  examples = networks.examples(7)
  initial = batch_norm_statistics.initial(objective, tf.float64)
  got = batch_norm_statistics.compute(objective, params, networks.tensors(examples))
  assert list(got) == list(initial)
  assert {name.split('/')[0] for name in got} == {'encoder'}
  pixels = examples['image'].reshape(-1, 3) / 255.0
  name = 'encoder/pixels/population'
  np.testing.assert_allclose(got[f'{name}_mean'], pixels.mean(0), rtol=1e-6)
  np.testing.assert_allclose(got[f'{name}_square'], (pixels**2).mean(0), rtol=1e-6)
  # The second layer, of what the first makes of this batch.
  unit = (pixels - pixels.mean(0)) / np.sqrt(pixels.var(0) + 1e-5)
  maps = unit @ params['encoder/conv/kernel'].numpy()[0, 0]
  name = 'encoder/norm/population_square'
  np.testing.assert_allclose(got[name], (maps**2).mean(0), rtol=1e-5)


def test_a_classifier_of_its_own_is_tested_by_the_population():
  head = projector.build_linear(4, 2)
  objective = supervised.SupervisedObjective(_encoder(), head, augment.by_name('none'))
  params = objective.init(_SEED, tf.float64)
  batch = networks.tensors(networks.examples(5))
  params.update(batch_norm_statistics.compute(objective, params, batch))
  images = augment.to_float(batch['image'])
  together = objective.logits(params, images)
  alone = objective.logits(params, images[2:3])
  np.testing.assert_allclose(together[2:3], alone, rtol=1e-9)
