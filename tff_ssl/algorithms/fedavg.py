"""Federated averaging of any objective (FedAvg).

"Communication-Efficient Learning of Deep Networks from Decentralized Data", H. Brendan
McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Aguera y Arcas, AISTATS 2017;
with a server optimizer as in "Adaptive Federated Optimization", Reddi et al., 2021.

A round:
  1. the server broadcasts the model;
  2. client k trains on its n_k examples for E epochs and sends its update;
  3. the server averages the updates weighted by n_k and applies its optimizer.

Batch norm: scales and shifts are weights like all others. After training a client
computes the population statistics of its examples. Their means over clients, weighted
as the updates are, replace the server's statistics and bypass its optimizer.

With the within-client CCO or NT-Xent loss and one step at rate 1.0 this is the baseline
that DCCO is compared with (DCCO, section 4).
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.computing import checks
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.federated import vectorized_clients
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.optimization import schedules

WEIGHTINGS = client_functions.WEIGHTINGS


@dataclasses.dataclass(frozen=True)
class FedAvgConfig:
  """Hyperparameters of FedAvg.

  Attributes:
    local: How a client trains: E, B, optimizer, mu of FedProx.
    client_learning_rate: Learning rate of the clients' optimizer, or a schedule of it
      over rounds, counted from 0; 1.0 in the DCCO paper (B).
    weighting: 'examples': clients count by n_k; 'uniform': all clients that have
      examples count equally.
    seed: Seed of the initial weights and of every round's views.
    rounds: R, rounds of the run, for an objective whose values follow a schedule
      (`base.Objective.at`); None: unknown.
  """

  local: local_training.LocalPlan = dataclasses.field(
    default_factory=local_training.LocalPlan
  )
  client_learning_rate: float | schedules.Schedule = 1.0
  weighting: str = 'examples'
  seed: int = 0
  rounds: int | None = None

  def __post_init__(self):
    if self.rounds is not None and self.rounds < 1:
      raise ValueError(f'rounds is {self.rounds}; it must be at least 1, or None.')
    rate = self.client_learning_rate
    if not callable(rate):
      checks.positive(client_learning_rate=rate)
    checks.one_of(WEIGHTINGS, weighting=self.weighting)

  def rate(self, round: tf.Tensor) -> tf.Tensor:
    """Returns the clients' learning rate in a round, float32."""
    if callable(self.client_learning_rate):
      return self.client_learning_rate(round)
    return tf.constant(self.client_learning_rate, tf.float32)

  @property
  def weigh(self) -> Callable[[tf.Tensor], tf.Tensor]:
    """The function from the sizes of clients to their weights in the mean."""
    return WEIGHTINGS[self.weighting]


def broadcast(
  objective: base.Objective, config: FedAvgConfig
) -> Callable[[phases.ServerState], Any]:
  """Builds step 1: broadcasting the model, the round's seed and the learning rate.

  If the objective follows a schedule, the `round` is broadcast too.
  """

  def values(state):
    others = {'round': state.round} if objective.is_scheduled else {}
    return phases.model(state, rate=config.rate(state.round), **others)

  return values


def in_round(
  objective: base.Objective,
  shared: client_functions.Shared,
  config: FedAvgConfig,
) -> base.Objective:
  """Returns the objective with its values for this round, if it has a schedule."""
  if not objective.is_scheduled:
    return objective
  return base.at_round(objective, shared['round'], config.rounds)


def client_function(
  objective: base.Objective, config: FedAvgConfig
) -> client_functions.ClientFunction:
  """Builds step 2: training on a client's examples.

  Args:
    objective: What is minimised. Its state starts afresh each round.
    config: How a client trains, and how clients are weighted.

  Returns:
    A function of `params`, of the round's `seed`, int32 [2], and of the learning rate,
    `rate`. It sends the `update` (initial minus final weights), the objective's
    `metrics` and, with batch norm, the `statistics` of its population.
  """

  def client_fn(shared, examples):
    trained = local_training.train(
      in_round(objective, shared, config),
      config.local,
      shared['params'],
      examples,
      shared['seed'],
      shared['rate'],
    )
    return sent(shared, objective, trained.params, trained.metrics, examples)

  return client_functions.ClientFunction(
    client_fn,
    mean_fn=vectorized_clients.only_step(objective, config.local),
    per_client_fn=vectorized_clients.each_only_step(objective, config.local),
    weigh=config.weigh,
    chunk_size=base.batch_in_cache(objective),
  )


def sent(
  shared: client_functions.Shared,
  objective: base.Objective,
  params: base.Params,
  metrics: base.Metrics,
  examples: base.Examples,
) -> client_functions.Sent:
  """Returns the payload of a client that has trained the model.

  Args:
    shared: Values from the server, with the initial `params`.
    objective: What it has minimised.
    params: The final parameters.
    metrics: Metrics of its training, with `loss`.
    examples: Those it holds; with batch norm, statistics are computed from them.
  """
  result = collections.OrderedDict(
    [
      (server.UPDATE, tf.nest.map_structure(tf.subtract, shared['params'], params)),
      (server.METRICS, metrics),
    ]
  )
  statistics = batch_norm_statistics.compute(objective, params, examples)
  if statistics:
    result[server.STATISTICS] = statistics
  return result


def sent_kinds(
  objective: base.Objective,
) -> dict[str, Any]:
  """Returns how the values that `sent` returns are combined."""
  return server.sent_kinds(bool(batch_norm_statistics.initial(objective)))


def fedavg(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedAvgConfig | None = None,
) -> phases.Algorithm:
  """Returns FedAvg over an objective.

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is plain FedAvg.
    config: Hyperparameters; the defaults when None.

  Returns:
    The algorithm. Its metrics are, under `client_work`: `loss` and what the objective
    reports, averaged over examples, counts of clients and examples, bytes.
  """
  config = config or FedAvgConfig()
  checks.is_a(FedAvgConfig, config=config)
  checks.is_a(base.Objective, objective=objective)

  def initial():
    return server.initial_of(objective, config.seed, server_optimizer)

  train = phases.Exchange(
    'train',
    broadcast(objective, config),
    client_function(objective, config),
    sent_kinds(objective),
    server.averaging(server_optimizer, objective.summarize),
  )
  return phases.Algorithm(
    initial, [train], objective=objective, client_rate=config.client_learning_rate
  )


def with_states(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedAvgConfig,
  function: client_functions.StatefulFunction,
  initial: Callable[[], phases.ServerState] | None = None,
  kinds: Mapping[str, combine.Kind] | None = None,
  summarize: Callable[[base.Metrics], base.Metrics] | None = None,
) -> phases.Algorithm:
  """Returns an algorithm that averages the updates of stateful clients.

  Args:
    objective: What clients minimise.
    server_optimizer: Applied to the averaged update.
    config: Only its rate and its seed are used.
    function: What one client computes; it takes what `phases.model` returns, `rate` and
      `round`.
    initial: () -> the server's state before round 0; None: FedAvg's.
    kinds: How the values that a client sends are combined; None: as those of `sent`.
    summarize: Turns averaged metrics into what a round reports; None: the objective's.
  """

  def fedavg_initial():
    return server.initial_of(objective, config.seed, server_optimizer)

  def broadcast(state):
    return phases.model(state, rate=config.rate(state.round), round=state.round)

  receive = server.averaging(server_optimizer, summarize or objective.summarize)
  kinds = sent_kinds(objective) if kinds is None else kinds
  train = phases.Exchange('train', broadcast, function, kinds, receive)
  return phases.Algorithm(initial or fedavg_initial, [train], objective=objective)
