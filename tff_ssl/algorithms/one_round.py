"""One-round heads: clients send sums of features, and the server solves a classifier.

"Capture Global Feature Statistics for One-Shot Federated Learning" (FedCGS), Zenghao
Guan, Yucan Zhou, Xiaoyan Gu, AAAI 2025; "The Gaussian-Head OFL Family: One-Shot
Federated Learning from Client Global Statistics" (GH-OFL), Fabio Turazza, Marco Picone,
Marco Mamei, ICLR 2026.

  Clients: encode their labelled examples by a frozen encoder, and send N_c and the sum
    of features for each class c, and the sum of f f^T over all of them.
  Server: adds them up. `evaluation.closed_form` solves LDA or ridge regression of the
    sums: the classifier of all examples in one place, exactly, however they are dealt.

All of the clients may come in one `next`, or some in each of several, once each: the
sums go on.

    process = one_round.build_one_round(64, 10, clients.element_spec)
    state = process.next(process.initialize(), clients.cohort(data.client_ids)).state
    found = one_round.moments(process.get_model_weights(state))
    classifier = closed_form.fit_lda(found).classifier

Deviations:
  What a client sends is its mean over examples, with their number as its weight, as all
    statistics here: the same sums, through the factories of `aggregation`.
  In float64: solving amplifies what sums of many clients in float32 round off. Where
    noise is added it is float32, all that TFF's private sums take.
  With a `feature_norm` features are rescaled to that length where they are longer, so
    that a client's share of the sums is bounded by construction (`share_bound`), as
    differential privacy wants it. What is classified is to be rescaled likewise
    (`losses.lengths.at_most`).
  FedCGS takes the covariance about the mean of all classes, GH-OFL that within them, as
    LDA has it: this is what is solved. GH-OFL's further heads, which are trained on
    samples drawn from the Gaussians, are not there.
"""

import collections
from collections.abc import Callable
import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import combine
from tff_ssl.computing import checks
from tff_ssl.evaluation import closed_form
from tff_ssl.federated import builder
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import linear

# (params, examples) -> features [n, d].
Encode = Callable[[Any, base.Examples], tf.Tensor]

_MOMENTS, _ENCODER = 'moments', 'encoder'


def given_features(params: Any, examples: base.Examples) -> tf.Tensor:
  """Returns the field `features` of the examples: they have been encoded before."""
  del params
  return examples[linear.FEATURES]


def share_bound(feature_norm: float) -> float:
  """Returns the largest l2 norm of one example's share of what a client sends.

  An example of class c with features f, |f| <= R, adds 1 to N_c, f to the sum of the
  class and f f^T to the second moments: squared norms 1, |f|^2 and |f|^4, in all at
  most 1 + R^2 + R^4, which every f of length R attains. By the triangle inequality
  n_k times the means of n_k examples are at most n_k times as long: n_k examples of one
  class with the same f attain it. This times the most examples of a client is the norm
  to clip to (`aggregation.private(..., statistics_clip=...)`), which then changes
  nothing.

  Args:
    feature_norm: R, as of `build_one_round`.
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
    labels: int [n]; an example without a label in [0, num_classes) counts nothing.
    num_classes: C.
    dtype: Of what is sent.
    feature_norm: Length of features at most; None: they stay.

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


def describe(
  num_features: int,
  num_classes: int,
  encode: Encode = given_features,
  params: Any = (),
  together: int = 4096,
  dtype: tf.DType = tf.float64,
  feature_norm: float | None = None,
) -> phases.Algorithm:
  """Describes the exchange; see `build_one_round`, and `dtype`: of what is sent."""
  if feature_norm is not None:
    checks.positive(feature_norm=feature_norm)
  checks.at_least(1, num_features=num_features, num_classes=num_classes)

  def initial():
    zeros = collections.OrderedDict(
      counts=tf.zeros([num_classes], tf.float64),
      sums=tf.zeros([num_classes, num_features], tf.float64),
      second=tf.zeros([num_features, num_features], tf.float64),
    )
    frozen = tf.nest.map_structure(tf.convert_to_tensor, params)
    return server.initial_state(server.as_weights(zeros), 0, **{_ENCODER: frozen})

  def broadcast(state):
    return collections.OrderedDict(
      seed=state.round_seed, **{_ENCODER: state.kept[_ENCODER]}
    )

  def client(shared, examples):
    features = encode(shared[_ENCODER], examples)
    if features.shape[1:] != [num_features]:
      raise ValueError(
        f'encode gives features {list(features.shape)}; they must be [n, {num_features}'
        '], as num_features says.'
      )
    labels = examples['label']
    sent = client_moments(features, labels, num_classes, dtype, feature_norm)
    return collections.OrderedDict([(_MOMENTS, sent)])

  def receive(state, arrived):
    mean = arrived[_MOMENTS]['statistics']
    count = tf.cast(arrived[_MOMENTS]['num_examples'], tf.float64)
    total = collections.OrderedDict(
      (name, before + count * tf.cast(mean[name], tf.float64))
      for name, before in state.global_model_weights.trainable.items()
    )
    labelled = tf.reduce_sum(total['counts'])
    return (
      server.with_params(state, total),
      {phases.FINALIZER: collections.OrderedDict(labelled_examples=labelled)},
    )

  function = client_functions.ClientFunction(client, additive=True, together=together)
  kinds = {_MOMENTS: combine.STATISTICS}
  return phases.Algorithm(
    initial, [phases.Exchange('collect', broadcast, function, kinds, receive)]
  )


def build_one_round(
  num_features: int,
  num_classes: int,
  element_spec: Any,
  encode: Encode = given_features,
  params: Any = (),
  aggregation: aggregation_lib.Aggregation | None = None,
  together: int = 4096,
  feature_norm: float | None = None,
) -> tff.learning.templates.LearningProcess:
  """Builds the process; each client takes part in one of its rounds.

  Args:
    num_features: d.
    num_classes: C.
    element_spec: `tf.TensorSpec`s of one example: what `encode` reads, `example_id`,
      `label`; or the `packs.PackSpec` of them.
    encode: The frozen encoder, of n >= 0 examples at a time; each example's features
      must not depend on the others. By default clients hold `features` [d].
    params: Of the encoder, which clients are told: a structure of arrays.
    aggregation: What everything that leaves a client goes through; plain when None.
    together: Examples of several packed clients that are encoded at a time.
    feature_norm: R, the length to which longer features are rescaled; None: they stay.

  Returns:
    A process whose trainable weights are the sums so far, by the names of
    `closed_form.Moments`.

  Raises:
    ValueError: If a size is below 1, the norm is not positive, the elements are not
      single examples with an `example_id`, or `encode` gives another number of
      features.
  """
  noised = aggregation is not None and aggregation.noised
  dtype = tf.float32 if noised else tf.float64
  return builder.build_learning_process(
    describe(num_features, num_classes, encode, params, together, dtype, feature_norm),
    element_spec,
    aggregation,
  )


def moments(weights: tff.learning.models.ModelWeights) -> closed_form.Moments:
  """Returns the sums that a process has collected.

  Args:
    weights: What its `get_model_weights` returns.
  """
  return closed_form.Moments(
    **{name: np.asarray(value) for name, value in weights.trainable.items()}
  )
