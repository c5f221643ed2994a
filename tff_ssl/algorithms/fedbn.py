"""FedBN: federated averaging of everything but batch norm, which stays on the client.

Xiaoxiao Li, Meirui Jiang, Xiaofei Zhang, Michael Kamp, Qi Dou. FedBN: Federated
Learning on Non-IID Features via Local Batch Normalization. ICLR 2021, Algorithm 1.

A round:
  1. the server broadcasts the model, which has no batch norm parameters;
  2. client k inserts its own scales and shifts from its last participation, trains for
     E epochs, sends the update of all other weights, and keeps scales, shifts and its
     population statistics;
  3. the server averages the updates weighted by n_k and applies its optimizer.

With one client it is FedAvg. Networks without batch norm are refused: with them it
would be FedAvg.

Deviations and decisions:
  Population statistics are those of a client's images after its training (see
    `encoders.population`), not moving averages.
  The state of the objective (BYOL's target) starts afresh each round, as in `fedavg`.
  The model that a run evaluates, which no client has, takes the means of its clients'
    batch norm parameters and statistics. Only a simulation can see these: they never
    reach the server.
"""

import collections
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import stateful_averaging
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics


class Kept(NamedTuple):
  """What stays on the client.

  Attributes:
    params: Its scales and shifts, by name.
    statistics: Its population statistics, by name.
  """

  params: base.Params
  statistics: base.State


class _Names:
  """Which parameters of an objective are shared, and which are batch norm's."""

  def __init__(self, objective: base.Objective):
    self._local = frozenset(batch_norm_statistics.batch_norm_names(objective))

  def shared(self, params: base.Params) -> base.Params:
    return collections.OrderedDict(
      (name, value) for name, value in params.items() if name not in self._local
    )

  def local(self, params: base.Params) -> base.Params:
    return collections.OrderedDict(
      (name, value) for name, value in params.items() if name in self._local
    )


def assemble(
  objective: base.Objective,
  shared: base.Params,
  kept: Sequence[Kept],
) -> tff.learning.models.ModelWeights:
  """Returns the model with the mean of what some clients keep.

  Args:
    objective: What is minimised.
    shared: The server's parameters.
    kept: Values of each client; if empty, batch norm's initial values are taken.

  Returns:
    All parameters in the objective's order, and population statistics.
  """
  initial = server.initial_weights(objective, 0)
  own = kept or [
    Kept(_Names(objective).local(initial.trainable), initial.non_trainable)
  ]
  mean = tf.nest.map_structure(lambda *values: np.mean(values, axis=0), *own)
  every = {**shared, **mean.params}
  return tff.learning.models.ModelWeights(
    collections.OrderedDict((name, every[name]) for name in initial.trainable),
    mean.statistics,
  )


def client_function(
  objective: base.Objective, training: fedavg.Training
) -> client_functions.StatefulFunction:
  """Builds step 2: training with the client's own batch norm.

  Args:
    objective: What is minimised.
    training: How a client trains, and how clients are weighted.

  Returns:
    A function that keeps `Kept`, and sends the update of all other weights.
  """
  names = _Names(objective)

  def first(shared):
    del shared  # The first scales and shifts are the same for all, and are not sent.
    initial = server.initial_weights(objective, training.seed)
    return Kept(names.local(initial.trainable), initial.non_trainable)

  def client_fn(shared, state, examples):
    params = collections.OrderedDict(shared['params'])
    params.update(state.kept.params)
    trained = local_training.train(
      fedavg.in_round(objective, shared, training),
      training.clients,
      params,
      examples,
      shared['seed'],
      shared['rate'],
      own=True,
    )
    update = tf.nest.map_structure(
      tf.subtract, shared['params'], names.shared(trained.params)
    )
    sent = collections.OrderedDict(
      [(server.UPDATE, update), (server.METRICS, trained.metrics)]
    )
    statistics = batch_norm_statistics.compute(objective, trained.params, examples)
    return sent, Kept(names.local(trained.params), statistics)

  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def fedbn(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns FedBN over an objective.

  Args:
    objective: What a client minimises, with batch norm in its networks.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    training: How clients train; the defaults when None.

  Returns:
    An algorithm whose model weights lack batch norm (see `assemble`) and whose metrics
    are, under `client_work`, those of `fedavg.fedavg`.

  Raises:
    ValueError: If the networks have no batch norm.
  """
  training = training or fedavg.Training()
  if not batch_norm_statistics.mixes_examples(objective):
    raise ValueError(
      'FedBN is given networks without batch norm; it needs networks with batch norm, '
      'which it keeps on the client.'
    )
  names = _Names(objective)

  def initial():
    weights = server.initial_weights(objective, training.seed)
    shared = tff.learning.models.ModelWeights(names.shared(weights.trainable), ())
    return server.initial_state(shared, training.seed, server_optimizer)

  def evaluated(weights, kept):
    return assemble(objective, weights.trainable, kept)

  algorithm = stateful_averaging.stateful(
    objective,
    server_optimizer,
    training,
    client_function(objective, training),
    initial,
    server.sent_kinds(),
  )
  return dataclasses.replace(algorithm, evaluated=evaluated)
