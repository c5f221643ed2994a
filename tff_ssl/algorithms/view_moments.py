"""The means from which the quality of an encoder follows, without a label.

`evaluation.signals` says which means these are, and what follows from them.

  Clients: encode two random views of each example with a frozen encoder, and send the
    means over their examples.
  Server: adds these up. The result is that of all examples in one place, however they
    are dealt.

All clients may come in one `next`, or some in each of several, once each; a client that
comes again counts again:

    algorithm = view_moments.view_moments(64)
    process = processes.build(algorithm, clients.element_spec, aggregation)
    state = process.next(process.initialize(), clients.cohort(data.client_ids)).state
    means = view_moments.moments(process.get_model_weights(state))
    numbers = signals.signals(means)

An example's share of a client's values is bounded by construction
(`signals.share_bound`): with `aggregations.secure(n, n)`, n the most examples of a
client, nothing is clipped, and neither is anything with `aggregations.private` and that
bound times n. Each such round is a release that a ledger must count; the signals then
need to know its noise (`moments`).

Deviations:
  Values are sent in float64, as in `one_round`; in float32 where noise is added.
"""

import collections
from collections.abc import Callable
import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import collected_sums
from tff_ssl.computing import checks
from tff_ssl.evaluation import signals
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.objectives import linear_classifier

# (params, examples, seed) -> features of two views of n examples, [n, d] each.
EncodeViews = Callable[[Any, base.Examples, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]

# What waves are sent over: they are then as long as the other means at most.
_WAVES = math.sqrt(signals.WAVES)


def given_views(
  params: Any, examples: base.Examples, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the halves of the field `features`: both views have been encoded before."""
  del params, seed
  first, second = tf.split(examples[linear_classifier.FEATURES], 2, axis=1)
  return first, second


def client_moments(
  first: tf.Tensor, second: tf.Tensor, dtype: tf.DType = tf.float64
) -> collections.OrderedDict[str, tf.Tensor]:
  """Computes what one client sends: means over its examples.

  Args:
    first: [n, d], features of the first views; n >= 0.
    second: [n, d], of the second views.
    dtype: Type of what is sent.

  Returns:
    By the names of `signals.Moments`, without the count; waves over sqrt(m). 0 without
    examples.
  """
  z, other = (_of_length_one(tf.cast(each, tf.float64)) for each in (first, second))
  angles = tf.matmul(z, tf.constant(signals.frequencies(z.shape[1])))
  waves = tf.concat([tf.cos(angles), tf.sin(angles)], axis=1) / _WAVES
  cross = tf.matmul(z, other, transpose_a=True)
  sums = collections.OrderedDict(
    mean=tf.reduce_sum(z + other, axis=0) / 2,
    second=(
      tf.matmul(z, z, transpose_a=True) + tf.matmul(other, other, transpose_a=True)
    )
    / 2,
    cross=(cross + tf.transpose(cross)) / 2,
    waves=tf.reduce_sum(waves, axis=0),
    traces=tf.stack(
      [tf.reduce_sum(z * z + other * other) / 2, tf.reduce_sum(z * other)]
    ),
  )
  count = tf.cast(tf.shape(z)[0], tf.float64)
  return collections.OrderedDict(
    (name, tf.cast(tf.math.divide_no_nan(value, count), dtype))
    for name, value in sums.items()
  )


def _of_length_one(features: tf.Tensor) -> tf.Tensor:
  """Returns features of length 1; those of length 0 have no direction and stay."""
  return tf.math.divide_no_nan(features, tf.norm(features, axis=1, keepdims=True))


def view_moments(
  num_features: int,
  encode: EncodeViews = given_views,
  params: Any = (),
  chunk_size: int = 4096,
  dtype: tf.DType = tf.float64,
) -> phases.Algorithm:
  """Returns the algorithm; each client takes part in one of its rounds.

  Args:
    num_features: d.
    encode: The frozen encoder, of two views of n >= 0 examples at a time; each
      example's features must not depend on the others. By default clients hold
      `features` [2 d], those of both views.
    params: Parameters of the encoder, broadcast to clients: a structure of arrays.
    chunk_size: Examples of several packed clients that are encoded at a time.
    dtype: Type of the values that are sent; float32 where noise is added to them.

  Returns:
    An algorithm whose trainable weights are sums so far, by the names of
    `signals.Moments`.

  Raises:
    ValueError: If `num_features` is below 1, or, once it is built, `encode` gives
      another number of features.
  """
  checks.at_least(1, num_features=num_features)
  d, sent_waves = num_features, 2 * signals.WAVES
  shapes = {'mean': [d], 'second': [d, d], 'cross': [d, d], 'waves': [sent_waves]}
  shapes['traces'] = [2]

  def zeros():
    found = collections.OrderedDict([(collected_sums.COUNT, tf.zeros([], tf.float64))])
    found.update((name, tf.zeros(shape, tf.float64)) for name, shape in shapes.items())
    return found

  def means(own, examples, seed):
    features = encode(own, examples, seed)
    for each in features:
      collected_sums.check_features(each, num_features)
    return client_moments(*features, dtype)

  return collected_sums.build(zeros, means, params, chunk_size)


def moments(
  weights: tff.learning.models.ModelWeights, deviation: float = 0.0
) -> signals.Moments:
  """Returns the means over all examples of what a process has collected.

  Args:
    weights: What its `get_model_weights` returns.
    deviation: Standard deviation of the noise in each entry of the sums.

  Raises:
    ValueError: If fewer than two examples have been collected.
  """
  sums = {name: np.asarray(value) for name, value in weights.trainable.items()}
  count = float(sums.pop(collected_sums.COUNT))
  if count < 2:
    raise ValueError(
      f'{count:g} examples have been collected; the signals need at least two.'
    )
  sums['waves'] = _WAVES * sums['waves']
  mean, second, cross, waves, traces = (
    sums[name] / count for name in ('mean', 'second', 'cross', 'waves', 'traces')
  )
  found = signals.Moments(count, mean, second, cross, waves)
  if not deviation:
    # Then the traces follow from the matrices.
    return found
  return found._replace(deviation=deviation / count, traces=traces)
