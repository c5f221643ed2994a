"""Zeros in place of values that must not leave a client."""

import tensorflow as tf
import tensorflow_federated as tff


class WithheldFactory(tff.aggregators.WeightedAggregationFactory):
  """Returns zeros in place of a weighted mean.

  The created process has `next(state, value@CLIENTS, weight@CLIENTS)` and ignores both.
  It does not return NaN because algorithms compute with their metrics.
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
