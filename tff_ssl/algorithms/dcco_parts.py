"""The pieces from which every form of DCCO is composed (see `dcco`)."""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import communication
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import dcco_client
from tff_ssl.algorithms import server
from tff_ssl.objectives import statistics


class Parts(NamedTuple):
  """The pieces from which every form of DCCO is composed.

  Attributes:
    data_type: Of one client's data.
    initial_weights: () -> model weights.
    read: dataset -> examples, on a client; once a round, for it is a twelfth of the
      work of a client of one image.
    encode: (params, seed, examples) -> statistics and weight, on a client.
    train: (params, seed, aggregated, examples) -> update, weight, counts, on a client.
    report: (aggregated, counts) -> metrics, on the server.
    statistics: Aggregates what `encode` returns.
    counts: Sums the counts.
  """

  data_type: tff.SequenceType
  initial_weights: tff.Computation
  read: tff.Computation
  encode: tff.Computation
  train: tff.Computation
  report: tff.Computation
  statistics: tff.templates.AggregationProcess
  counts: tff.templates.AggregationProcess


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
  """
  data_type = clients.sequence_type(element_spec)

  @tff.tensorflow.computation
  def initial_weights():
    return server.initial_weights(objective, config.seed)

  params_type = initial_weights.type_signature.result.trainable
  seed_type = tff.TensorType(np.int32, [2])

  @tff.tensorflow.computation(data_type)
  def read(dataset):
    return clients.all_examples(dataset)

  examples_type = read.type_signature.result

  @tff.tensorflow.computation(params_type, seed_type, examples_type)
  def encode(params, seed, examples):
    local, weight = dcco_client.client_statistics(objective, params, examples, seed)
    return collections.OrderedDict(statistics=local, weight=weight)

  statistics_type = encode.type_signature.result['statistics']

  @tff.tensorflow.computation(params_type, seed_type, statistics_type, examples_type)
  def train(params, seed, aggregated, examples):
    update, weight, counts = dcco_client.client_update(
      objective, config, params, examples, seed, aggregated
    )
    return collections.OrderedDict(update=update, weight=weight, counts=counts)

  statistics_process = aggregation.statistics.create(
    statistics_type, tff.TensorType(np.float32)
  )
  counts_type = train.type_signature.result['counts']
  model = communication.num_bytes(params_type) + communication.num_bytes(seed_type)
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
        down=model_broadcasts * model + communication.num_bytes(statistics_type),
        up=sum(communication.num_bytes(t) for t in sent),
      )
    )
    return metrics

  return Parts(
    data_type,
    initial_weights,
    read,
    encode,
    train,
    report,
    statistics_process,
    aggregation.counts.create(counts_type),
  )
