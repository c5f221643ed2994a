"""An objective whose gradient is known in each round: (round + 1) / total."""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.objectives import base


@dataclasses.dataclass(frozen=True)
class Warming(base.Objective):
  """w * (round + 1) / total, where it is told the round; else w. Without networks."""

  factor: tf.Tensor | float = 1.0

  def at(self, round, total):
    share = tf.cast(round + 1, tf.float32) / (total or 1)
    return dataclasses.replace(self, factor=share)

  def init(self, seed, dtype=tf.float32):
    del seed
    return collections.OrderedDict(w=tf.constant(2.0, dtype))

  def loss(self, params, examples, seed):
    del examples, seed
    return params['w'] * self.factor, collections.OrderedDict()
