"""Aggregation of encoding statistics: the first of DCCO's two aggregations.

S = sum_k n_k S_k / sum_k n_k, where client k's statistics S_k are means over its n_k
examples (DCCO, section 3.3). The two sums are inner factories, so that secure or
private sums swap in without another code path.
"""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


class StatisticsFactory(tff.aggregators.WeightedAggregationFactory):
  """Weighted mean of statistics, reported with the number of examples behind it.

  The created process has `next(state, value@CLIENTS, weight@CLIENTS)` and the result
  `OrderedDict(statistics=<like value>, num_examples=<like weight>)@SERVER`. If there is
  no example at all, the statistics are 0, never NaN.
  """

  def __init__(
    self,
    value_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None,
    weight_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None,
  ):
    """Initializes the factory.

    Args:
      value_sum_factory: Sums the n_k S_k; a plain sum when None. Clipping inside it
        acts on each client's own n_k S_k.
      weight_sum_factory: Sums the n_k; a plain sum when None.
    """
    self._value_sum = value_sum_factory or tff.aggregators.SumFactory()
    self._weight_sum = weight_sum_factory or tff.aggregators.SumFactory()

  def create(self, value_type, weight_type) -> tff.templates.AggregationProcess:
    """Creates the process for types of client values and weights.

    Args:
      value_type: Structure of floating tensors, the S_k.
      weight_type: A scalar, n_k.

    Returns:
      The process.

    Raises:
      ValueError: If the value is not made of floating tensors, or the weight is not a
        scalar.
    """
    if not _is_floating(value_type):
      raise ValueError(
        f'The statistics have type {value_type}; they must be floating tensors.'
      )
    if not isinstance(weight_type, tff.TensorType) or weight_type.shape != ():
      raise ValueError(f'The weight has type {weight_type}; it must be a scalar.')
    value_sum = self._value_sum.create(value_type)
    weight_sum = self._weight_sum.create(weight_type)

    @tff.tensorflow.computation
    def multiply(value, weight):
      return tf.nest.map_structure(lambda x: x * tf.cast(weight, x.dtype), value)

    @tff.tensorflow.computation
    def divide(total, weight):
      return collections.OrderedDict(
        statistics=tf.nest.map_structure(
          lambda x: tf.math.divide_no_nan(x, tf.cast(weight, x.dtype)), total
        ),
        num_examples=weight,
      )

    @tff.federated_computation
    def initialize():
      return tff.federated_zip(
        collections.OrderedDict(
          value_sum=value_sum.initialize(), weight_sum=weight_sum.initialize()
        )
      )

    @tff.federated_computation(
      initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      weighted = tff.federated_map(multiply, (value, weight))
      values = value_sum.next(state['value_sum'], weighted)
      weights = weight_sum.next(state['weight_sum'], weight)
      return tff.templates.MeasuredProcessOutput(
        tff.federated_zip(
          collections.OrderedDict(value_sum=values.state, weight_sum=weights.state)
        ),
        tff.federated_map(divide, (values.result, weights.result)),
        tff.federated_zip(
          collections.OrderedDict(
            value_sum=values.measurements, weight_sum=weights.measurements
          )
        ),
      )

    return tff.templates.AggregationProcess(initialize, next_fn)


def _is_floating(value_type: tff.Type) -> bool:
  """Returns whether a type is a non-empty structure of floating tensors."""
  if isinstance(value_type, tff.TensorType):
    return np.issubdtype(value_type.dtype, np.floating)
  if isinstance(value_type, tff.StructType):
    children = list(value_type.children())
    return bool(children) and all(_is_floating(child) for child in children)
  return False
