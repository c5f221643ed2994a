"""Federated divergence-aware EMA update (FedEMA), and the framework that FedU shares.

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022, section 3, section 4 and Algorithm 1; over BYOL.

A round:
  1. the server broadcasts the global networks: encoder and projector W_g, predictor;
  2. client k measures how far they are from those it was left with when it last took
     part, |W_g - W_k|; an `OnlineUpdate` says which share mu of its own it keeps:
     W_k <- mu W_k + (1 - mu) W_g, and the same for the predictor; its target goes on as
     it was. The first time all its networks are the global ones;
  3. it trains, keeps all of them, and sends the update of the online ones;
  4. the server averages the updates weighted by n_k.

In FedEMA

    mu = min(lambda_k |W_g - W_k|, 1),

the predictor with the same mu. lambda_k is a constant or, by the autoscaler,
tau / |W_g - W_k| of a global model after the client's first training (`AUTOSCALERS`),
and stays. With mu = 0 it is Fed-BYOL (`fed_ssl`), to the bit.

Of each client mu, divergence and lambda are in its state (`numbers_of_client`), and
their means over the clients that measured one in the round's metrics.

Deviations:
  lambda_k is of the paper |W_g^{r+1} - W_k^r| with r the first round in which client k
    trains, and set by the server, which there sees each client's weights. Here it does
    not, so that the client sets it. By default ('returning') it does so when it takes
    part again, by the model that it is then given. Where all clients are in each round,
    the paper's set-up, that is W_g^{r+1}, and the same lambda_k. A client that is not
    in the next round has a later one, which is further from it: then its mu is tau when
    it returns, where the paper's is more; with `exchange.restart` it is that of its
    first two rounds in a row. 'first_round' is the paper's lambda_k with any
    participation, at a price: in a second exchange of the round the server tells the
    clients that are new the averaged encoder and projector once more.
  The norm: the paper's is l2, of all weights. Its constant lambda of 0.8 is of the
    authors' code, where the divergence is a mean over convolutions of their kernels'
    norms, 'conv_mean'. By l2, which grows with the networks, 0.8 makes mu = 1 for all
    clients from the second round on, and they never meet again. So a constant lambda
    goes with 'conv_mean', and the autoscaler, whose mu does not depend on the norm's
    scale, with l2, unless a norm is given.
  The authors' code measures the divergence between a client's networks before and after
    its own training; this is the paper's.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import online_networks
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.federated import running_quantile
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import population

BOTH, ENCODER, PREDICTOR = 'both', 'encoder', 'predictor'
APPLIED_TO = (BOTH, ENCODER, PREDICTOR)
_NETWORKS, _STATISTICS = 'networks', 'statistics'
MU, DIVERGENCE, LAMBDA = 'mu', 'divergence', 'lambda'
_RETURNING, _BELOW, _THRESHOLD = 'returning', 'below', 'threshold'
# When the autoscaler sets a client's lambda: when it takes part again, by the model
# that it is given; or in the round of its first training, by the average (the paper's).
ON_RETURN, FIRST_ROUND = 'returning', 'first_round'
AUTOSCALERS = (ON_RETURN, FIRST_ROUND)
# What the server keeps, and tells in the second exchange.
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
  """How a client's online networks take the global ones.

  Attributes:
    shares: (divergence; lambda_k so far, 0 before one is set; what the clients are
      told) -> `Shares`.
    norm: Of the divergence, one of `online_networks.NORMS`.
    has_scaler: Whether lambda_k means anything, and is reported.
    quantile: Of the divergences, which the clients are told as `threshold`; None: none.
    first_scaler: Divergence -> lambda_k, set in the round of the first training by a
      second exchange; None: there is none.
  """

  shares: Callable[[tf.Tensor, tf.Tensor, client_functions.Shared], Shares]
  norm: str
  has_scaler: bool
  quantile: running_quantile.RunningQuantile | None = None
  first_scaler: Callable[[tf.Tensor], tf.Tensor] | None = None

  @property
  def reported(self) -> tuple[str, ...]:
    """What is reported of each client, by name."""
    return (MU, DIVERGENCE, LAMBDA) if self.has_scaler else (MU, DIVERGENCE)


def client_function(
  networks: online_networks.Networks,
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
    objective's, and what `summarize` takes. It keeps all networks, what
    `numbers_of_client` reads, and with batch norm the statistics of the online
    encoder's population.
  """
  measure = online_networks.NORMS[update.norm]

  def each(shared, state, examples):
    received, own = shared['params'], state.kept[_NETWORKS]
    is_new = state.last_round < 0
    restarts = networks.restarts(state.last_round, shared['round'])
    divergence = measure(networks.measured(received), own)
    shares = update.shares(divergence, state.kept[LAMBDA], shared)
    # 0 * own + 1 * global is the global network to the bit.
    encoder, predictor = (
      tf.where(restarts, 0.0, share) for share in (shares.encoder, shares.predictor)
    )
    mixed = networks.receive(received, own, encoder, predictor, restarts)
    trained = local_training.train(
      fedavg.in_round(networks.objective, shared, config),
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
        (LAMBDA, tf.where(restarts, state.kept[LAMBDA], shares.scaler)),
        (_RETURNING, tf.where(is_new, 0.0, 1.0)),
      ]
    )
    metrics = collections.OrderedDict(trained.metrics)
    # A new client has measured nothing.
    for name in (*update.reported, _RETURNING):
      metrics[name] = kept[name] * kept[_RETURNING]
    if update.quantile is not None:
      is_below = tf.cast(divergence < shared[_THRESHOLD], tf.float32)
      metrics[_BELOW] = is_below * kept[_RETURNING]
    sent = fedavg.sent(
      shared, networks.objective, networks.sent(after), metrics, examples
    )
    kept[_STATISTICS] = (
      sent.get(server.STATISTICS, collections.OrderedDict())
      if networks.sends_online
      else population.compute(networks.objective, after, examples)
    )
    return sent, kept

  return client_functions.StatefulFunction(_first(networks), each, config.weigh)


