"""A linear model whose training can be written out in NumPy.

With one weight per feature and squared error a step is linear, and steps on different
batches do not commute: the result tells which batches were taken, and in which order.
"""

import collections

import numpy as np
import tensorflow as tf

from tff_ssl.federated import local_training
from tff_ssl.objectives import base

RATE = 0.125
ELEMENT = collections.OrderedDict(
  x=tf.TensorSpec([2], tf.float32),
  y=tf.TensorSpec([], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
)
SEED = tf.constant([1, 2])


class LinearObjective(base.Objective):
  """Half the mean squared error of x w, reported with the mean of y."""

  def init(self, seed, dtype=tf.float32):
    del seed
    return collections.OrderedDict(w=tf.constant([0.5, -1.0], dtype))

  def loss(self, params, examples, seed):
    del seed
    x = tf.cast(examples['x'], params['w'].dtype)
    y = tf.cast(examples['y'], params['w'].dtype)
    n = tf.cast(tf.shape(y)[0], y.dtype)
    error = tf.linalg.matvec(x, params['w']) - y
    loss = tf.math.divide_no_nan(tf.reduce_sum(error**2) / 2, n)
    mean = tf.math.divide_no_nan(tf.reduce_sum(y), n)
    return loss, collections.OrderedDict(target=mean)


def examples(n, first_id=0):
  generator = np.random.default_rng(n)
  return collections.OrderedDict(
    x=generator.normal(size=(n, 2)),
    y=generator.normal(size=n),
    example_id=np.arange(first_id, first_id + n, dtype=np.int64),
  )


def clients(sizes):
  """Returns the examples of each client in float32, all ids different."""
  ends = np.cumsum(sizes)
  return [typed(examples(n, int(end) - n)) for n, end in zip(sizes, ends, strict=True)]


def typed(examples):
  """Returns examples in the types and the order of `ELEMENT`."""
  return collections.OrderedDict(
    (name, examples[name].astype(spec.dtype.as_numpy_dtype))
    for name, spec in ELEMENT.items()
  )


def train(plan, examples, seed=SEED, objective=None):
  objective = objective or LinearObjective()
  trained = tf.function(local_training.train, autograph=False)(
    objective,
    plan,
    objective.init(seed, tf.float64),
    tf.nest.map_structure(tf.constant, examples),
    seed,
    RATE,
  )
  metrics = {name: float(value) for name, value in trained.metrics.items()}
  return trained.params['w'].numpy(), metrics


def numpy_epoch(w, examples, order, batch_size):
  """Returns the weights after an epoch in a given order, and the mean loss."""
  total = 0.0
  for start in range(0, len(order), batch_size):
    rows = list(order[start : start + batch_size])
    x, y = examples['x'][rows], examples['y'][rows]
    error = x @ w - y
    total += (error**2).sum() / 2
    w = w - RATE * x.T @ error / len(rows)
  return w, total / len(order)


START = np.array([0.5, -1.0])
