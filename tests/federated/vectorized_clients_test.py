"""Tests of clients computed side by side, beyond what packs of clients test."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.encoders import vit
from tff_ssl.federated import vectorized_clients
from tff_ssl.objectives import mae
from tff_ssl.objectives import simsiam

_SEED = tf.constant([1, 2])
_OBJECTIVES = {
  # Its targets are encodings without a gradient.
  'simsiam': lambda: simsiam.SimSiamObjective(
    networks.siamese('byol'), networks.predictor()
  ),
  # Its features are encodings of which no loss is taken.
  'mae': lambda: mae.build_mae(
    vit.from_config(vit.ViTConfig(8, 1, 2, 1), networks.SHAPE)
  ),
}


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_clients_together_are_the_mean_of_clients_apart(name):
  objective = _OBJECTIVES[name]()
  params = objective.init(_SEED, tf.float64)
  examples = networks.tensors(networks.examples(6))
  gradient, metrics = vectorized_clients.mean_gradient(
    objective, params, examples, _SEED, tf.constant(3)
  )
  losses, gradients = [], []
  for start in (0, 2, 4):
    own = {name: value[start : start + 2] for name, value in examples.items()}
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss, _ = objective.loss(params, own, _SEED)
    losses.append(loss)
    gradients.append(tape.gradient(loss, params))
  assert float(metrics['loss']) == pytest.approx(np.mean(losses), rel=1e-9)
  for name, value in gradient.items():
    expected = np.mean([g[name] for g in gradients], axis=0)
    np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-9)


def test_encoders_in_bfloat16_give_each_client_a_gradient():
  model = networks.siamese('byol')
  half = model.encoder.with_precision('bfloat16')
  found = []
  for encoder in (half, model.encoder):
    own_model = dataclasses.replace(model, encoder=encoder)
    objective = simsiam.SimSiamObjective(own_model, networks.predictor())
    assert vectorized_clients.gives_each(objective)
    params = objective.init(_SEED)
    examples = networks.tensors(networks.examples(6))
    gradients, _ = vectorized_clients.each_gradient(
      functools.partial(objective.encode, examples=examples, seed=_SEED),
      objective.loss_of_encodings,
      params,
      examples,
      tf.constant(3),
    )
    assert {gradient.dtype for gradient in gradients.values()} == {tf.float32}
    rows = [tf.reshape(gradient, [3, -1]) for gradient in gradients.values()]
    found.append(tf.math.l2_normalize(tf.concat(rows, 1), 1))
  cosines = tf.reduce_sum(found[0] * found[1], 1)
  np.testing.assert_array_less(0.95, cosines)
  # They were computed in another precision.
  assert np.any(found[0] != found[1])


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_each_gradient_is_that_of_a_client_apart(name):
  objective = _OBJECTIVES[name]()
  params = objective.init(_SEED, tf.float64)
  examples = networks.tensors(networks.examples(6))
  gradients, metrics = vectorized_clients.each_gradient(
    lambda own: objective.encode(own, examples, _SEED),
    objective.loss_of_encodings,
    params,
    examples,
    tf.constant(3),
  )
  for k in range(3):
    own = {name: value[2 * k : 2 * k + 2] for name, value in examples.items()}
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss, _ = objective.loss(params, own, _SEED)
    assert float(metrics['loss'][k]) == pytest.approx(float(loss), rel=1e-9)
    for name, expected in tape.gradient(loss, params).items():
      np.testing.assert_allclose(gradients[name][k], expected, rtol=1e-6, atol=1e-9)
