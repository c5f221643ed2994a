"""The pieces from which every form of DCCO is composed (see `dcco`)."""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import communication
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import cohorts
from tff_ssl.algorithms import dcco_client
from tff_ssl.algorithms import server
from tff_ssl.objectives import population
from tff_ssl.objectives import statistics


class Parts(NamedTuple):
  """The pieces from which every form of DCCO is composed.

  Attributes:
    cohort: How the clients are laid out; reads their data and aggregates.
    initial_weights: () -> model weights.
    encode: (shared, examples) -> `statistics`, `weight`: step 1, on the clients.
    train: (shared, examples) -> `update`, `weight`, `counts`: step 3, on the clients.
    statistics: Aggregates what `encode` returns.
    counts: Sums the counts.
    report: (aggregated, counts) -> metrics, on the server.
  """

  cohort: cohorts.Cohort
  initial_weights: tff.Computation
  encode: tff.Computation
  train: tff.Computation
  statistics: tff.templates.AggregationProcess
  counts: tff.templates.AggregationProcess
  report: tff.Computation

  def collect(self, state, params, seed, examples):
    """Encodes on the clients and aggregates their statistics: steps 1 and 2.

    Args:
      state: Of the statistics' aggregator, at the server.
      params: On the clients.
      seed: The round's, on the clients.
      examples: As `cohort.read` gives them.

    Returns:
      What `statistics.next` does.
    """
    shared = collections.OrderedDict(params=params, seed=seed)
    local = tff.federated_map(self.encode, (shared, examples))
    return self.statistics.next(state, local['statistics'], local['weight'])

  def update(self, params, seed, aggregated, examples):
    """Trains on the clients with statistics from the server: step 3.

    Args:
      params: On the clients.
      seed: The round's, on the clients.
      aggregated: Statistics at the server.
      examples: As `cohort.read` gives them.

    Returns:
      `update`, `weight` and `counts` on the clients.
    """
    shared = collections.OrderedDict(
      params=params, seed=seed, statistics=tff.federated_broadcast(aggregated)
    )
    return tff.federated_map(self.train, (shared, examples))


def build_parts(
  objective: statistics.StatisticsObjective,
  element_spec: Any,
  config: dcco_client.DCCOConfig,
  aggregation: aggregation_lib.Aggregation,
  model_broadcasts: int = 1,
) -> Parts:
  """Builds the pieces.

  Args:
    objective: As the three that follow, see `dcco.build_dcco`.
    element_spec: Of one example.
    config: Hyperparameters.
    aggregation: What everything that leaves a client goes through.
    model_broadcasts: How often a round sends the model to each client, for `report`.

  Returns:
    The pieces.

  Raises:
    ValueError: If a network has batch norm: nothing of the algorithm would hold.
  """
  if population.mixes_examples(objective):
    raise ValueError(
      'DCCO is given networks with batch norm; they must have layers that do not '
      'depend on the batch, as group norm, for a round to equal a centralized step.'
    )
  cohort = cohorts.build_cohort(element_spec, aggregation)

  @tff.tensorflow.computation
  def initial_weights():
    return server.initial_weights(objective, config.seed)

  params_type = initial_weights.type_signature.result.trainable
  model_type = clients.shared_type(params_type)
  encode = cohort.map(dcco_client.statistics_function(objective), model_type)
  statistics_type = encode.type_signature.result['statistics']
  train = cohort.map(
    dcco_client.update_function(objective, config),
    clients.shared_type(params_type, statistics=statistics_type),
  )
  statistics_process = cohort.aggregation.statistics.create(
    statistics_type, tff.TensorType(np.float32)
  )
  counts_type = train.type_signature.result['counts']
  down = model_broadcasts * communication.num_bytes(model_type)
  sent = (encode.type_signature.result, train.type_signature.result)

  @tff.tensorflow.computation(
    statistics_process.next.type_signature.result.result.member, counts_type
  )
  def report(aggregated, counts):
    metrics = objective.summarize_statistics(aggregated['statistics'])
    metrics.update(counts)
    metrics.update(
      clients.traffic(
        counts['clients'],
        down=down + communication.num_bytes(statistics_type),
        up=sum(communication.num_bytes(t) for t in sent),
      )
    )
    return metrics

  return Parts(
    cohort,
    initial_weights,
    encode,
    train,
    statistics_process,
    cohort.aggregation.counts.create(counts_type),
    report,
  )