def _first(
  networks: online_networks.Networks,
) -> Callable[[client_functions.Shared], Any]:
  """Returns what builds the state of a client that is new."""

  def first(shared):
    kept = collections.OrderedDict([(_NETWORKS, networks.begin(shared['params']))])
    kept.update((name, tf.zeros([])) for name in (MU, DIVERGENCE, LAMBDA, _RETURNING))
    kept[_STATISTICS] = population.initial(networks.objective)
    return kept

  return first


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
      weighted as the updates are; 0 where all are. `returning` is their weight's share,
      `below` the share of them under a running quantile.
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


def numbers_of_client(update: OnlineUpdate) -> processes.Describe:
  """Returns what reads mu, divergence and lambda_k from what a client keeps.

  Args:
    update: That of the algorithm.
  """

  def numbers(kept: Any) -> dict[str, float | None]:
    # Not measured by a new client; not set before the first divergence.
    known = {
      MU: True,
      DIVERGENCE: kept[_RETURNING] > 0,
      LAMBDA: kept[LAMBDA] > 0,
    }
    return {
      name: float(kept[name]) if known[name] else None for name in update.reported
    }

  return numbers


@dataclasses.dataclass(frozen=True)
class FedEMAConfig:
  """Hyperparameters of FedEMA.

  Attributes:
    training: How a client trains, how clients are weighted, and the seed.
    tau: Of the autoscaler: mu in a client's second round; 0: Fed-BYOL.
    scaler: lambda, constant, for all clients in the autoscaler's place; None: the
      autoscaler; 0: Fed-BYOL.
    constant_mu: mu in the place of the measured one (Figure 7b); None: measured.
    norm: Of the divergence: 'l2', of all weights of encoder and projector, the paper's;
      'conv_mean', that of the authors' code (see `online_networks`); None: 'conv_mean'
      with a constant lambda above 0, else 'l2' (see `used_norm`).
    applied_to: What mu is for: 'both', or 'encoder' (with projector) or 'predictor'
      alone, where the other is replaced by the global one (Figure 5).
    exchange: Which networks are averaged, and which replaced.
    autoscaler: When it sets lambda_k, one of `AUTOSCALERS`: 'returning', or, as the
      paper, 'first_round'. The same where all clients are in each round.
  """

  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  tau: float = 0.7
  scaler: float | None = None
  constant_mu: float | None = None
  norm: str | None = None
  applied_to: str = BOTH
  exchange: online_networks.Exchange = dataclasses.field(
    default_factory=online_networks.Exchange
  )
  autoscaler: str = ON_RETURN

  def __post_init__(self):
    for name in ('tau', 'constant_mu'):
      value = getattr(self, name)
      if value is not None and not 0 <= value <= 1:
        raise ValueError(f'{name} is {value}; it must be in [0, 1].')
    if self.scaler is not None and not 0 <= self.scaler < float('inf'):
      raise ValueError(f'scaler is {self.scaler}; it must be at least 0 and finite.')
    if self.scaler is not None and self.constant_mu is not None:
      raise ValueError(
        f'scaler is {self.scaler} and constant_mu {self.constant_mu}; one of them must '
        'be None.'
      )
    online_networks.check_norm(self.used_norm)
    if self.autoscaler not in AUTOSCALERS:
      raise ValueError(
        f'autoscaler is {self.autoscaler!r}; allowed are {", ".join(AUTOSCALERS)}.'
      )
    if self.autoscaler == FIRST_ROUND and not self.has_autoscaler:
      raise ValueError(
        f'autoscaler is {self.autoscaler!r}; with a scaler or a constant_mu there is '
        f'none, and it must be {ON_RETURN!r}.'
      )
    if self.applied_to not in APPLIED_TO:
      raise ValueError(
        f'applied_to is {self.applied_to!r}; allowed are {", ".join(APPLIED_TO)}.'
      )

  @property
  def used_norm(self) -> str:
    """The norm of the divergence: the one given, or that which fits lambda."""
    return self.norm or ('conv_mean' if self.scaler else 'l2')

  @property
  def has_autoscaler(self) -> bool:
    """Whether each client's lambda is measured."""
    return self.scaler is None and self.constant_mu is None


