"""Federated averaging of any objective (FedAvg).

"Communication-Efficient Learning of Deep Networks from Decentralized Data", H. Brendan
McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Aguera y Arcas, AISTATS 2017;
with a server optimizer as in "Adaptive Federated Optimization", Reddi et al., 2021.

A round:
  1. the server broadcasts the model;
  2. client k trains on its n_k examples for E epochs and sends its update;
  3. the server averages the updates weighted by n_k and applies its optimizer.

Batch norm: scales and shifts are weights like others. After its training a client takes
the population statistics of its examples; their means over clients, weighted as the
updates are, replace the server's, past its optimizer.

With the within-client CCO or NT-Xent loss and one step at rate 1.0 this is the baseline
that DCCO is compared with (DCCO, section 4).
"""

import collections
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import beside
from tff_ssl.aggregators import communication
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import cohorts
from tff_ssl.algorithms import local_plan
from tff_ssl.algorithms import local_training
from tff_ssl.algorithms import server
from tff_ssl.algorithms import side_by_side
from tff_ssl.objectives import base
from tff_ssl.objectives import population
from tff_ssl.optimization import schedules

WEIGHTINGS = {
  'examples': client_functions.by_examples,
  'uniform': client_functions.uniformly,
}


@dataclasses.dataclass(frozen=True)
class FedAvgConfig:
  """Hyperparameters of FedAvg.

  Attributes:
    local: How a client trains: E, B, optimizer, mu of FedProx.
    client_learning_rate: Of the clients' optimizer, or a schedule of it over rounds,
      counted from 0; 1.0 in the DCCO paper (B).
    weighting: 'examples': clients count by n_k; 'uniform': all that have examples count
      alike.
    seed: Of the initial weights and of every round's views.
  """

  local: local_plan.LocalPlan = dataclasses.field(default_factory=local_plan.LocalPlan)
  client_learning_rate: float | schedules.Schedule = 1.0
  weighting: str = 'examples'
  seed: int = 0

  def __post_init__(self):
    rate = self.client_learning_rate
    if not callable(rate) and not 0 < rate < float('inf'):
      raise ValueError(
        f'client_learning_rate is {rate}; it must be positive and finite.'
      )
    if self.weighting not in WEIGHTINGS:
      raise ValueError(
        f'weighting is {self.weighting!r}; allowed are {", ".join(WEIGHTINGS)}.'
      )

  def rate(self, round: tf.Tensor) -> tf.Tensor:
    """Returns the clients' learning rate in a round, float32."""
    if callable(self.client_learning_rate):
      return self.client_learning_rate(round)
    return tf.constant(self.client_learning_rate, tf.float32)


def client_function(
  objective: base.Objective | base.Stateful, config: FedAvgConfig
) -> client_functions.ClientFunction:
  """Builds step 2: training on a client's examples.

  Args:
    objective: What is minimised. Its state is made anew each round.
    config: How, and how clients are weighted.

  Returns:
    A function of `params`, of `seed`, int32 [2], the round's, and of `rate`, the
    learning rate. It sends the `update` (initial minus final weights), with batch norm
    the `statistics` of its population, the objective's `metrics`, the weight and the
    client's counts; what is not finite is 0 with weight 0.
  """
  weigh = WEIGHTINGS[config.weighting]

  def each(shared, examples):
    trained = local_training.train(
      objective,
      config.local,
      shared['params'],
      examples,
      shared['seed'],
      shared['rate'],
    )
    update = tf.nest.map_structure(tf.subtract, shared['params'], trained.params)
    num_examples = base.example_count(examples)
    means = collections.OrderedDict(update=update, metrics=trained.metrics)
    statistics = population.compute(objective, trained.params, examples)
    if statistics:
      means[beside.STATISTICS] = statistics
    usable = clients.is_finite(means)
    return client_functions.ClientResult(
      clients.keep_if(usable, means),
      tf.where(usable, weigh(num_examples), 0.0),
      clients.counts(num_examples, usable),
    )

  return client_functions.ClientFunction(
    each, alike=side_by_side.only_step(objective, config.local), weigh=weigh
  )


