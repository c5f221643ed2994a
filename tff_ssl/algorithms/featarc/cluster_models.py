"""Several models at the server; each client trains one of them: FeatARC's clusters.

The models are one stack, each tensor [C, ...], in the model weights under the prefix
`CLUSTERS`, with the population statistics of batch norm. Next to the stack are the
parameters of the model that is reported. A client puts what it sends in the slot of its
cluster, with zeros in the others, so that one mean, secure or in packs, serves all
clusters.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import dual_encoder

# The first part of the names of all cluster models.
CLUSTERS = 'clusters'
# What a client reports about its choice.
CLIENTS, WEIGHT, SWITCHES = 'clients', 'weight', 'switches'


def models(weights: Mapping[str, Any]) -> collections.OrderedDict[str, base.Params]:
  """Returns the cluster models by name, 'cluster_0' and so on.

  Args:
    weights: The process's model weights, trainable or not.

  Returns:
    The parameters of each model and, with batch norm, its statistics.
  """
  stacked = parameter_names.select(weights, CLUSTERS)
  count = len(next(iter(stacked.values())))
  return collections.OrderedDict(
    (cluster_name(j), cluster_at(stacked, j)) for j in range(count)
  )


def encoder_of(objective: base.Objective) -> network.Network:
  """Returns the encoder by whose features clusters are chosen.

  Args:
    objective: Objective of the models.

  Raises:
    ValueError: If it has no network of that name.
  """
  networks = objective.networks
  if dual_encoder.ENCODER not in networks:
    raise ValueError(
      f'The objective is a {type(objective).__name__} with the networks '
      f'{", ".join(networks) or "none"}; clusters need one named '
      f'{dual_encoder.ENCODER!r}.'
    )
  return networks[dual_encoder.ENCODER]


def distances(
  encoder: network.Network,
  clusters: Sequence[base.Params],
  own: base.Params,
  inputs: tf.Tensor,
) -> tf.Tensor:
  """Returns mean_x D(f_j(x), f_k(x)) for each cluster j, float32 [C]; 0 for n = 0.

  Args:
    encoder: f.
    clusters: Parameters and statistics of the encoder of each cluster model.
    own: Those of the client's local model.
    inputs: n >= 0 unaugmented images.
  """
  count, size = tf.shape(inputs)[0], encoder.batch_in_cache()

  def body(start, total):
    x = augment.to_float(inputs[start : start + size])
    features = encoder.infer(own, x)
    negative_cosines = [
      similarity.negative_cosine(encoder.infer(params, x), features)
      for params in clusters
    ]
    examples = tf.cast(tf.shape(x)[0], tf.float32)
    return start + size, total + examples * tf.cast(
      tf.stack(negative_cosines), tf.float32
    )

  _, total = tf.while_loop(
    lambda start, _: start < count,
    body,
    (tf.constant(0), tf.zeros([len(clusters)])),
    # One batch after another: in parallel they would need the memory of all.
    parallel_iterations=1,
  )
  return tf.math.divide_no_nan(total, tf.cast(count, tf.float32))


def choice_counts(
  cluster: tf.Tensor, count: int, weight: tf.Tensor, switched: tf.Tensor
) -> collections.OrderedDict[str, tf.Tensor]:
  """Returns what a client reports about its choice: integers that the server sums.

  Args:
    cluster: int32 scalar.
    count: C.
    weight: Weight of the client, a whole number.
    switched: 1 if the client has changed its cluster.
  """
  member = tf.one_hot(cluster, count, dtype=tf.int32)
  return collections.OrderedDict(
    [
      (CLIENTS, member),
      (WEIGHT, member * tf.cast(tf.round(weight), tf.int32)),
      (SWITCHES, tf.cast(switched, tf.int32)),
    ]
  )


def cluster_name(j: int) -> str:
  """Returns the name of cluster j."""
  return f'cluster_{j}'


def cluster_at(stacked: Mapping[str, Any], j: Any) -> base.Params:
  """Returns the model at a place in a stack.

  Args:
    stacked: Tensors [C, ...] by name.
    j: The place, an integer or a tensor.
  """
  return collections.OrderedDict((key, value[j]) for key, value in stacked.items())


def cluster_mean(
  values: Mapping[str, tf.Tensor], j: int, scale: tf.Tensor
) -> base.Params:
  """Returns the mean over a cluster's clients, from the mean over all clients.

  Args:
    values: Means by name, [C, ...].
    j: Number of the cluster.
    scale: The weight of all clients divided by that of the cluster's clients.
  """
  return collections.OrderedDict(
    (key, x[j] * tf.cast(scale, x.dtype)) for key, x in values.items()
  )


def all_weights(weights: tff.learning.models.ModelWeights) -> base.Params:
  """Returns all model weights, trainable or not."""
  return collections.OrderedDict(**weights.trainable, **weights.non_trainable)


def stack_of(weights: tff.learning.models.ModelWeights) -> base.Params:
  """Returns all cluster models, with their statistics."""
  return parameter_names.select(weights.non_trainable, CLUSTERS)


def reported_of(weights: tff.learning.models.ModelWeights) -> base.Params:
  """Returns the model that is reported, with its statistics."""
  return collections.OrderedDict(
    (key, value)
    for key, value in all_weights(weights).items()
    if parameter_names.prefix_of(key) != CLUSTERS
  )


def weights_of(
  objective: base.Objective,
  reported: base.Params,
  stacked: base.Params,
) -> tff.learning.models.ModelWeights:
  """Returns the model weights of a process.

  Args:
    objective: Objective of the models.
    reported: Parameters and statistics of the model that is reported.
    stacked: All cluster models.
  """
  params = batch_norm_statistics.without_statistics(objective, reported)
  others = collections.OrderedDict(
    (key, value) for key, value in reported.items() if key not in params
  )
  others.update(parameter_names.with_prefix(stacked, CLUSTERS))
  return tff.learning.models.ModelWeights(params, others)
