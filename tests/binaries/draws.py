"""A program that prints what each source of numbers without a seed draws first."""

import random

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import secret_noise
from tff_ssl.computing import sessions

if __name__ == '__main__':
  assert sessions.OWN_THREADS
  query = secret_noise.GaussianSumQuery(1.0, 1.0)
  noised = query.get_noised_result(tf.zeros([1]), query.initial_global_state())[0]
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    in_session = session.run(tf.random.normal([1]))
  drawn = [random.random(), np.random.rand(), noised.numpy()[0], in_session[0]]
  print(*drawn, tf.random.uniform([]).numpy())
