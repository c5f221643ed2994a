"""Tests of clients computed side by side, beyond what packs of clients test."""

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
    networks.siamese('flip'), networks.predictor()
  ),
  # Its features are encodings of which no loss is taken.
  'mae': lambda: mae.build_mae(
    vit.from_config(vit.ViTConfig(8, 1, 2, 1), networks.SHAPE)
  ),
}


@pytest.mark.parametrize('name', _OBJECTIVES)
def test_gradients_are_those_of_clients_apart_and_their_mean(name):
  objective = _OBJECTIVES[name]()
  params = objective.init(_SEED, tf.float64)
  examples = networks.tensors(networks.examples(6))
  mean, metrics = vectorized_clients.mean_gradient(
    objective, params, examples, _SEED, tf.constant(3)
  )
  each, of_each = vectorized_clients.each_gradient(
    lambda own: objective.encode(own, examples, _SEED),
    objective.loss_of_encodings,
    params,
    examples,
    tf.constant(3),
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
  np.testing.assert_allclose(of_each['loss'], losses, rtol=1e-9)
  for name, value in mean.items():
    apart = np.stack([gradient[name] for gradient in gradients])
    np.testing.assert_allclose(value, apart.mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(each[name], apart, rtol=1e-6, atol=1e-9)
