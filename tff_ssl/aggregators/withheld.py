"""Values that are not released: nothing of them leaves a client."""

import tensorflow as tf
import tensorflow_federated as tff


class WithheldFactory(tff.aggregators.WeightedAggregationFactory):
  """Gives zeros in the place of a weighted mean, whatever clients have.

  The created process has `next(state, value@CLIENTS, weight@CLIENTS)`, and aggregates
  neither. Not NaN: what an algorithm makes of its metrics may not take one.
  """

  def create(self, value_type, weight_type) -> tff.templates.AggregationProcess:
    """Creates the process for types of client values and weights."""

    @tff.tensorflow.computation
    def nothing():
      return tff.types.structure_from_tensor_type_tree(
        lambda t: tf.zeros(t.shape, t.dtype), value_type
      )

    @tff.federated_computation
    def initialize():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      del value, weight
      return tff.templates.MeasuredProcessOutput(
        state,
        tff.federated_eval(nothing, tff.SERVER),
        tff.federated_value((), tff.SERVER),
      )

    return tff.templates.AggregationProcess(initialize, next_fn)
