"""Tests of SSD's regularisers on linear networks, against NumPy."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.encoders import projector
from tff_ssl.objectives import separated
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import uniformity

_SEED = tf.constant([3, 5])
# Features are the means of three channels: three projections.
_MODEL = dataclasses.replace(
  networks.siamese('byol_no_blur'),
  projector=projector.build_linear(3, 3, 'projector'),
)
_PLAIN = uniformity.UniformityObjective(_MODEL, 0.8)


def _batch(client, n=5):
  batch = networks.tensors(networks.examples(n))
  return collections.OrderedDict(batch, client=tf.fill([n], client))


def _params(objective):
  return networks.stepped(objective.init(tf.constant([1, 0])), 0.1)


def _unit(x):
  return x / np.linalg.norm(x, axis=1, keepdims=True)


def _softmax(x):
  e = np.exp(x - x.max(1, keepdims=True))
  return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize('client', [0, 2])
def test_the_loss_is_that_of_the_authors(client):
  own = separated.SeparatedObjective(_PLAIN, 3, 4.0, 0.7, 0.3)
  params = _params(own)
  loss, metrics = own.loss(params, _batch(client), _SEED)
  h = np.concatenate(networks.numpy_views(_MODEL, networks.examples(5), _SEED), axis=0)
  z = networks.numpy_linear(params, 'projector', h)
  unit = _unit(z)
  # One dimension of three clients' is multiplied by 4.
  own_unit = _unit(unit * np.where(np.arange(3) == client, 4, 1))
  of_views = np.split(unit - own_unit, 2)
  separation = np.mean([np.sqrt(np.sum(each**2)) / 5 for each in of_views])
  p, q = _softmax(z / 0.5), _softmax(h / 0.5)
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
  params = _params(own)

  def share(params):
    h = np.concatenate(networks.numpy_views(_MODEL, networks.examples(5), _SEED))
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
    _MODEL, projector=projector.build_linear(3, 11, 'projector')
  )
  own = separated.SeparatedObjective(
    uniformity.UniformityObjective(model), 4, 2.0, distillation_weight=0.0
  )
  scaled = own.scales == 2
  np.testing.assert_array_equal(scaled.sum(1), [2, 2, 2, 2])
  assert scaled.sum(0).max() == 1


def test_without_examples_it_is_0():
  own = separated.SeparatedObjective(_PLAIN, 3)
  loss, metrics = own.loss(_params(own), _batch(0, 0), _SEED)
  assert float(loss) == float(metrics['distillation']) == 0


@pytest.mark.parametrize(('population', 'scale'), [(1, 10.0), (3, 1.0)])
def test_where_nothing_is_a_client_s_own_nothing_is_drawn(population, scale):
  """Not by rounding either, whose direction would be a gradient of full length."""
  own = separated.SeparatedObjective(_PLAIN, population, scale)
  params = _params(own)
  with tf.GradientTape() as tape:
    tape.watch(params)
    separation = own.loss(params, _batch(0), _SEED)[1]['separation']
  gradient = tape.gradient(separation, list(params.values()))
  assert float(separation) == 0
  assert all(each is None or not np.any(each) for each in gradient)


def test_without_both_terms_it_is_the_objective():
  own = separated.SeparatedObjective(_PLAIN, 3, 1.0, distillation_weight=0.0)
  params = _params(own)
  loss, metrics = own.loss(params, _batch(1), _SEED)
  assert float(loss) == float(_PLAIN.loss(params, _batch(1), _SEED)[0])
  assert 'distillation' not in metrics


def test_what_does_not_fit_is_refused():
  other = simsiam.SimSiamObjective(networks.siamese(), networks.predictor())
  with pytest.raises(ValueError, match='The objective is a SimSiamObjective'):
    separated.SeparatedObjective(other, 3)
  bounded = statistics.StatisticsObjective(_MODEL, encoding_norm=1.0)
  with pytest.raises(ValueError, match=r'encoding_norm is 1\.0; it must be None'):
    separated.SeparatedObjective(bounded, 3)
  narrow = uniformity.UniformityObjective(networks.siamese())
  with pytest.raises(ValueError, match='The projector has 2 outputs; to be dist'):
    separated.SeparatedObjective(narrow, 3)


def test_a_client_out_of_range_is_refused():
  own = separated.SeparatedObjective(_PLAIN, 3)
  with pytest.raises(tf.errors.InvalidArgumentError, match='must be in'):
    own.loss(_params(own), _batch(3), _SEED)
