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
tau / |W_g - W_k| of the first global model that the client receives after it has
trained, and stays. With mu = 0 it is Fed-BYOL (`fed_ssl`), to the bit.

Of each client mu, divergence and lambda are in its state (`numbers_of_client`), and
their means over the clients that measured one in the round's metrics.

Deviations: the client sets lambda_k and not the server, which here sees no client's
weights. With all clients in each round that is the same; a client that is not in the
next round takes the first global model that it gets, or with `exchange.restart` that of
its first two rounds in a row. The authors' code measures the divergence between a
client's networks before and after its own training; this is the paper's.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import online_networks
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import population

BOTH, ENCODER, PREDICTOR = 'both', 'encoder', 'predictor'
APPLIED_TO = (BOTH, ENCODER, PREDICTOR)
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

  def first(shared):
    kept = collections.OrderedDict([(_NETWORKS, networks.begin(shared['params']))])
    kept.update((name, tf.zeros([])) for name in (MU, DIVERGENCE, LAMBDA, _RETURNING))
    kept[_STATISTICS] = population.initial(networks.objective)
    return kept

  def each(shared, state, examples):
    received, own = shared['params'], state.kept[_NETWORKS]
    is_new = state.last_round < 0
    restarts = networks.restarts(state.last_round, shared['round'])
    divergence = measure(networks.measured(received), own)
    shares = update.shares(divergence, state.kept[LAMBDA])
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
    sent = fedavg.sent(
      shared, networks.objective, networks.sent(after), metrics, examples
    )
    kept[_STATISTICS] = (
      sent.get(server.STATISTICS, collections.OrderedDict())
      if networks.sends_online
      else population.compute(networks.objective, after, examples)
    )
    return sent, kept

  return client_functions.StatefulFunction(first, each, config.weigh)


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
      'conv_mean', that of the authors' code (see `online_networks`).
    applied_to: What mu is for: 'both', or 'encoder' (with projector) or 'predictor'
      alone, where the other is replaced by the global one (Figure 5).
    exchange: Which networks are averaged, and which replaced.
  """

  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  tau: float = 0.7
  scaler: float | None = None
  constant_mu: float | None = None
  norm: str = 'l2'
  applied_to: str = BOTH
  exchange: online_networks.Exchange = dataclasses.field(
    default_factory=online_networks.Exchange
  )

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
    online_networks.check_norm(self.norm)
    if self.applied_to not in APPLIED_TO:
      raise ValueError(
        f'applied_to is {self.applied_to!r}; allowed are {", ".join(APPLIED_TO)}.'
      )


def online_update_of(config: FedEMAConfig) -> OnlineUpdate:
  """Builds the rule by which a client's online networks take the global ones."""

  def shares(divergence: tf.Tensor, scaler: tf.Tensor) -> Shares:
    if config.constant_mu is not None:
      mu = tf.constant(config.constant_mu, divergence.dtype)
    else:
      if config.scaler is not None:
        scaler = tf.constant(config.scaler, divergence.dtype)
      else:
        first = tf.math.divide_no_nan(config.tau, divergence)
        scaler = tf.where(scaler > 0, scaler, first)
      mu = tf.minimum(scaler * divergence, 1.0)
    replaced = tf.zeros_like(mu)
    return Shares(
      replaced if config.applied_to == PREDICTOR else mu,
      replaced if config.applied_to == ENCODER else mu,
      scaler,
    )

  return OnlineUpdate(shares, config.norm, has_scaler=config.constant_mu is None)


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

  return fedavg.with_states(
    initial,
    client_function(networks, training, update),
    fedavg.sent_kinds(objective),
    server_optimizer,
    training,
    summarize(objective, update),
  )


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