def build_client_work(
  objective: base.Objective | base.Stateful,
  cohort: cohorts.Cohort,
  weights_type: tff.Type,
  config: FedAvgConfig,
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the clients' part; see `build_fedavg` for the arguments."""
  shared_type = clients.shared_type(
    weights_type.trainable, rate=tff.TensorType(np.float32)
  )
  train = cohort.map(client_function(objective, config), shared_type)
  sent = train.type_signature.result
  metrics_process = cohort.aggregation.metrics.create(sent['metrics'], sent['weight'])
  counts_process = cohort.aggregation.counts.create(sent['counts'])

  @tff.tensorflow.computation(sent['metrics'], sent['counts'])
  def report(metrics, counts):
    return clients.report(
      metrics,
      counts,
      objective.summarize,
      # All weights are broadcast, though clients have no use for statistics.
      down=communication.num_bytes(shared_type)
      + communication.num_bytes(weights_type.non_trainable),
      up=communication.num_bytes(sent),
    )

  initial_seed, next_seed = server.round_seeds(config.seed)
  rate = tff.tensorflow.computation(config.rate, tff.TensorType(np.int32))

  @tff.federated_computation
  def initialize():
    return tff.federated_zip(
      collections.OrderedDict(
        round=server.first_round(),
        round_seed=tff.federated_eval(initial_seed, tff.SERVER),
        metrics=metrics_process.initialize(),
        counts=counts_process.initialize(),
      )
    )

  @tff.federated_computation(
    initialize.type_signature.result,
    tff.FederatedType(weights_type, tff.CLIENTS),
    tff.FederatedType(cohort.data_type, tff.CLIENTS),
  )
  def next_fn(state, weights, data):
    shared = collections.OrderedDict(
      params=weights.trainable,
      seed=tff.federated_broadcast(state['round_seed']),
      rate=tff.federated_broadcast(tff.federated_map(rate, state['round'])),
    )
    examples = tff.federated_map(cohort.read, data)
    trained = tff.federated_map(train, (shared, examples))
    metrics = metrics_process.next(
      state['metrics'], trained['metrics'], trained['weight']
    )
    counts = counts_process.next(state['counts'], trained['counts'])
    return tff.templates.MeasuredProcessOutput(
      tff.federated_zip(
        collections.OrderedDict(
          round=server.next_round(state['round']),
          round_seed=next_seed(state['round_seed']),
          metrics=metrics.state,
          counts=counts.state,
        )
      ),
      tff.federated_zip(
        tff.learning.templates.ClientResult(beside.sent(trained), trained['weight'])
      ),
      tff.federated_map(report, (metrics.result, counts.result)),
    )

  return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


def build_fedavg(
  objective: base.Objective | base.Stateful,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedAvgConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> tff.learning.templates.LearningProcess:
  """Builds FedAvg over an objective as a learning process.

  Args:
    objective: What a client minimises.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets, such as
      `client_data.element_type_structure`; or the `packs.PackSpec` of them.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is plain FedAvg.
    config: Hyperparameters; the defaults when None.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    A `LearningProcess` whose metrics are, under `client_work`: `loss` and what the
    objective reports, averaged over examples, counts of clients and examples, bytes.

  Raises:
    ValueError: If the elements are not single examples with an `example_id`.
  """
  config = config or FedAvgConfig()
  cohort = cohorts.build_cohort(element_spec, aggregation or aggregation_lib.plain())

  @tff.tensorflow.computation
  def initial_weights():
    return server.initial_weights(objective, config.seed)

  weights_type = initial_weights.type_signature.result
  return server.compose(
    initial_weights,
    build_client_work(objective, cohort, weights_type, config),
    beside.factory(cohort.aggregation, weights_type),
    server_optimizer,
  )
