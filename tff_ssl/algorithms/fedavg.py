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
from collections.abc import Callable
import dataclasses
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import checks
from tff_ssl.computing import kinds
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.federated import vectorized_clients
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.optimization import schedules
from tff_ssl.settings import learning

WEIGHTINGS = client_functions.WEIGHTINGS
_CLIENTS = learning.SgdClients(learning_rate=1.0)


@dataclasses.dataclass(frozen=True)
class Training(kinds.Kind):
  """How clients train in the rounds of a run.

  Attributes:
    clients: How a client trains and what it counts for; by default plain SGD at the
      rate of the DCCO paper (B).
    seed: Seed of the initial weights and of every round's views.
    rounds: R, rounds of the run, for a rate or an objective that follows a schedule
      (`base.Objective.at`); None: unknown.
  """

  clients: learning.AnyClients = _CLIENTS
  seed: kinds.Natural = 0
  rounds: kinds.Count | None = None

  def __post_init__(self):
    super().__post_init__()
    # Refuses rounds that do not fit.
    self.rate_by_round  # noqa: B018

  @functools.cached_property
  def rate_by_round(self) -> schedules.Schedule:
    """The clients' learning rate over rounds, counted from 0."""
    return schedules.of(self.clients, self.rounds)

  def rate(self, round: tf.Tensor) -> tf.Tensor:
    """Returns the clients' learning rate in a round, float32."""
    return self.rate_by_round(round)

  @property
  def weigh(self) -> Callable[[tf.Tensor], tf.Tensor]:
    """The function from the sizes of clients to their weights in the mean."""
    return WEIGHTINGS[self.clients.weighting]


def broadcast(
  objective: base.Objective, training: Training
) -> Callable[[phases.ServerState], Any]:
  """Builds step 1: broadcasting the model, the round's seed and the learning rate.

  If the objective follows a schedule, the `round` is broadcast too.
  """

  def values(state):
    others = {'round': state.round} if objective.is_scheduled else {}
    return phases.model(state, rate=training.rate(state.round), **others)

  return values


def in_round(
  objective: base.Objective,
  shared: client_functions.Shared,
  training: Training,
) -> base.Objective:
  """Returns the objective with its values for this round, if it has a schedule."""
  if not objective.is_scheduled:
    return objective
  return base.at_round(objective, shared['round'], training.rounds)


def client_function(
  objective: base.Objective, training: Training
) -> client_functions.ClientFunction:
  """Builds step 2: training on a client's examples.

  Args:
    objective: What is minimised. Its state starts afresh each round.
    training: How a client trains, and how clients are weighted.

  Returns:
    A function of `params`, of the round's `seed`, int32 [2], and of the learning rate,
    `rate`. It sends the `update` (initial minus final weights), the objective's
    `metrics` and, with batch norm, the `statistics` of its population.
  """

  def client_fn(shared, examples):
    trained = local_training.train(
      in_round(objective, shared, training),
      training.clients,
      shared['params'],
      examples,
      shared['seed'],
      shared['rate'],
    )
    return sent(shared, objective, trained.params, trained.metrics, examples)

  return client_functions.ClientFunction(
    client_fn,
    mean_fn=vectorized_clients.only_step(objective, training.clients),
    per_client_fn=vectorized_clients.each_only_step(objective, training.clients),
    weigh=training.weigh,
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
  training: Training | None = None,
) -> phases.Algorithm:
  """Returns FedAvg over an objective.

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is plain FedAvg.
    training: How clients train; the defaults when None.

  Returns:
    The algorithm. Its metrics are, under `client_work`: `loss` and what the objective
    reports, averaged over examples, counts of clients and examples, bytes.
  """
  training = training or Training()
  checks.is_a(Training, training=training)
  checks.is_a(base.Objective, objective=objective)

  def initial():
    return server.initial_of(objective, training.seed, server_optimizer)

  train = phases.Exchange(
    'train',
    broadcast(objective, training),
    client_function(objective, training),
    sent_kinds(objective),
    server.averaging(server_optimizer, objective.summarize),
  )
  return phases.Algorithm(
    initial, [train], objective=objective, client_rate=training.rate_by_round
  )