def online_update_of(config: FedEMAConfig) -> OnlineUpdate:
  """Builds the rule by which a client's online networks take the global ones."""

  def measured(divergence: tf.Tensor) -> tf.Tensor:
    return tf.math.divide_no_nan(config.tau, divergence)

  def shares(
    divergence: tf.Tensor, scaler: tf.Tensor, told: client_functions.Shared
  ) -> Shares:
    del told
    if config.constant_mu is not None:
      mu = tf.constant(config.constant_mu, divergence.dtype)
    else:
      if config.scaler is not None:
        scaler = tf.constant(config.scaler, divergence.dtype)
      else:
        scaler = tf.where(scaler > 0, scaler, measured(divergence))
      mu = tf.minimum(scaler * divergence, 1.0)
    replaced = tf.zeros_like(mu)
    return Shares(
      replaced if config.applied_to == PREDICTOR else mu,
      replaced if config.applied_to == ENCODER else mu,
      scaler,
    )

  return OnlineUpdate(
    shares,
    config.used_norm,
    has_scaler=config.constant_mu is None,
    first_scaler=measured if config.autoscaler == FIRST_ROUND else None,
  )


def describe(
  objective: base.Objective | base.Stateful,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.FedAvgConfig,
  update: OnlineUpdate,
  exchange: online_networks.Exchange,
) -> phases.Algorithm:
  """Returns the state and phases of the framework.

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update.
    training: How a client trains, and how clients are weighted.
    update: How the online networks take the global ones.
    exchange: Which networks are averaged, and which replaced.
  """
  networks = online_networks.Networks(objective, exchange)

  def initial():
    weights = server.initial_weights(objective, training.seed)
    shared = weights._replace(trainable=networks.shared(weights.trainable))
    return server.initial_state(shared, training.seed, server_optimizer)

  algorithm = fedavg.with_states(
    initial,
    client_function(networks, training, update),
    fedavg.sent_kinds(objective),
    server_optimizer,
    training,
    summarize(objective, update),
  )
  if update.quantile is not None:
    algorithm = _with_threshold(algorithm, update.quantile)
  if update.first_scaler is not None:
    algorithm = _with_first_scaler(algorithm, networks, update)
  return algorithm


def _with_threshold(
  algorithm: phases.Algorithm, quantile: running_quantile.RunningQuantile
) -> phases.Algorithm:
  """Has the server tell a running quantile of the divergences, and bring it after."""
  (train,) = algorithm.exchanges

  def initial():
    return algorithm.initial().keeping(quantile=quantile.initial())

  def share(state):
    threshold = quantile.threshold(state.kept['quantile'])
    return collections.OrderedDict(train.share(state), **{_THRESHOLD: threshold})

  def receive(state, arrived):
    metrics = arrived[server.METRICS]
    known = metrics[_RETURNING]
    below, mean = (
      tf.math.divide_no_nan(metrics[name], known) for name in (_BELOW, DIVERGENCE)
    )
    before = state.kept['quantile']
    after, groups = train.receive(state, arrived)
    work = groups[phases.CLIENT_WORK]
    work[_THRESHOLD] = quantile.threshold(before)
    return after.keeping(quantile=quantile.updated(before, below, mean, known)), groups

  exchange = dataclasses.replace(train, share=share, receive=receive)
  return dataclasses.replace(algorithm, initial=initial, phases=[exchange])


