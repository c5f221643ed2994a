"""Tests of FeatARC's alignment, against NumPy on linear networks."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import projector
from tff_ssl.objectives import aligned as aligned_lib
from tff_ssl.objectives import byol
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import supervised
from tff_ssl.objectives import two_towers

_WEIGHT = 0.7
_SEED = tf.constant([3, 5])
_MODEL = networks.siamese('byol_no_blur')
_OBJECTIVES = collections.OrderedDict(
  simclr=simclr.SimclrObjective(_MODEL),
  simsiam=simsiam.SimSiamObjective(_MODEL, networks.predictor()),
  byol=byol.ByolObjective(_MODEL, networks.predictor()),
)


def _params(objective, seed):
  # Biases begin as 0: moved, they tell where they are used.
  return networks.stepped(objective.init(tf.constant([seed, 0])), 0.1)


def _loss(objective, params):
  state = objective.init_state(params)
  batch = networks.tensors(networks.examples(5))
  return objective.loss_with_state(params, state, batch, _SEED)


def _alignment(objective, params, fixed):
  """Returns (D(p+, z_g) + D(p, z_g)) / 2, the first the mean over both views."""
  batch = networks.examples(5)
  plain = np.mean(batch['image'] / 255.0, axis=(1, 2))
  z = networks.numpy_linear(fixed, 'projector', plain)

  def distance(x):
    p = networks.numpy_linear(params, 'projector', x)
    if 'predictor' in objective.networks:
      p = networks.numpy_linear(params, 'predictor', p)
    return -networks.cosine(p, z)

  views = networks.numpy_views(_MODEL, batch, _SEED)
  return (np.mean([distance(view) for view in views]) + distance(plain)) / 2


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_the_loss_is_that_of_the_objective_and_the_alignment(name):
  objective = _OBJECTIVES[name]
  params, fixed = _params(objective, 1), _params(objective, 2)
  aligned = aligned_lib.AlignedObjective(objective, fixed, _WEIGHT)
  assert aligned.keeps_state
  plain, _, _ = _loss(objective, params)
  loss, metrics, _ = _loss(aligned, params)
  expected = _alignment(objective, params, fixed)
  np.testing.assert_allclose(metrics['ssl_loss'], plain, rtol=1e-6)
  np.testing.assert_allclose(metrics['alignment'], expected, rtol=1e-5)
  np.testing.assert_allclose(loss, float(plain) + _WEIGHT * expected, rtol=1e-5)
  summary = aligned.summarize(metrics)
  assert list(summary)[:2] == ['ssl_loss', 'alignment']
  assert np.isfinite(float(summary['encoding_std']))


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_no_gradient_reaches_the_fixed_model(name):
  objective = _OBJECTIVES[name]
  params, fixed = _params(objective, 1), _params(objective, 2)
  with tf.GradientTape() as tape:
    tape.watch((params, fixed))
    loss, _, _ = _loss(aligned_lib.AlignedObjective(objective, fixed, _WEIGHT), params)
  of_params, of_fixed = tape.gradient(loss, (params, fixed))
  assert all(value is not None for value in of_params.values())
  assert all(value is None for value in of_fixed.values())


def test_byol_keeps_its_target():
  objective = _OBJECTIVES['byol']
  params = _params(objective, 1)
  aligned = aligned_lib.AlignedObjective(objective, params, _WEIGHT)
  state = aligned.init_state(params)
  moved = networks.stepped(params, 0.1)
  _, after = aligned.after_step(moved, state, collections.OrderedDict())
  _, expected = objective.after_step(moved, state, collections.OrderedDict())
  for target, wanted in zip(after.items(), expected.items(), strict=True):
    assert target[0] == wanted[0]
    np.testing.assert_array_equal(target[1], wanted[1])


def test_an_empty_batch_has_a_loss_of_0():
  objective = _OBJECTIVES['simclr']
  params = _params(objective, 1)
  aligned = aligned_lib.AlignedObjective(objective, params, _WEIGHT)
  batch = networks.tensors(networks.examples(0))
  loss, metrics, _ = aligned.loss_with_state(
    params, aligned.init_state({}), batch, _SEED
  )
  assert (float(loss), float(metrics['alignment'])) == (0, 0)


def test_objectives_without_predictions_are_refused():
  head = projector.build_linear(3, 2)
  labelled = supervised.SupervisedObjective(
    networks.encoder(), head, augment.by_name('none')
  )
  towers = two_towers.TwoTower(
    projector.build_linear(3, 2, 'left'), projector.build_linear(4, 2, 'right')
  )
  for objective in (labelled, simclr.SimclrObjective(towers)):
    with pytest.raises(ValueError, match='it must be SimCLR, SimSiam, BYOL'):
      aligned_lib.AlignedObjective(objective, {}, _WEIGHT)
