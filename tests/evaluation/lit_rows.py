"""Images of 4 x 4 pixels whose class is the row that is lit, and an encoder of them."""

import collections

import numpy as np
import tensorflow as tf

from tff_ssl.evaluation import fine_tuning


def apply(params, images):
  """One linear layer, bounded."""
  pixels = tf.reshape(images, [tf.shape(images)[0], 16])
  return tf.tanh(tf.matmul(pixels, params['kernel']))


def params(scale=1.0):
  """Returns the parameters of `apply`, of six features."""
  kernel = np.random.default_rng(7).normal(size=[16, 6]) * scale
  return collections.OrderedDict(kernel=tf.constant(kernel, tf.float32))


def tuned(*examples, config, search=None, seed=0, **cases):
  """Returns `apply` with a head of three classes, fine-tuned."""
  run = fine_tuning.FineTuning(apply, 3, config, search=search)
  return run(params(), *examples, seed=seed, **cases)


def images(labels, random):
  """Class c lights row c, which no flip from left to right changes."""
  count = len(labels)
  lit = random.integers(0, 60, [count, 4, 4, 1])
  lit[np.arange(count), labels] += 150
  return lit.astype(np.uint8)


def of_drawn_labels(count, seed):
  """Returns images, and their labels of three classes, drawn before them."""
  random = np.random.default_rng(seed)
  labels = random.integers(0, 3, [count])
  return images(labels, random), labels.astype(np.int32)