def _with_first_scaler(
  algorithm: phases.Algorithm,
  networks: online_networks.Networks,
  update: OnlineUpdate,
) -> phases.Algorithm:
  """Adds the exchange in which a client that is new sets its lambda.

  The server tells it the encoder and projector that it has averaged in this round. The
  model moves there in this last exchange, for what clients were told must not change.
  """
  (train,) = algorithm.exchanges
  measure, first_scaler = online_networks.NORMS[update.norm], update.first_scaler

  def initial():
    state = algorithm.initial()
    return state.keeping(**{_AVERAGED: state.global_model_weights})

  def receive_update(state, arrived):
    after, metrics = train.receive(state, arrived)
    averaged = after.global_model_weights
    after = after._replace(global_model_weights=state.global_model_weights)
    return after.keeping(**{_AVERAGED: averaged}), metrics

  def share(state):
    averaged = networks.measured(state.kept[_AVERAGED].trainable)
    return collections.OrderedDict([(_AVERAGED, averaged)])

  def each(shared, state, examples):
    del examples
    kept = collections.OrderedDict(state.kept)
    # A client whose training was discarded is discarded here too, and counted.
    discarded = tf.not_equal(state.last_round, shared['round'])
    is_new = tf.equal(kept[_RETURNING], 0) & ~discarded
    scaler = first_scaler(measure(shared[_AVERAGED], kept[_NETWORKS]))
    scaler = tf.where(is_new, scaler, kept[LAMBDA])
    kept[LAMBDA] = tf.where(discarded, float('nan'), scaler)
    return collections.OrderedDict([(_NEW, tf.cast(is_new, tf.int32))]), kept

  def receive(state, arrived):
    averaged = state.kept[_AVERAGED]
    metrics = {phases.CLIENT_WORK: {'new_clients': arrived[_NEW]}}
    return state._replace(global_model_weights=averaged), metrics

  def traffic(state, arrived, client):
    del state
    cohort, new = (
      tf.cast(n, tf.int64) for n in (arrived[phases.COUNTS]['clients'], arrived[_NEW])
    )
    again = client.down[_AVERAGED]
    down = np.int64(sum(client.down.values()) - again)
    return collections.OrderedDict(
      bytes_down=cohort * down + new * np.int64(again),
      bytes_up=cohort * np.int64(sum(client.up.values())),
    )

  weigh = train.client.weigh
  client = client_functions.StatefulFunction(_first(networks), each, weigh)
  exchanges = [
    dataclasses.replace(train, receive=receive_update),
    phases.Exchange(
      'scale', share, client, {_NEW: combine.TOTAL}, receive, traffic=traffic
    ),
  ]
  return dataclasses.replace(algorithm, initial=initial, phases=exchanges)


def build(
  objective: base.Objective | base.Stateful,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.FedAvgConfig,
  update: OnlineUpdate,
  exchange: online_networks.Exchange,
  aggregation: aggregation_lib.Aggregation | None,
) -> processes.StatefulProcess:
  """Builds an algorithm of the framework; see `build_fedema` and `describe`."""
  return processes.build_stateful_process(
    describe(objective, server_optimizer, training, update, exchange),
    element_spec,
    aggregation,
    describe=numbers_of_client(update),
  )


def build_fedema(
  objective: base.Objective | base.Stateful,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedEMAConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> processes.StatefulProcess:
  """Builds FedEMA.

  Args:
    objective: What a client minimises: BYOL, or any other that says which of its
      networks are shared (`base.Placed`). BYOL's own options are the paper's ablations
      of predictor, stop-gradient and target EMA.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    config: Hyperparameters; the defaults when None.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    A process whose metrics are those of `fed_ssl.build_fed_ssl` with `mu`,
    `divergence` and `lambda` (see `summarize`), and which tells them of
    each client.

  Raises:
    ValueError: If the elements are not single examples with an `example_id`, or the
      objective has not the networks that the configuration names.
  """
  config = config or FedEMAConfig()
  return build(
    objective,
    element_spec,
    server_optimizer,
    config.training,
    online_update_of(config),
    config.exchange,
    aggregation,
  )
