"""Federated averaging by layers, weighted by the angle each has turned (L-DAWA).

"L-DAWA: Layer-wise Divergence Aware Weight Aggregation in Federated Self-Supervised
Visual Representation Learning", Yasar Abbas Ur Rehman, Yan Gao, Pedro Porto Buarque de
Gusmao, Mina Alibeigi, Jiajun Shen, Nicholas D. Lane, ICCV 2023.

A round:
  1. the server broadcasts the model, of layers x_l;
  2. client k trains as in FedAvg, to layers y_l. It computes cos_l, the cosine of the
     angle between x_l and y_l, and sends cos_l (x_l - y_l) and cos_l for every layer;
  3. the server divides the mean of the first by the mean of the second. The result is
     x_l minus the mean of all y_l weighted by their cos_l. To this the server applies
     its optimizer.
The server needs only the two sums: with secure sums it never sees the cosines of one
client.
With every cos_l replaced by 1 it is FedAvg.

Deviations:
  A layer is all tensors with the same name up to the last '/', such as a kernel and its
    bias; the authors' code takes each tensor by itself.
  cos_l multiplies the client's weight in FedAvg; the paper's weights are 'uniform'.
  Weights are divided by the sum of the cosines; the authors' code divides by the number
    of clients, so that a layer that turns shrinks. A server optimizer is given the
    difference, old minus new, as a gradient.
  If x_l or y_l is 0 there is no angle, and cos_l is 1: otherwise 0 would stay forever.
  A layer whose sum of cosines is not positive keeps its weights, whatever the server's
    momentum, as all layers do if no client counts.
"""

import collections
import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import phases
from tff_ssl.objectives import base


def cosines(x: base.Params, y: base.Params) -> base.Params:
  """Returns the cosine of the angle between two models' weights, by layer."""
  products: dict[str, list] = collections.defaultdict(list)
  for name, a in x.items():
    pairs = ((a, y[name]), (a, a), (y[name], y[name]))
    products[_layer(name)].append([tf.reduce_sum(a * b) for a, b in pairs])
  result = collections.OrderedDict()
  for layer, of_tensors in products.items():
    xy, xx, yy = tf.unstack(tf.reduce_sum(of_tensors, axis=0))
    cosine = xy / (tf.sqrt(xx) * tf.sqrt(yy))
    result[layer] = tf.where((xx > 0) & (yy > 0), cosine, tf.ones_like(cosine))
  return result


def _layer(name: str) -> str:
  return name.rpartition('/')[0] or name


def _by_layer(function, tensors, values):
  """Returns, by name, `function` applied to each tensor and its layer's value."""
  return collections.OrderedDict(
    (name, function(tensor, values[_layer(name)])) for name, tensor in tensors.items()
  )


def l_dawa(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns FedAvg with weighted layers; for the arguments see `fedavg.fedavg`."""
  training = training or fedavg.Training()
  plain = fedavg.fedavg(objective, server_optimizer, training)
  (train,) = plain.exchanges
  client = fedavg.client_function(objective, training)

  def client_fn(shared, examples):
    x, sent = shared['params'], client.client_fn(shared, examples)
    cos = cosines(x, tf.nest.map_structure(tf.subtract, x, sent['update']))
    update = _by_layer(tf.multiply, sent['update'], cos)
    return collections.OrderedDict(sent, update=update, cosines=cos)

  def receive(state, aggregated):
    cos = tf.nest.map_structure(tf.nn.relu, aggregated['cosines']['statistics'])
    update = _by_layer(tf.math.divide_no_nan, aggregated['update'], cos)
    after, metrics = train.receive(state, {**aggregated, 'update': update})
    old, new = state.global_model_weights, after.global_model_weights
    # An optimizer with momentum would also move layers whose update is 0.
    trainable = collections.OrderedDict(
      (name, tf.where(cos[_layer(name)] > 0, tensor, old.trainable[name]))
      for name, tensor in new.trainable.items()
    )
    weights = tff.learning.models.ModelWeights(trainable, new.non_trainable)
    return after._replace(global_model_weights=weights), metrics

  weighed = dataclasses.replace(
    client, client_fn=client_fn, mean_fn=None, per_client_fn=None
  )
  sent = {**train.sent, 'cosines': combine.STATISTICS}
  exchange = phases.Exchange('train', train.broadcast, weighed, sent, receive)
  return dataclasses.replace(plain, phases=[exchange])
