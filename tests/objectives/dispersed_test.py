"""Tests of FedU2's regulariser, against NumPy on linear networks."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.augment import randomness
from tff_ssl.objectives import byol
from tff_ssl.objectives import dispersed as dispersed_lib
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import supervised

_WEIGHT, _EPSILON, _TAU = 0.7, 0.1, 0.5
_SEED = tf.constant([3, 5])
_MODEL = networks.siamese('byol_no_blur')
_OBJECTIVES = collections.OrderedDict(
  simclr=simclr.SimclrObjective(_MODEL),
  simsiam=simsiam.SimSiamObjective(_MODEL, networks.predictor()),
  byol=byol.ByolObjective(_MODEL, networks.predictor()),
)


def _transport(z, points):
  """Returns <pi, C> of the unbalanced plan, its scalings written out."""
  n = len(z)
  z = z / np.linalg.norm(z, axis=1, keepdims=True)
  cost = ((z[:, np.newaxis] - points) ** 2).sum(-1) / 2
  kernel = np.exp(-cost / _EPSILON) / n**2
  u, v = np.ones(n), np.ones(n)
  for _ in range(20):
    u = (1 / n / (kernel @ v)) ** (_TAU / (_TAU + _EPSILON))
    v = (1 / n / (kernel.T @ u)) ** (_TAU / (_TAU + _EPSILON))
  # Masses a and b of the points are part of the kernel here.
  return float(np.sum(u[:, np.newaxis] * kernel * v * cost))


def _loss(objective, params, n=5):
  state = objective.init_state(params)
  batch = networks.tensors(networks.examples(n))
  return objective.loss_with_state(params, state, batch, _SEED)


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_the_loss_is_that_of_the_objective_and_two_transports(name):
  objective = _OBJECTIVES[name]
  params = networks.stepped(objective.init(tf.constant([1, 0])), 0.1)
  own = dispersed_lib.DispersedObjective(objective, _WEIGHT, _EPSILON, _TAU)
  assert own.keeps_state
  plain, _, _ = _loss(objective, params)
  loss, metrics, _ = _loss(own, params)
  batch = networks.examples(5)
  views = networks.numpy_views(_MODEL, batch, _SEED)
  expected = sum(
    _transport(
      networks.numpy_linear(params, 'projector', x),
      dispersed_lib.points(_SEED, tf.constant(batch['example_id']), 2, view).numpy(),
    )
    for view, x in enumerate(views)
  )
  np.testing.assert_allclose(metrics['ssl_loss'], plain, rtol=1e-6)
  np.testing.assert_allclose(metrics['dispersion'], expected, rtol=1e-4)
  np.testing.assert_allclose(loss, float(plain) + _WEIGHT * expected, rtol=1e-4)
  summary = own.summarize(metrics)
  assert [*summary][:2] == ['ssl_loss', 'dispersion']
  assert np.isfinite(float(summary['encoding_std']))


def test_points_are_spread_over_the_sphere_and_belong_to_their_examples():
  ids = tf.range(200, dtype=tf.int64)
  points = dispersed_lib.points(_SEED, ids, 3).numpy()
  np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, rtol=1e-5)
  # Of a uniform distribution: mean 0, covariance 1/3, to 4 standard errors.
  np.testing.assert_allclose(points.mean(0), 0, atol=4 * np.sqrt(1 / 3 / 200))
  np.testing.assert_allclose(points.T @ points / 200, np.eye(3) / 3, atol=0.12)
  some = dispersed_lib.points(_SEED, ids[7:3:-1], 3)
  np.testing.assert_allclose(some, points[7:3:-1], rtol=1e-6)
  other = dispersed_lib.points(_SEED, ids[:9], 3, 1)
  assert not np.allclose(other, points[:9])


def test_the_least_and_the_largest_uniform_number_give_points(monkeypatch):
  drawn = tf.constant([[0.0, 0.5], [1 - 2.0**-24, 0.75]])
  monkeypatch.setattr(randomness, 'uniforms', lambda *_: drawn)
  points = dispersed_lib.points(_SEED, tf.range(2, dtype=tf.int64), 2)
  assert points.dtype == tf.float32
  # Quantiles of 2^-25, 0.5, 1 - 2^-25 and 0.75.
  normal = np.array([[-5.419983, 0.0], [5.419983, 0.67449]])
  expected = normal / np.linalg.norm(normal, axis=1, keepdims=True)
  np.testing.assert_allclose(points, expected, atol=1e-6)


def test_a_step_spreads_encodings_that_have_collapsed():
  """Of which the loss without a weight would leave all where they are."""
  own = dispersed_lib.DispersedObjective(_OBJECTIVES['simsiam'], 1.0)
  params = own.init(tf.constant([1, 0]))
  name = 'projector/dense0/kernel'
  params[name] = 1e-2 * params[name]
  params['projector/dense0/bias'] = tf.constant([1.0, 0.0])
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss = _loss(own, params, 16)[1]['dispersion']
  gradient = tape.gradient(loss, params[name])
  assert float(tf.reduce_max(tf.abs(gradient))) > 1e-3
  moved = {**params, name: params[name] - 0.05 * gradient}
  assert float(_loss(own, moved, 16)[1]['dispersion']) < float(loss)


def test_objectives_without_projections_and_bad_weights_are_refused():
  objective = supervised.SupervisedObjective(
    networks.encoder(), networks.predictor(), _MODEL.augmentation
  )
  with pytest.raises(ValueError, match='to be dispersed it must be SimCLR'):
    dispersed_lib.DispersedObjective(objective)
