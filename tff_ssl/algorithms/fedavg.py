"""Federated averaging of any objective (FedAvg).

"Communication-Efficient Learning of Deep Networks from Decentralized Data", H. Brendan
McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Aguera y Arcas, AISTATS 2017;
with a server optimizer as in "Adaptive Federated Optimization", Reddi et al., 2021.

A round:
  1. the server broadcasts the model;
  2. client k trains on its n_k examples for E epochs and sends its update;
  3. the server averages the updates weighted by n_k and applies its optimizer.

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
from tff_ssl.aggregators import communication
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import local_training
from tff_ssl.algorithms import server
from tff_ssl.objectives import base


@dataclasses.dataclass(frozen=True)
class FedAvgConfig:
  """Hyperparameters of FedAvg.

  Attributes:
    local: Epochs and batch size of a client.
    client_learning_rate: Of the clients' SGD; 1.0 in the DCCO paper (B).
    client_momentum: Of the clients' SGD, in [0, 1).
    seed: Of the initial weights and of every round's views.
  """

  local: local_training.LocalTraining = dataclasses.field(
    default_factory=local_training.LocalTraining
  )
  client_learning_rate: float = 1.0
  client_momentum: float = 0.0
  seed: int = 0

  def __post_init__(self):
    if not 0 < self.client_learning_rate < float('inf'):
      raise ValueError(
        f'client_learning_rate is {self.client_learning_rate}; it must be positive and '
        'finite.'
      )
    if not 0 <= self.client_momentum < 1:
      raise ValueError(
        f'client_momentum is {self.client_momentum}; it must be in [0, 1).'
      )


def client_update(
  objective: base.Objective,
  config: FedAvgConfig,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
) -> tuple[base.Params, tf.Tensor, base.Metrics, base.Metrics]:
  """Trains on a client's examples: step 2.

  Args:
    objective: What is minimised.
    config: Epochs, batch size, rate.
    params: The server's model.
    examples: The client's n examples.
    seed: int32 [2], the round's.

  Returns:
    The update (initial minus final weights), its weight n (float32), the objective's
    metrics, and the client's counts. An update that is not finite is 0 with weight 0.
  """
  optimizer = tff.learning.optimizers.build_sgdm(
    config.client_learning_rate, config.client_momentum or None
  )
  trained, metrics = local_training.train(
    objective, optimizer, config.local, params, examples, seed
  )
  update = tf.nest.map_structure(tf.subtract, params, trained)
  num_examples = base.example_count(examples)
  usable = clients.is_finite((update, metrics))
  return (
    clients.keep_if(usable, update),
    tf.where(usable, tf.cast(num_examples, tf.float32), 0.0),
    clients.keep_if(usable, metrics),
    clients.counts(num_examples, usable),
  )


def build_client_work(
  objective: base.Objective,
  element_spec: Any,
  weights_type: tff.Type,
  config: FedAvgConfig,
  aggregation: aggregation_lib.Aggregation,
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the clients' part; see `build_fedavg` for the arguments."""
  data_type = clients.sequence_type(element_spec)
  params_type = weights_type.trainable
  seed_type = tff.TensorType(np.int32, [2])

  @tff.tensorflow.computation(params_type, seed_type, data_type)
  def train(params, seed, dataset):
    update, weight, metrics, counts = client_update(
      objective, config, params, clients.all_examples(dataset), seed
    )
    return collections.OrderedDict(
      update=update, weight=weight, metrics=metrics, counts=counts
    )

  sent = train.type_signature.result
  metrics_process = aggregation.metrics.create(sent['metrics'], sent['weight'])
  counts_process = aggregation.counts.create(sent['counts'])

  @tff.tensorflow.computation(sent['metrics'], sent['counts'])
  def report(metrics, counts):
    averaged = collections.OrderedDict(metrics)
    result = collections.OrderedDict(loss=averaged.pop('loss'))
    result.update(objective.summarize(averaged))
    result.update(counts)
    result.update(
      clients.traffic(
        counts['clients'],
        down=communication.num_bytes(params_type) + communication.num_bytes(seed_type),
        up=communication.num_bytes(sent),
      )
    )
    return result

  @tff.tensorflow.computation
  def initial_seed():
    return server.initial_round_seed(config.seed)

  next_seed = tff.tensorflow.computation(server.next_round_seed, seed_type)

  @tff.federated_computation
  def initialize():
    return tff.federated_zip(
      collections.OrderedDict(
        round_seed=tff.federated_eval(initial_seed, tff.SERVER),
        metrics=metrics_process.initialize(),
        counts=counts_process.initialize(),
      )
    )

  @tff.federated_computation(
    initialize.type_signature.result,
    tff.FederatedType(weights_type, tff.CLIENTS),
    tff.FederatedType(data_type, tff.CLIENTS),
  )
  def next_fn(state, weights, data):
    seed = tff.federated_broadcast(state['round_seed'])
    trained = tff.federated_map(train, (weights.trainable, seed, data))
    metrics = metrics_process.next(
      state['metrics'], trained['metrics'], trained['weight']
    )
    counts = counts_process.next(state['counts'], trained['counts'])
    return tff.templates.MeasuredProcessOutput(
      tff.federated_zip(
        collections.OrderedDict(
          round_seed=tff.federated_map(next_seed, state['round_seed']),
          metrics=metrics.state,
          counts=counts.state,
        )
      ),
      tff.federated_zip(
        tff.learning.templates.ClientResult(trained['update'], trained['weight'])
      ),
      tff.federated_map(report, (metrics.result, counts.result)),
    )

  return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


def build_fedavg(
  objective: base.Objective,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedAvgConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> tff.learning.templates.LearningProcess:
  """Builds FedAvg over an objective as a learning process.

  Args:
    objective: What a client minimises.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets, such as
      `client_data.element_type_structure`.
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
  aggregation = aggregation or aggregation_lib.plain()

  @tff.tensorflow.computation
  def initial_weights():
    return server.initial_weights(objective, config.seed)

  return server.compose(
    initial_weights,
    build_client_work(
      objective,
      element_spec,
      initial_weights.type_signature.result,
      config,
      aggregation,
    ),
    aggregation.updates,
    server_optimizer,
  )
