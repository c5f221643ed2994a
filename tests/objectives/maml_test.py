"""Tests of MAML's loss on a linear model, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_model
from tests.objectives import networks
from tff_ssl.objectives import byol
from tff_ssl.objectives import maml

_SEED = tf.constant([1, 2])
_ALPHA = 0.3


def _batches():
  """Returns an inner and an outer batch, and both as `prepare` lays them out."""
  inner, outer = linear_model.examples(4), linear_model.examples(5, first_id=10)
  inner = {name: value[:3] for name, value in inner.items()}
  outer = {name: value[:3] for name, value in outer.items()}
  both = collections.OrderedDict(outer)
  both.update((f'partner/{name}', value) for name, value in inner.items())
  return inner, outer, both


def _slope(w, batch):
  return batch['x'].T @ (batch['x'] @ w - batch['y']) / len(batch['y'])


def test_loss_and_gradient_equal_numpy():
  """Half a squared error is a quadratic: its Hessian is x'x / n, everywhere."""
  inner, outer, both = _batches()
  objective = maml.MamlObjective(linear_model.LinearObjective(), _ALPHA)
  w = np.array([0.5, -1.0])
  params = collections.OrderedDict(w=tf.constant(w))
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, metrics = objective.loss(params, both, _SEED)
  adapted = w - _ALPHA * _slope(w, inner)
  error = outer['x'] @ adapted - outer['y']
  assert float(loss) == pytest.approx((error**2).mean() / 2, rel=1e-12)
  assert float(metrics['target']) == pytest.approx(outer['y'].mean())
  hessian = inner['x'].T @ inner['x'] / 3
  expected = (np.eye(2) - _ALPHA * hessian) @ _slope(adapted, outer)
  np.testing.assert_allclose(tape.gradient(loss, params)['w'], expected, rtol=1e-12)


def test_every_example_is_a_partner_once():
  objective = maml.MamlObjective(linear_model.LinearObjective(), _ALPHA)
  examples = linear_model.examples(7)
  tensors = {name: tf.constant(value) for name, value in examples.items()}
  prepared = objective.prepare(tensors, _SEED)
  for name, value in examples.items():
    np.testing.assert_array_equal(prepared[name], value)
  ids = prepared['partner/example_id'].numpy()
  assert sorted(ids) == list(range(7))
  assert list(ids) != list(range(7))
  np.testing.assert_array_equal(prepared['partner/y'], examples['y'][ids])
  other = objective.prepare(tensors, tf.constant([1, 3]))['partner/example_id']
  assert list(other.numpy()) != list(ids)


def test_examples_without_partners_find_them_among_themselves():
  objective = maml.MamlObjective(linear_model.LinearObjective(), _ALPHA)
  tensors = {n: tf.constant(v) for n, v in linear_model.examples(5).items()}
  params = collections.OrderedDict(w=tf.constant([0.5, -1.0], tf.float64))
  alone, _ = objective.loss(params, tensors, _SEED)
  prepared, _ = objective.loss(params, objective.prepare(tensors, _SEED), _SEED)
  assert float(alone) == float(prepared)


def test_the_inner_step_changes_the_loss_and_rate_0_does_not():
  _, outer, both = _batches()
  params = collections.OrderedDict(w=tf.constant([0.5, -1.0], tf.float64))
  own = linear_model.LinearObjective()
  plain, _ = own.loss(params, outer, _SEED)
  losses = [
    float(maml.MamlObjective(own, rate).loss(params, both, _SEED)[0])
    for rate in (0.0, _ALPHA)
  ]
  assert losses[0] == float(plain)
  assert losses[1] != pytest.approx(float(plain))


def test_no_example_gives_loss_zero():
  objective = maml.MamlObjective(linear_model.LinearObjective(), _ALPHA)
  tensors = {n: tf.constant(v) for n, v in linear_model.examples(0).items()}
  params = collections.OrderedDict(w=tf.constant([0.5, -1.0], tf.float64))
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, _ = objective.loss(params, objective.prepare(tensors, _SEED), _SEED)
  assert float(loss) == 0
  assert not np.any(tape.gradient(loss, params)['w'])


def test_invalid_settings_are_refused():
  with pytest.raises(ValueError, match=r'MAML is a ByolObjective; .* without state'):
    maml.MamlObjective(byol.ByolObjective(networks.siamese(), None), 0.1)
