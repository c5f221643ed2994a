"""Statistics that leave a client beside its update, and are averaged apart from it.

Population statistics of batch norm come with a model update but are none: clipping, for
privacy, must not trade one for the other, and no server optimizer may see them.
"""

import collections

import numpy as np
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib

# What a client sends, and the server has of it.
UPDATE, STATISTICS = 'update', 'statistics'


class UpdateFactory(tff.aggregators.WeightedAggregationFactory):
  """Aggregates `OrderedDict(update=..., statistics=...)` by one factory each.

  The created process has the result `result_type`: the mean update, and of the
  statistics what `StatisticsFactory` makes, their mean with the weight behind it.
  """

  def __init__(self, aggregation: aggregation_lib.Aggregation):
    """Initializes the factory.

    Args:
      aggregation: Its `updates` and its `statistics` are used.
    """
    self._factories = collections.OrderedDict(
      [(UPDATE, aggregation.updates), (STATISTICS, aggregation.statistics)]
    )

  def create(self, value_type, weight_type) -> tff.templates.AggregationProcess:
    """Creates the process for types of client values and weights."""
    processes = {
      name: factory.create(value_type[name], weight_type)
      for name, factory in self._factories.items()
    }

    @tff.federated_computation
    def initialize():
      return tff.federated_zip(
        collections.OrderedDict((name, p.initialize()) for name, p in processes.items())
      )

    @tff.federated_computation(
      initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      outputs = {
        name: process.next(state[name], value[name], weight)
        for name, process in processes.items()
      }

      def zipped(field):
        return tff.federated_zip(
          collections.OrderedDict(
            (name, getattr(output, field)) for name, output in outputs.items()
          )
        )

      return tff.templates.MeasuredProcessOutput(
        zipped('state'), zipped('result'), zipped('measurements')
      )

    return tff.templates.AggregationProcess(initialize, next_fn)


def factory(
  aggregation: aggregation_lib.Aggregation, weights_type: tff.StructType
) -> tff.aggregators.WeightedAggregationFactory:
  """Returns the factory of updates, with statistics beside them where there are any.

  Args:
    aggregation: Its `updates` and its `statistics` are used.
    weights_type: Of the `ModelWeights`; what is not trainable are statistics.
  """
  if list(weights_type.non_trainable.children()):
    return UpdateFactory(aggregation)
  return aggregation.updates


def sent(value: tff.Value) -> tff.Value:
  """Returns the `update` of a clients' value, with `statistics` beside it if it has."""
  if not tff.structure.has_field(value.type_signature.member, STATISTICS):
    return value[UPDATE]
  return tff.federated_zip(
    collections.OrderedDict((name, value[name]) for name in (UPDATE, STATISTICS))
  )


def sent_type(value_type: tff.StructType) -> tff.Type:
  """Returns the type of what `sent` returns of one client.

  Args:
    value_type: Of all that the client sends.
  """
  if not tff.structure.has_field(value_type, STATISTICS):
    return value_type[UPDATE]
  return tff.types.to_type(
    collections.OrderedDict((name, value_type[name]) for name in (UPDATE, STATISTICS))
  )


def result_type(update_type: tff.Type, statistics_type: tff.Type) -> tff.StructType:
  """Returns the type of what arrives at the server.

  Args:
    update_type: Of a client's update.
    statistics_type: Of its statistics.
  """
  return tff.types.to_type(
    collections.OrderedDict(
      [
        (UPDATE, update_type),
        (
          STATISTICS,
          collections.OrderedDict(
            statistics=statistics_type, num_examples=tff.TensorType(np.float32)
          ),
        ),
      ]
    )
  )
