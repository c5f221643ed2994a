"""Clients that mix their online networks with the global ones: FedEMA's framework.

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022, section 4. `fedema` and `fedu` each define an `OnlineUpdate`,
which says what share of its own networks a client keeps. `fedema` describes the round.
Two things may be added to it: a threshold that follows the divergences, and an exchange
in which new clients set their lambda.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import stateful_averaging
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.algorithms.divergence_aware import running_quantile
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.settings import personal

_NETWORKS, _STATISTICS = 'networks', 'statistics'
MU, DIVERGENCE, LAMBDA = 'mu', 'divergence', 'lambda'
_RETURNING, _BELOW, THRESHOLD = 'returning', 'below', 'threshold'
_MOVED = 'moved'
# What the server keeps and broadcasts in the second exchange; how many clients are new.
_AVERAGED, _NEW = 'averaged', 'new'


class Shares(NamedTuple):
  """Which shares of its own networks a client keeps; float32 scalars.

  Attributes:
    encoder: mu of encoder and projector, in [0, 1].
    predictor: mu of the predictor.
    scaler: lambda_k, which the client keeps; 0: none is set yet.
  """

  encoder: tf.Tensor
  predictor: tf.Tensor
  scaler: tf.Tensor


@dataclasses.dataclass(frozen=True)
class OnlineUpdate:
  """How a client mixes its online networks with the global ones.

  Attributes:
    shares: (divergence; lambda_k so far, 0 before one is set; the values that were
      broadcast) -> `Shares`.
    norm: Norm of the divergence, one of `online_networks.NORMS`.
    has_scaler: Whether lambda_k means anything, and is reported.
    quantile: Quantile of the divergences, broadcast as `threshold`; None: there is
      none.
    first_scaler: Divergence -> lambda_k, set by a second exchange in the round of a
      client's first training; None: there is no second exchange.
    divergence_of: 'global', from the networks
      that the client kept after its last participation to the global ones; 'training',
      from its networks before its last training to those after it.
  """

  shares: Callable[[tf.Tensor, tf.Tensor, client_functions.Shared], Shares]
  norm: str
  has_scaler: bool
  quantile: running_quantile.RunningQuantile | None = None
  first_scaler: Callable[[tf.Tensor], tf.Tensor] | None = None
  divergence_of: str = online_networks.GLOBAL

  @property
  def reported(self) -> tuple[str, ...]:
    """What is reported of each client, by name."""
    return (MU, DIVERGENCE, LAMBDA) if self.has_scaler else (MU, DIVERGENCE)

  @property
  def kept(self) -> tuple[str, ...]:
    """The names of the numbers that a client keeps."""
    moved = (_MOVED,) if self.divergence_of == online_networks.TRAINING else ()
    return (MU, DIVERGENCE, LAMBDA, _RETURNING, *moved)


def client_function(
  networks: online_networks.Networks,
  training: fedavg.Training,
  update: OnlineUpdate,
) -> client_functions.StatefulFunction:
  """Builds steps 2 and 3.

  Args:
    networks: A client's networks, and which of them the global ones replace.
    training: How a client trains, and how clients are weighted.
    update: How the online networks are mixed with the global ones.

  Returns:
    A function that sends the `update` (global minus own networks) and `metrics`: those
    of the objective, and those that `summarize` takes. It keeps all networks, the
    numbers that `numbers_of_client` reads and, with batch norm, the population
    statistics of the online encoder.
  """
  measure = online_networks.NORMS[update.norm]

  def client_fn(shared, state, examples):
    received, own = shared['params'], state.kept[_NETWORKS]
    is_new = state.last_round < 0
    divergence = (
      state.kept[_MOVED]
      if update.divergence_of == online_networks.TRAINING
      else measure(networks.measured(received), own)
    )
    shares = update.shares(divergence, state.kept[LAMBDA], shared)
    # 0 * own + 1 * global is the global network, bit for bit.
    encoder, predictor = (
      tf.where(is_new, 0.0, share) for share in (shares.encoder, shares.predictor)
    )
    mixed = networks.receive(received, own, encoder, predictor)
    minimised = fedavg.in_round(networks.objective, shared, training)
    trained = local_training.train(
      networks.in_round(minimised, is_new),
      training.clients,
      networks.params(mixed),
      examples,
      shared['seed'],
      shared['rate'],
      networks.state(mixed),
      own=True,
    )
    after = networks.joined(trained.params, trained.state)
    kept = collections.OrderedDict(
      [
        (_NETWORKS, after),
        (MU, tf.maximum(encoder, predictor)),
        (DIVERGENCE, tf.where(is_new, 0.0, divergence)),
        (LAMBDA, tf.where(is_new, state.kept[LAMBDA], shares.scaler)),
        (_RETURNING, tf.where(is_new, 0.0, 1.0)),
      ]
    )
    if update.divergence_of == online_networks.TRAINING:
      kept[_MOVED] = measure(networks.measured(mixed), after)
    metrics = collections.OrderedDict(trained.metrics)
    # A new client has measured nothing.
    for name in (*update.reported, _RETURNING):
      metrics[name] = kept[name] * kept[_RETURNING]
    if update.quantile is not None:
      is_below = tf.cast(divergence < shared[THRESHOLD], tf.float32)
      metrics[_BELOW] = is_below * kept[_RETURNING]
    sent = fedavg.sent(
      shared, networks.objective, networks.sent(after), metrics, examples
    )
    kept[_STATISTICS] = (
      sent.get(server.STATISTICS, collections.OrderedDict())
      if networks.sends_online
      else batch_norm_statistics.compute(networks.objective, after, examples)
    )
    return sent, kept

  first = _first(networks, update)
  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def _first(
  networks: online_networks.Networks, update: OnlineUpdate
) -> Callable[[client_functions.Shared], Any]:
  """Returns the function that builds the state of a new client."""

  def first(shared):
    kept = collections.OrderedDict([(_NETWORKS, networks.begin(shared['params']))])
    kept.update((name, tf.zeros([])) for name in update.kept)
    kept[_STATISTICS] = batch_norm_statistics.initial(networks.objective)
    return kept

  return first


def personal_model(
  weights: base.Params, state: client_states.ClientState
) -> base.Params:
  """Returns a client's own model: its networks and, with batch norm, the statistics."""
  if state.last_round == client_states.NEVER:
    return weights
  return collections.OrderedDict(**state.kept[_NETWORKS], **state.kept[_STATISTICS])


