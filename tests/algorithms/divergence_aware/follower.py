"""BYOL's networks with one layer each, for which every number is known in closed form.

An example is its mean brightness x. The online networks predict x e + p + q, with the
encoder e, the projector p and the predictor q, each of two numbers; they should find
x e' + p' + (x^2, 1 - x), of the target e', p'.
"""

import collections
import dataclasses

import numpy as np
import tensorflow as tf

from tff_ssl.objectives import base
from tff_ssl.objectives import target

ENCODER, PROJECTOR, PREDICTOR = (
  'encoder/conv/kernel',
  'projector/bias',
  'predictor/bias',
)
ONLINE = (ENCODER, PROJECTOR, PREDICTOR)
START = {ENCODER: (0.6, -0.4), PROJECTOR: (0.1, 0.2), PREDICTOR: (-0.3, 0.5)}
_SHAPES = {ENCODER: (1, 1, 1, 2), PROJECTOR: (2,), PREDICTOR: (2,)}


@dataclasses.dataclass(frozen=True)
class Follower(base.Objective):
  """The objective, with a state and networks that are shared or stay."""

  momentum: tf.Tensor | float = 0.5

  shared_prefixes = ('encoder', 'projector', 'predictor')
  local_prefixes = (target.TARGET,)

  def init(self, seed, dtype=tf.float32):
    del seed
    return collections.OrderedDict(
      (name, tf.reshape(tf.constant(START[name], dtype), _SHAPES[name]))
      for name in ONLINE
    )

  def init_state(self, params):
    return target.copy(params, ('encoder', 'projector'))

  def tied(self, is_tied):
    return dataclasses.replace(self, momentum=tf.where(is_tied, 0.0, self.momentum))

  def loss_with_state(self, params, state, examples, seed):
    del seed
    x = tf.reduce_mean(examples['image'], axis=[1, 2, 3])[:, tf.newaxis]
    aim = tf.concat([x**2, 1 - x], axis=1)
    e, p, q = (tf.reshape(params[name], [1, 2]) for name in ONLINE)
    e2, p2 = (
      tf.reshape(state[f'{target.TARGET}/{name}'], [1, 2])
      for name in (ENCODER, PROJECTOR)
    )
    distance = x * e + p + q - tf.stop_gradient(x * e2 + p2 + aim)
    total = 0.5 * tf.reduce_sum(distance**2)
    loss = tf.math.divide_no_nan(total, tf.cast(tf.shape(x)[0], tf.float32))
    return loss, collections.OrderedDict(), collections.OrderedDict()

  def after_step(self, params, state, carry):
    del carry
    return params, target.follow(state, params, self.momentum)


class Client:
  """One client in NumPy, float64."""

  def __init__(self, brightness, networks):
    """Takes the x of each example, and e, p, q, e', p' by name."""
    self._x = np.asarray(brightness, np.float64)[:, np.newaxis]
    self.networks = {name: np.array(value) for name, value in networks.items()}

  def train(self, epochs, rate, momentum):
    """Trains on all examples, a step an epoch."""
    x, w = self._x, self.networks
    for _ in range(epochs):
      aim = np.concatenate([x**2, 1 - x], axis=1)
      e2, p2 = w[f'target/{ENCODER}'], w[f'target/{PROJECTOR}']
      distance = x * w[ENCODER] + w[PROJECTOR] + w[PREDICTOR] - x * e2 - p2 - aim
      w[ENCODER] = w[ENCODER] - rate * np.mean(distance * x, axis=0)
      for name in (PROJECTOR, PREDICTOR):
        w[name] = w[name] - rate * np.mean(distance, axis=0)
      for name in (ENCODER, PROJECTOR):
        own = f'target/{name}'
        w[own] = momentum * w[own] + (1 - momentum) * w[name]


def begin(online):
  """Returns e, p, q and a target like them."""
  networks = {name: np.array(online[name], np.float64) for name in ONLINE}
  for name in (ENCODER, PROJECTOR):
    networks[f'target/{name}'] = networks[name].copy()
  return networks
