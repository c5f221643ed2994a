"""Losses around another objective: FeatARC's alignment, dispersion, SSD's separation.

Against NumPy in float64.
"""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tests.objectives import networks
from tests.oracles import losses
from tff_ssl.augment import byol as augment
from tff_ssl.augment import randomness
from tff_ssl.encoders import projector
from tff_ssl.objectives import aligned as aligned_lib
from tff_ssl.objectives import byol
from tff_ssl.objectives import dispersed as dispersed_lib
from tff_ssl.objectives import separated
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import uniformity

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


def _loss(objective, params, n=5):
  state = objective.init_state(params)
  batch = networks.tensors(networks.examples(n))
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


def test_objectives_without_predictions_are_refused():
  head = projector.build_linear(3, 2)
  labelled = supervised.SupervisedObjective(
    networks.encoder(), head, augment.by_name('none')
  )
  for objective in (labelled, simclr.SimclrObjective(networks.towers())):
    with pytest.raises(ValueError, match='it must be SimCLR, SimSiam, BYOL'):
      aligned_lib.AlignedObjective(objective, {}, _WEIGHT)


_DISPERSION, _EPSILON, _TAU = 0.7, 0.1, 0.5


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


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_the_loss_is_that_of_the_objective_and_two_transports(name):
  objective = _OBJECTIVES[name]
  params = _params(objective, 1)
  own = dispersed_lib.DispersedObjective(objective, _DISPERSION, _EPSILON, _TAU)
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
  np.testing.assert_allclose(loss, float(plain) + _DISPERSION * expected, rtol=1e-4)
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


# Features are the means of three channels: three projections.
_PROJECTED = dataclasses.replace(
  networks.siamese('byol_no_blur'),
  projector=projector.build_linear(3, 3, 'projector'),
)
_PLAIN = uniformity.UniformityObjective(_PROJECTED, 0.8)


def _batch(client, n=5):
  batch = networks.tensors(networks.examples(n))
  return collections.OrderedDict(batch, client=tf.fill([n], client))


@pytest.mark.parametrize('client', [0, 2])
def test_the_loss_is_that_of_the_authors(client):
  own = separated.SeparatedObjective(_PLAIN, 3, 4.0, 0.7, 0.3)
  params = _params(own, 1)
  loss, metrics = own.loss(params, _batch(client), _SEED)
  h = np.concatenate(
    networks.numpy_views(_PROJECTED, networks.examples(5), _SEED), axis=0
  )
  z = networks.numpy_linear(params, 'projector', h)
  unit = references.unit(z)
  # One dimension of three clients' is multiplied by 4.
  own_unit = references.unit(unit * np.where(np.arange(3) == client, 4, 1))
  of_views = np.split(unit - own_unit, 2)
  separation = np.mean([np.sqrt(np.sum(each**2)) / 5 for each in of_views])
  p, q = losses.softmax(z / 0.5), losses.softmax(h / 0.5)
  distillation = (p * np.log(p / q)).sum(1).mean()
  plain, _ = _PLAIN.loss(params, _batch(client), _SEED)
  np.testing.assert_allclose(metrics['ssl_loss'], plain, rtol=1e-5)
  np.testing.assert_allclose(metrics['separation'], separation, rtol=1e-4)
  np.testing.assert_allclose(metrics['distillation'], distillation, rtol=1e-4)
  expected = float(plain) + 0.7 * separation + 0.3 * distillation
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  summary = own.summarize(metrics)
  assert np.isfinite([float(value) for value in summary.values()]).all()


def test_the_separation_draws_projections_into_the_client_s_own_dimension():
  own = separated.SeparatedObjective(_PLAIN, 3, separation_weight=1.0)
  params = _params(own, 1)

  def share(params):
    h = np.concatenate(networks.numpy_views(_PROJECTED, networks.examples(5), _SEED))
    z = networks.numpy_linear(params, 'projector', h)
    return np.mean(z[:, 1] ** 2 / (z**2).sum(1))

  with tf.GradientTape() as tape:
    tape.watch(params)
    separation = own.loss(params, _batch(1), _SEED)[1]['separation']
  gradient = tape.gradient(separation, params)
  moved = {name: value - 0.02 * gradient[name] for name, value in params.items()}
  assert share(moved) > share(params) + 1e-3


@pytest.mark.parametrize(
  ('population', 'expected'),
  [
    (1, [[2, 2, 2]]),
    (2, [[2, 1, 1], [1, 2, 1]]),
    (3, [[2, 1, 1], [1, 2, 1], [1, 1, 2]]),
    (4, [[2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 1, 1]]),
  ],
)
def test_clients_have_dimensions_of_their_own_as_long_as_there_are_enough(
  population, expected
):
  own = separated.SeparatedObjective(_PLAIN, population, 2.0)
  np.testing.assert_array_equal(own.scales, expected)


def test_blocks_are_of_equal_size_and_disjoint():
  model = dataclasses.replace(
    _PROJECTED, projector=projector.build_linear(3, 11, 'projector')
  )
  own = separated.SeparatedObjective(
    uniformity.UniformityObjective(model), 4, 2.0, distillation_weight=0.0
  )
  scaled = own.scales == 2
  np.testing.assert_array_equal(scaled.sum(1), [2, 2, 2, 2])
  assert scaled.sum(0).max() == 1


@pytest.mark.parametrize(('population', 'scale'), [(1, 10.0), (3, 1.0)])
def test_where_nothing_is_a_client_s_own_nothing_is_drawn(population, scale):
  """Not by rounding either, whose direction would be a gradient of full length."""
  own = separated.SeparatedObjective(_PLAIN, population, scale)
  params = _params(own, 1)
  with tf.GradientTape() as tape:
    tape.watch(params)
    separation = own.loss(params, _batch(0), _SEED)[1]['separation']
  gradient = tape.gradient(separation, list(params.values()))
  assert float(separation) == 0
  assert all(each is None or not np.any(each) for each in gradient)


def test_without_both_terms_it_is_the_objective():
  own = separated.SeparatedObjective(_PLAIN, 3, 1.0, distillation_weight=0.0)
  params = _params(own, 1)
  loss, metrics = own.loss(params, _batch(1), _SEED)
  assert float(loss) == float(_PLAIN.loss(params, _batch(1), _SEED)[0])
  assert 'distillation' not in metrics


def test_what_does_not_fit_is_refused():
  other = simsiam.SimSiamObjective(networks.siamese(), networks.predictor())
  with pytest.raises(ValueError, match='The objective is a SimSiamObjective'):
    separated.SeparatedObjective(other, 3)
  bounded = statistics.StatisticsObjective(_PROJECTED, encoding_norm=1.0)
  with pytest.raises(ValueError, match=r'encoding_norm is 1\.0; it must be None'):
    separated.SeparatedObjective(bounded, 3)
  narrow = uniformity.UniformityObjective(networks.siamese())
  with pytest.raises(ValueError, match='The projector has 2 outputs; to be dist'):
    separated.SeparatedObjective(narrow, 3)


def test_a_client_out_of_range_is_refused():
  own = separated.SeparatedObjective(_PLAIN, 3)
  with pytest.raises(tf.errors.InvalidArgumentError, match='must be in'):
    own.loss(_params(own, 1), _batch(3), _SEED)
