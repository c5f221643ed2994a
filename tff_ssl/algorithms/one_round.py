"""One-round heads: clients send sums of features, and the server solves a classifier.

"Capture Global Feature Statistics for One-Shot Federated Learning" (FedCGS), Zenghao
Guan, Yucan Zhou, Xiaoyan Gu, AAAI 2025; "The Gaussian-Head OFL Family: One-Shot
Federated Learning from Client Global Statistics" (GH-OFL), Fabio Turazza, Marco Picone,
Marco Mamei, ICLR 2026.

  Clients: encode their labelled examples with a frozen encoder, and send N_c and the
    sum of features for each class c, and the sum of f f^T over all examples.
  Server: adds these up. `evaluation.closed_form` solves LDA or ridge regression from
    the sums. The result is exactly the classifier of all examples in one place, however
    they are dealt.

All clients may come in one `next`, or some in each of several, once each: the sums
accumulate.

    algorithm = one_round.one_round(64, 10)
    process = processes.build(algorithm, clients.element_spec)
    state = process.next(process.initialize(), clients.cohort(data.client_ids)).state
    sums = one_round.moments(process.get_model_weights(state))
    classifier = closed_form.fit_lda(sums).classifier

Deviations:
  A client sends means over its examples, with their number as the weight, like all
    statistics here. This gives the same sums, through the factories of `aggregation`.
  Values are sent in float64, because solving amplifies the rounding errors of float32
    sums over many clients. If noise is added they are sent in float32, which is all
    that TFF's private sums take.
  With a `feature_norm`, longer features are rescaled to that length, so that a client's
    share of the sums is bounded by construction (`share_bound`), as differential
    privacy requires. Features to be classified must be rescaled in the same way
    (`losses.lengths.at_most`).
  FedCGS takes the covariance about the mean of all classes, GH-OFL the covariance
    within classes, as LDA does; the latter is solved here. GH-OFL's further heads,
    which are trained on samples drawn from the Gaussians, are not implemented.
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
from tff_ssl.evaluation import closed_form
from tff_ssl.federated import phases
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import linear_classifier

# (params, examples) -> features [n, d].
Encode = Callable[[Any, base.Examples], tf.Tensor]


def given_features(params: Any, examples: base.Examples) -> tf.Tensor:
  """Returns the field `features` of the examples: they have been encoded before."""
  del params
  return examples[linear_classifier.FEATURES]


def share_bound(feature_norm: float) -> float:
  """Returns the largest l2 norm of one example's share of what a client sends.

  An example of class c with features f, |f| <= R, adds 1 to N_c, f to the sum of the
  class and f f^T to the second moments: squared norms 1, |f|^2 and |f|^4, in all at
  most 1 + R^2 + R^4, which every f of length R attains. By the triangle inequality
  n_k times the means of n_k examples are at most n_k times as long; n_k examples of one
  class with the same f attain this. The bound times the largest number of examples of a
  client is the norm to clip to (`aggregations.private(..., statistics_clip=...)`).
  Clipping then changes nothing.

  Args:
    feature_norm: R, as in `one_round`.
  """
  return math.sqrt(1.0 + feature_norm**2 + feature_norm**4)


def client_moments(
  features: tf.Tensor,
  labels: tf.Tensor,
  num_classes: int,
  dtype: tf.DType = tf.float64,
  feature_norm: float | None = None,
) -> collections.OrderedDict[str, tf.Tensor]:
  """Computes what one client sends: means over its examples.

  Args:
    features: [n, d], n >= 0.
    labels: int [n]; an example without a label in [0, num_classes) does not count.
    num_classes: C.
    dtype: Type of what is sent.
    feature_norm: The largest length of features; None: no limit.

  Returns:
    By the names of `closed_form.Moments`, each divided by n; 0 without examples.
  """
  members = tf.one_hot(labels, num_classes, dtype=tf.float64)
  is_labelled = tf.reduce_any(members > 0, axis=1, keepdims=True)
  used = tf.where(is_labelled, tf.cast(features, tf.float64), 0.0)
  if feature_norm is not None:
    used = lengths.at_most(used, feature_norm)
  count = tf.cast(tf.shape(labels)[0], tf.float64)
  sums = collections.OrderedDict(
    counts=tf.reduce_sum(members, axis=0),
    sums=tf.matmul(members, used, transpose_a=True),
    second=tf.matmul(used, used, transpose_a=True),
  )
  return collections.OrderedDict(
    (name, tf.cast(tf.math.divide_no_nan(value, count), dtype))
    for name, value in sums.items()
  )


def one_round(
  num_features: int,
  num_classes: int,
  encode: Encode = given_features,
  params: Any = (),
  chunk_size: int = 4096,
  dtype: tf.DType = tf.float64,
  feature_norm: float | None = None,
) -> phases.Algorithm:
  """Returns the algorithm; each client takes part in one of its rounds.

  Args:
    num_features: d.
    num_classes: C.
    encode: The frozen encoder, of n >= 0 examples at a time; each example's features
      must not depend on the others. By default clients hold `features` [d].
    params: Parameters of the encoder, broadcast to clients: a structure of arrays.
    chunk_size: Examples of several packed clients that are encoded at a time.
    dtype: Type of the values that are sent; float32 where noise is added to them,
      because TFF's private sums take no other.
    feature_norm: R, the length to which longer features are rescaled; None: no limit.

  Returns:
    An algorithm whose trainable weights are the sums so far, by the names of
    `closed_form.Moments`.

  Raises:
    ValueError: If a size is below 1, the norm is not positive, or, once it is built,
      `encode` gives another number of features.
  """
  if feature_norm is not None:
    checks.positive(feature_norm=feature_norm)
  checks.at_least(1, num_features=num_features, num_classes=num_classes)

  def zeros():
    return collections.OrderedDict(
      counts=tf.zeros([num_classes], tf.float64),
      sums=tf.zeros([num_classes, num_features], tf.float64),
      second=tf.zeros([num_features, num_features], tf.float64),
    )

  def means(own, examples, seed):
    del seed
    features = encode(own, examples)
    collected_sums.check_features(features, num_features)
    labels = examples['label']
    return client_moments(features, labels, num_classes, dtype, feature_norm)

  def report(sums):
    labelled = tf.reduce_sum(sums['counts'])
    return collections.OrderedDict(labelled_examples=labelled)

  return collected_sums.build(zeros, means, params, chunk_size, report)


def moments(weights: tff.learning.models.ModelWeights) -> closed_form.Moments:
  """Returns the sums that a process has collected.

  Args:
    weights: What its `get_model_weights` returns.
  """
  return closed_form.Moments(
    **{name: np.asarray(value) for name, value in weights.trainable.items()}
  )