def summarize(
  objective: base.Objective, update: OnlineUpdate
) -> Callable[[base.Metrics], base.Metrics]:
  """Returns the function that turns averaged metrics into those of a round.

  Args:
    objective: Summarizes its own metrics.
    update: Says what else is reported: means over the returning clients (those that are
      not new), weighted as the updates are; 0 if all clients are new. `returning` is
      the returning clients' share of the weight. With a running quantile, `below` is
      the share of them below it.
  """

  def summarize(metrics: base.Metrics) -> base.Metrics:
    rest = collections.OrderedDict(metrics)
    returning = rest.pop(_RETURNING)
    names = [*update.reported, *([_BELOW] if update.quantile is not None else [])]
    means = collections.OrderedDict(
      (name, tf.math.divide_no_nan(rest.pop(name), returning)) for name in names
    )
    summary = objective.summarize(rest)
    summary.update(means)
    summary[_RETURNING] = returning
    return summary

  return summarize


def numbers_of_client(
  update: OnlineUpdate,
) -> Callable[[Any], Mapping[str, float | None]]:
  """Returns the function that reads mu, divergence and lambda_k of a client.

  Args:
    update: The algorithm's.
  """

  def numbers(kept: Any) -> dict[str, float | None]:
    # A new client measures no divergence; lambda is not set before the first one.
    known = {
      MU: True,
      DIVERGENCE: kept[_RETURNING] > 0,
      LAMBDA: kept[LAMBDA] > 0,
    }
    return {
      name: float(kept[name]) if known[name] else None for name in update.reported
    }

  return numbers


