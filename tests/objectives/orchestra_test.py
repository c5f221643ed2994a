"""Tests of Orchestra's loss on linear networks, against NumPy."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tests.oracles import losses
from tff_ssl.augment import byol
from tff_ssl.augment import rotation
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import orchestra
from tff_ssl.settings import objectives

_SEED = tf.constant([3, 5])
_CENTROIDS = np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])


def _encoder(shape=networks.SHAPE) -> network.Network:
  """Returns a linear map of all pixels, which sees how they are turned."""
  return network.Network(
    'encoder',
    shape,
    lambda ops, x: ops.global_average_pool(
      ops.conv2d(x, 'conv', filters=3, kernel_size=2, strides=2)
    ),
  )


def _objective(**options) -> orchestra.OrchestraObjective:
  model = dual_encoder.Siamese(
    _encoder(), projector.build_linear(3, 2, 'projector'), byol.by_name('byol_no_blur')
  )
  objective = orchestra.OrchestraObjective(model, objectives.Orchestra(**options))
  centroids = tf.constant(_CENTROIDS, tf.float32)
  return objective.bind_context({orchestra.CENTROIDS: centroids})


def _start(objective):
  """Parameters, a target that is not the online network, and examples."""
  params = networks.stepped(objective.init(tf.constant([1, 0])), 0.1)
  state = objective.init_state(objective.init(tf.constant([3, 4])))
  return params, state, networks.tensors(networks.examples(5))


def _encode(params, images, prefix=''):
  kernel = np.asarray(params[f'{prefix}encoder/conv/kernel'], np.float64)
  bias = params.get(f'{prefix}encoder/conv/bias')
  x = images.reshape(len(images), -1) @ kernel.reshape(-1, kernel.shape[-1])
  x = x if bias is None else x + np.asarray(bias)
  return networks.numpy_linear(params, f'{prefix}projector', x)


def _scores(z, temperature):
  return z / np.linalg.norm(z, axis=1, keepdims=True) @ _CENTROIDS.T / temperature


@pytest.mark.parametrize('temperature', [0.1, 0.7])
def test_the_loss_is_the_clustering_and_the_rotation(temperature):
  objective = _objective(temperature=temperature)
  params, state, batch = _start(objective)
  loss, metrics, _ = objective.loss_with_state(params, state, batch, _SEED)
  first, second = (
    view.numpy().astype(np.float64) for view in objective.model.views(batch, _SEED)
  )
  given = losses.softmax(_scores(_encode(state, first, 'target/'), temperature))
  predicted = np.log(losses.softmax(_scores(_encode(params, second), temperature)))
  clustering = -(given * predicted).sum(1).mean()
  turns = rotation.draw(_SEED, batch['example_id']).numpy()
  turned = np.stack([np.rot90(x, k) for x, k in zip(first, turns, strict=True)])
  logits = networks.numpy_linear(params, 'rotation', _encode(params, turned))
  rotated = -np.log(losses.softmax(logits))[np.arange(5), turns].mean()
  np.testing.assert_allclose(metrics['clustering_loss'], clustering, rtol=1e-5)
  np.testing.assert_allclose(metrics['rotation_loss'], rotated, rtol=1e-5)
  np.testing.assert_allclose(loss, clustering + rotated, rtol=1e-5)
  z = _encode(state, first, 'target/')
  np.testing.assert_allclose(
    objective.entries(state, batch, _SEED),
    z / np.linalg.norm(z, axis=1, keepdims=True),
    rtol=1e-4,
  )


def test_the_target_has_no_gradient_and_follows_the_online_network():
  objective = _objective(target_momentum=0.75)
  params, state, batch = _start(objective)
  with tf.GradientTape() as tape:
    tape.watch((params, state))
    loss, _, carry = objective.loss_with_state(params, state, batch, _SEED)
  online, of_target = tape.gradient(loss, (params, state))
  assert all(np.any(value) for value in online.values())
  assert all(value is None for value in of_target.values())
  same, after = objective.after_step(params, state, carry)
  assert same is params
  for name, value in after.items():
    own = params[name.removeprefix('target/')]
    np.testing.assert_allclose(value, 0.75 * state[name] + 0.25 * own, rtol=1e-6)


def test_without_centroids_there_is_no_loss():
  objective = _objective()
  params, state, batch = _start(objective)
  unbound = dataclasses.replace(objective, context=None)
  with pytest.raises(ValueError, match='it must be bound'):
    unbound.loss_with_state(params, state, batch, _SEED)


def test_what_cannot_be_rotated_is_refused():
  model = _objective().model
  wide = dataclasses.replace(model, encoder=_encoder((2, 4, 3)))
  with pytest.raises(ValueError, match=r'it must be \[H, H, C\]'):
    orchestra.OrchestraObjective(wide)
