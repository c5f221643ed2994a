"""Clients that keep their online networks: what FedEMA and FedU have in common.

The framework of "Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang,
Yonggang Wen, Shuai Zhang, ICLR 2022 (section 3), with one more step. A round:

  1. the server broadcasts the global networks: encoder and projector W_g, predictor;
  2. client k measures how far they are from those it was left with when it last took
     part, |W_g - W_k|; an `OnlineUpdate` says which share of its own it keeps:
     W_k <- mu W_k + (1 - mu) W_g, and the predictor alike; its target goes on as it
     was. The first time all its networks are the global ones;
  3. it trains, keeps all of them, and sends the update of the online ones;
  4. the server averages the updates weighted by n_k.

Of each client mu, divergence and lambda are in its state (`describe`), and their means
over the clients that measured one in the round's metrics.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import divergence as divergence_lib
from tff_ssl.algorithms import exchange as exchange_lib
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import local_training
from tff_ssl.algorithms import server
from tff_ssl.algorithms import stateful_averaging
from tff_ssl.algorithms import stateful_process
from tff_ssl.objectives import base
from tff_ssl.objectives import population

_NETWORKS, _STATISTICS = 'networks', 'statistics'
MU, DIVERGENCE, LAMBDA = 'mu', 'divergence', 'lambda'
_RETURNING = 'returning'


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
  """How a client's online networks take the global ones.

  Attributes:
    shares: (divergence, lambda_k so far, 0 before one is set) -> `Shares`.
    norm: Of the divergence, one of `divergence.NORMS`.
    has_scaler: Whether lambda_k means anything, and is reported.
  """

  shares: Callable[[tf.Tensor, tf.Tensor], Shares]
  norm: str
  has_scaler: bool

  @property
  def reported(self) -> tuple[str, ...]:
    """What is reported of each client, by name."""
    return (MU, DIVERGENCE, LAMBDA) if self.has_scaler else (MU, DIVERGENCE)


def client_function(
  networks: exchange_lib.Networks,
  config: fedavg.FedAvgConfig,
  update: OnlineUpdate,
) -> client_functions.StatefulFunction:
  """Builds steps 2 and 3.

  Args:
    networks: Which there are, and what becomes of the global ones.
    config: How a client trains, and how clients are weighted.
    update: How the online networks take the global ones.

  Returns:
    A function that sends the `update` (global minus own networks) and `metrics`: the
    objective's, and what `summarize` takes; see `stateful_averaging.compose`. It keeps
    all networks, what `describe` tells, and with batch norm the statistics of the
    online encoder's population.
  """
  measure = divergence_lib.NORMS[update.norm]

  def first(shared):
    kept = collections.OrderedDict([(_NETWORKS, networks.begin(shared['params']))])
    kept.update((name, tf.zeros([])) for name in (MU, DIVERGENCE, LAMBDA, _RETURNING))
    kept[_STATISTICS] = population.initial(networks.objective)
    return kept

  def each(shared, state, examples):
    received, own = shared['params'], state.kept[_NETWORKS]
    is_new = state.last_round < 0
    anew = networks.begins_anew(state.last_round, shared['round'])
    divergence = measure(networks.measured(received), own)
    shares = update.shares(divergence, state.kept[LAMBDA])
    # 0 * own + 1 * global is the global network to the bit.
    encoder, predictor = (
      tf.where(anew, 0.0, share) for share in (shares.encoder, shares.predictor)
    )
    mixed = networks.receive(received, own, encoder, predictor, anew)
    trained = local_training.train(
      networks.objective,
      config.local,
      networks.params(mixed),
      examples,
      shared['seed'],
      shared['rate'],
      networks.state(mixed),
    )
    after = networks.joined(trained.params, trained.state)
    kept = collections.OrderedDict(
      [
        (_NETWORKS, after),
        (MU, tf.maximum(encoder, predictor)),
        (DIVERGENCE, tf.where(is_new, 0.0, divergence)),
        (LAMBDA, tf.where(anew, state.kept[LAMBDA], shares.scaler)),
        (_RETURNING, tf.where(is_new, 0.0, 1.0)),
      ]
    )
    metrics = collections.OrderedDict(trained.metrics)
    # Who is new has measured nothing.
    for name in (*update.reported, _RETURNING):
      metrics[name] = kept[name] * kept[_RETURNING]
    params = networks.sent(after)
    statistics = population.compute(networks.objective, params, examples)
    kept[_STATISTICS] = (
      statistics
      if networks.sends_online
      else population.compute(networks.objective, after, examples)
    )
    return stateful_averaging.sent(shared, params, metrics, statistics), kept

  return client_functions.StatefulFunction(
    first, each, fedavg.WEIGHTINGS[config.weighting]
  )


def online(kept: Any) -> base.Params:
  """Returns a client's own model: its networks and, with batch norm, the statistics.

  Args:
    kept: What the client keeps.
  """
  model = collections.OrderedDict(kept[_NETWORKS])
  model.update(kept[_STATISTICS])
  return model


def summarize(
  objective: base.Objective | base.Stateful, update: OnlineUpdate
) -> Callable[[base.Metrics], base.Metrics]:
  """Returns what turns averaged metrics into those of a round.

  Args:
    objective: Summarizes its own.
    update: Says what else is reported: means over the clients that are not new,
      weighted as the updates are; 0 where all are. `returning` is their weight's share.
  """

  def summarize(metrics: base.Metrics) -> base.Metrics:
    rest = collections.OrderedDict(metrics)
    returning = rest.pop(_RETURNING)
    means = collections.OrderedDict(
      (name, tf.math.divide_no_nan(rest.pop(name), returning))
      for name in update.reported
    )
    summary = objective.summarize(rest)
    summary.update(means)
    summary[_RETURNING] = returning
    return summary

  return summarize


def describe(update: OnlineUpdate) -> stateful_process.Describe:
  """Returns what tells mu, divergence and lambda_k from what a client keeps.

  Args:
    update: That of the algorithm.
  """

  def describe(kept: Any) -> dict[str, float | None]:
    # Not measured by who is new; not set before the first divergence.
    known = {
      MU: True,
      DIVERGENCE: kept[_RETURNING] > 0,
      LAMBDA: kept[LAMBDA] > 0,
    }
    return {
      name: float(kept[name]) if known[name] else None for name in update.reported
    }

  return describe


def build(
  objective: base.Objective | base.Stateful,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: fedavg.FedAvgConfig,
  update: OnlineUpdate,
  exchange: exchange_lib.Exchange,
  aggregation: aggregation_lib.Aggregation | None,
) -> stateful_process.StatefulProcess:
  """Builds the process of an algorithm; see `fedema.build_fedema`.

  Args:
    objective: What a client minimises.
    element_spec: See `fedema.build_fedema`, as the two that follow.
    server_optimizer: Applied to the averaged update.
    config: How a client trains, and how clients are weighted.
    update: How the online networks take the global ones.
    exchange: Which networks are averaged, and which replaced.
    aggregation: What leaves a client goes through it; plain when None.
  """
  networks = exchange_lib.Networks(objective, exchange)

  @tff.tensorflow.computation
  def initial_weights():
    weights = server.initial_weights(objective, config.seed)
    return weights._replace(trainable=networks.shared(weights.trainable))

  process = stateful_averaging.compose(
    initial_weights,
    client_function(networks, config, update),
    element_spec,
    server_optimizer,
    config,
    summarize(objective, update),
    aggregation,
  )
  return dataclasses.replace(process, describe=describe(update))
