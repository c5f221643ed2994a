"""Tests of alignment and uniformity on linear networks, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.objectives import networks
from tff_ssl.objectives import uniformity

_SEED = tf.constant([1, 2])


def _reference(objective, params, batch, seed=_SEED) -> float:
  f, g = (
    networks.numpy_linear(params, 'projector', view)
    for view in networks.numpy_views(objective.model, batch, seed)
  )
  f, g = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (f, g))
  others = ~np.eye(len(f), dtype=bool)
  spreads = [
    np.log(np.mean(np.exp(-objective.t * _squares(x)[others]))) for x in (f, g)
  ]
  return np.mean(np.sum((f - g) ** 2, axis=1)) + objective.weight * np.mean(spreads)


def _squares(x: np.ndarray) -> np.ndarray:
  return np.sum((x[:, None] - x[None]) ** 2, axis=-1)


@pytest.mark.parametrize(('weight', 't'), [(1.0, 2.0), (0.5, 3.0), (0.0, 2.0)])
def test_loss_and_its_step_equal_numpy(weight, t):
  objective = uniformity.UniformityObjective(networks.siamese('byol'), weight, t)
  batch, params = networks.examples(5), objective.init(_SEED, tf.float64)
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, _ = objective.loss(params, networks.tensors(batch), _SEED)
  assert float(loss) == pytest.approx(_reference(objective, params, batch), rel=1e-6)
  gradient = tape.gradient(loss, params)
  arrays = {name: value.numpy() for name, value in params.items()}
  slopes = differences.gradient(
    lambda moved: _reference(objective, moved, batch), arrays, step=1e-5
  )
  for name, value in slopes.items():
    np.testing.assert_allclose(gradient[name], value, rtol=1e-6, atol=1e-5)
