"""Federated averaging with uniform and unified representations (FedU2).

Xinting Liao, Weiming Liu, Chaochao Chen, Pengyang Zhou, Fengyuan Yu, Huabin Zhu, Binhui
Yao, Tao Wang, Xiaolin Zheng, Yanchao Tan. Rethinking the Representation in Federated
Unsupervised Learning with Non-IID Data. CVPR 2024.

A round:
  1. the server broadcasts the model;
  2. client k trains it for E epochs on L_ssl plus lambda times the flexible uniform
     regulariser (`objectives.dispersed`), keeps its update g_k (initial minus final
     weights) on the device, and sends a sketch of it;
  3. the server computes the inner products of all g_k from the sketches, and from these
     the weights a_k of the efficient unified aggregator: moving by d = sum a_k g_k
     lowers all clients' squared deviations from the global model at one relative rate,
     the largest possible (`optimization.common_descent`). It broadcasts them;
  4. client k sends a_k g_k. The server applies its optimizer to their sum.

With lambda = 0 and the weights n_k / n (`unified` is False) it is FedAvg. With updates
that are orthogonal to each other it is FedAvg whose clients count equally.

A sketch of s numbers adds up the entries of g_k, each with a random sign, in s random
places, the same for all clients of a round; its inner products are those of the
updates, in the mean, with an error of about |g_j| |g_k| sqrt(2 / s). If s is not
smaller than the model, the sketch is the update itself and the weights are exact.

What it gives away: the sketches, and so how the updates of two clients lie to each
other, each with the number of its client. No sum can hide them, and with noise as
large as a client they would say nothing: an aggregation that adds noise is refused. The
updates themselves are in a sum, which may be secure.

Deviations and decisions, because of the paper only the abstract and the authors' code
are known here:
  The code's server has all clients' weights. Here it has sketches and a sum: nothing as
    large as a model leaves a client by itself. That takes a second exchange in which
    clients do not train.
  The code solves for the shortest combination of the g_k, each divided by its length.
    Here each is divided by the square of its length, because that is the gradient of
    the relative rate by which |g_k|^2 falls.
  The code's server makes a step as long as that combination, whatever the lengths of
    the updates. Here the weights of the updates sum to 1, as those of FedAvg do.
  Batch norm's statistics and metrics are averaged by n_k, as in FedAvg.
  The state of the objective (BYOL's target) starts afresh each round, as in `fedavg`.
  Bytes: a client sends the sketch and its number, and one update; it receives the model
    and the weights of all clients.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.federated import update_lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dispersed
from tff_ssl.optimization import common_descent
from tff_ssl.settings import methods

SKETCH, WEIGHTS = 'sketch', 'weights'
_ROWS, _FILLED = 'rows', 'filled'
# Folded into the round's seed, which no epoch and no example has.
_PLACES, _SIGNS = -2, -3


def sketch(update: base.Params, seed: tf.Tensor, size: int) -> tf.Tensor:
  """Returns a sketch of an update, float32 [min(size, entries)].

  Args:
    update: Tensors by name.
    seed: int32 [2]; sketches of one seed have the inner products of what they sketch.
    size: s.

  Source: Charikar, Chen, Farach-Colton, "Finding frequent items in data streams", 2002.
  """
  flat = tf.concat([tf.reshape(value, [-1]) for value in update.values()], axis=0)
  if size >= flat.shape[0]:
    return flat
  places, signs = (
    tf.random.stateless_uniform(
      flat.shape,
      tf.random.experimental.stateless_fold_in(seed, name),
      maxval=most,
      dtype=tf.int32,
    )
    for name, most in ((_PLACES, size), (_SIGNS, 2))
  )
  signed = flat * (2.0 * tf.cast(signs, flat.dtype) - 1.0)
  return tf.math.unsorted_segment_sum(signed, places, size)


def _train(
  objective: base.Objective,
  settings: methods.FedU2,
  training: fedavg.Training,
  population: int,
) -> client_functions.StatefulFunction:
  """Builds step 2.

  Args:
    objective: What a client minimises.
    settings: Size of the sketch.
    training: How a client trains, and how clients are weighted.
    population: N, the number of all clients.

  Returns:
    A function that sends the `sketch`, in its client's row of a table [N, s] that says
    which rows are filled, and the `metrics`. It keeps the `update` and, with batch
    norm, the `statistics`.
  """
  plain = fedavg.client_function(objective, training)

  def client_fn(shared, state, examples):
    del state
    kept = collections.OrderedDict(plain.client_fn(shared, examples))
    metrics = kept.pop(server.METRICS)
    own = sketch(kept[server.UPDATE], shared['seed'], settings.sketch_size)
    place = contextual.place_of(examples, population)
    table = collections.OrderedDict(
      [(_ROWS, contextual.in_row(own, place)), (_FILLED, place)]
    )
    return collections.OrderedDict([(SKETCH, table), (server.METRICS, metrics)]), kept

  first = _nothing(objective)
  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def _send(
  objective: base.Objective, training: fedavg.Training, population: int
) -> client_functions.StatefulFunction:
  """Builds step 4: a function that sends what `_train` has kept, weighted."""

  def client_fn(shared, state, examples):
    place = contextual.place_of(examples, population)
    weight = tf.reduce_sum(place * shared[WEIGHTS])
    # A client that was discarded has kept an earlier update. It is discarded again.
    trained = tf.equal(state.last_round, shared['round'])
    weight = tf.where(trained, weight, tf.constant(np.nan))
    sent = collections.OrderedDict(state.kept)
    sent[server.UPDATE] = tf.nest.map_structure(
      lambda x: tf.cast(weight, x.dtype) * x, sent[server.UPDATE]
    )
    return sent, state.kept

  first = _nothing(objective)
  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def _nothing(objective: base.Objective) -> Callable[[client_functions.Shared], Any]:
  """Returns the function to what a client has kept before it has trained."""

  def first(shared):
    params = collections.OrderedDict(shared['params'])
    kept = collections.OrderedDict([(server.UPDATE, params)])
    if statistics := batch_norm_statistics.initial(objective):
      kept[server.STATISTICS] = statistics
    return tf.nest.map_structure(tf.zeros_like, kept)

  return first


def fedu2(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: methods.FedU2,
  training: fedavg.Training,
  population: int,
) -> phases.Algorithm:
  """Returns FedU2; elements have an int32 `client`, the number in [0, N) of the client.

  Args:
    objective: L_ssl; with lambda above 0 one that `objectives.outputs.check` allows.
    server_optimizer: Applied to the weighted sum; SGD at rate 1.0 is the authors'.
    settings: Of the regulariser and of the unified aggregator.
    training: How a client trains, how clients are weighted, and the seed.
    population: N, the number of all clients.

  Returns:
    The algorithm. Its metrics are, under `client_work`, those of `fedavg.fedavg`; with
    lambda above 0 the parts of the loss, `ssl_loss` and `dispersion`; and
    `largest_weight`, of a client in the sum. Outlying clients are counted by the
    lengths of their sketches.

  Raises:
    ValueError: If the objective's projections are not known.
  """
  if settings.uniformity_weight:
    objective = dispersed.DispersedObjective(
      objective, settings.uniformity_weight, tau=settings.tau
    )
  plain = fedavg.fedavg(objective, server_optimizer, training)
  if not settings.unified:
    return plain

  def initial():
    return plain.initial().with_extra(**{WEIGHTS: tf.zeros([population])})

  def broadcast(state):
    rate = training.rate(state.round)
    return phases.model(state, rate=rate, round=state.round)

  def weigh(state, aggregated):
    table, measured = aggregated[SKETCH], aggregated[server.METRICS]
    # Of the clients that sent rows alone: all may be a hundred times as many.
    filled = tf.where(contextual.is_filled(table[_FILLED]))
    sketches = tf.gather_nd(table[_ROWS], filled)
    weights = tf.scatter_nd(
      filled,
      common_descent.weights(tf.matmul(sketches, sketches, transpose_b=True)),
      [population],
    )
    work = server.report(measured['statistics'], objective.summarize)
    work['largest_weight'] = tf.reduce_max(weights)
    # Where nobody has trained nothing was measured.
    nothing = tf.equal(measured['num_examples'], 0)
    work = tf.nest.map_structure(lambda x: tf.where(nothing, np.nan, x), work)
    lengths = update_lengths.histogram(tf.reduce_sum(tf.square(sketches), axis=1))
    work[update_lengths.OUTLYING] = update_lengths.outlying(lengths)
    return state.with_extra(**{WEIGHTS: weights}), {phases.CLIENT_WORK: work}

  def receive(state, aggregated):
    state, measured = server.apply(server_optimizer, state, aggregated)
    return state, {phases.FINALIZER: measured}

  sent = fedavg.sent_kinds(objective)
  del sent[server.METRICS]
  exchanges = [
    phases.Exchange(
      'train',
      broadcast,
      _train(objective, settings, training, population),
      {SKETCH: combine.Sum(population), server.METRICS: combine.STATISTICS},
      weigh,
    ),
    phases.Exchange(
      'send',
      lambda state: {WEIGHTS: state.extra[WEIGHTS]},
      _send(objective, training, population),
      {**sent, server.UPDATE: combine.Sum()},
      receive,
    ),
  ]
  return dataclasses.replace(
    plain,
    initial=initial,
    phases=exchanges,
    client_numbers=[contextual.CLIENT],
    keeps_table=True,
  )