def algorithm(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  sharing: personal.Sharing,
  update: OnlineUpdate,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns an algorithm of the framework.

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update.
    sharing: Which networks are averaged, and which replaced.
    update: How the online networks are mixed with the global ones.
    training: How a client trains, and how clients are weighted; the defaults when None.
  """
  training = training or fedavg.Training()
  networks = online_networks.Networks(objective, sharing)

  def initial():
    weights = server.initial_weights(objective, training.seed)
    shared = weights._replace(trainable=networks.shared(weights.trainable))
    return server.initial_state(shared, training.seed, server_optimizer)

  result = stateful_averaging.stateful(
    objective,
    server_optimizer,
    training,
    client_function(networks, training, update),
    initial,
    summarize=summarize(objective, update),
  )
  if update.quantile is not None:
    result = _with_threshold(result, update.quantile)
  if update.first_scaler is not None:
    result = _with_first_scaler(result, networks, update, update.first_scaler)
  return dataclasses.replace(
    result,
    client_report=numbers_of_client(update),
    personal_model=personal_model,
  )


def _with_threshold(
  algorithm: phases.Algorithm, quantile: running_quantile.RunningQuantile
) -> phases.Algorithm:
  """Makes the server broadcast a running quantile of the divergences and update it."""
  (train,) = algorithm.exchanges

  def initial():
    return algorithm.initial().with_extra(quantile=quantile.initial())

  def broadcast(state):
    threshold = quantile.threshold(state.extra['quantile'])
    return collections.OrderedDict(train.broadcast(state), **{THRESHOLD: threshold})

  def receive(state, aggregated):
    metrics = aggregated[server.METRICS]
    known = metrics[_RETURNING]
    below, mean = (
      tf.math.divide_no_nan(metrics[name], known) for name in (_BELOW, DIVERGENCE)
    )
    before = state.extra['quantile']
    after, groups = train.receive(state, aggregated)
    threshold = {THRESHOLD: quantile.threshold(before)}
    work = collections.OrderedDict(groups[phases.CLIENT_WORK], **threshold)
    after = after.with_extra(quantile=quantile.updated(before, below, mean, known))
    return after, {**groups, phases.CLIENT_WORK: work}

  exchange = dataclasses.replace(train, broadcast=broadcast, receive=receive)
  return dataclasses.replace(algorithm, initial=initial, phases=[exchange])


def _with_first_scaler(
  algorithm: phases.Algorithm,
  networks: online_networks.Networks,
  update: OnlineUpdate,
  first_scaler: Callable[[tf.Tensor], tf.Tensor],
) -> phases.Algorithm:
  """Adds the exchange in which a new client sets its lambda.

  The server broadcasts the encoder and projector that it has averaged in this round. It
  updates the model only in this last exchange, because values that a round has
  broadcast must not change within it.
  """
  (train,) = algorithm.exchanges
  measure = online_networks.NORMS[update.norm]

  def initial():
    state = algorithm.initial()
    return state.with_extra(**{_AVERAGED: state.global_model_weights})

  def receive_update(state, aggregated):
    after, metrics = train.receive(state, aggregated)
    averaged = after.global_model_weights
    after = after._replace(global_model_weights=state.global_model_weights)
    return after.with_extra(**{_AVERAGED: averaged}), metrics

  def broadcast(state):
    averaged = networks.measured(state.extra[_AVERAGED].trainable)
    return collections.OrderedDict([(_AVERAGED, averaged)])

  def client_fn(shared, state, examples):
    del examples
    kept = collections.OrderedDict(state.kept)
    # A client whose training was discarded is discarded here too, and counted.
    discarded = tf.not_equal(state.last_round, shared['round'])
    is_new = tf.equal(kept[_RETURNING], 0) & ~discarded
    scaler = first_scaler(measure(shared[_AVERAGED], kept[_NETWORKS]))
    scaler = tf.where(is_new, scaler, kept[LAMBDA])
    kept[LAMBDA] = tf.where(discarded, float('nan'), scaler)
    return collections.OrderedDict([(_NEW, tf.cast(is_new, tf.int32))]), kept

  def receive(state, aggregated):
    averaged = state.extra[_AVERAGED]
    metrics = {phases.CLIENT_WORK: {'new_clients': aggregated[_NEW]}}
    return state._replace(global_model_weights=averaged), metrics

  def traffic(state, aggregated, client):
    del state
    cohort, new = (
      tf.cast(n, tf.int64)
      for n in (aggregated[phases.COUNTS]['clients'], aggregated[_NEW])
    )
    again = client.down[_AVERAGED]
    down = np.int64(sum(client.down.values()) - again)
    return collections.OrderedDict(
      bytes_down=cohort * down + new * np.int64(again),
      bytes_up=cohort * np.int64(sum(client.up.values())),
    )

  weigh = train.client.weigh
  client = client_functions.StatefulFunction(_first(networks, update), client_fn, weigh)
  exchanges = [
    dataclasses.replace(train, receive=receive_update),
    phases.Exchange(
      'scale', broadcast, client, {_NEW: combine.TOTAL}, receive, traffic=traffic
    ),
  ]
  return dataclasses.replace(algorithm, initial=initial, phases=exchanges)
