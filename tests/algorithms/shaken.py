"""Plain sums that are moved by as much as quantisation may move secure sums.

How far a round's weights and metrics move by it says what a secure round may differ.
"""

import dataclasses

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import with_states
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import encoding_statistics

# Half the distance of a float32 number to the next, over the number.
_ROUNDING = 2.0**-24


def step(low: float, high: float) -> float:
  """Returns the distance of two values that a secure sum tells apart.

  Args:
    low: Values are clipped to be at least this.
    high: And at most this. 32 bits are of the range between.
  """
  return (high - low) / (2**32 - 1)


class ShakenSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums, each entry moved by the largest error of a secure sum, up or down.

  Each of K clients rounds its entry to a multiple of a step, by half a step at most:
  the sum is off by K steps / 2. Besides, K - 1 additions in float32 and one conversion
  are each off by 2^-24 of what they add up, at most of the sum of magnitudes.

  The state is an integer, from which the signs are drawn; 0, as it is at first: no
  entry is moved.
  """

  def __init__(self, step: float):
    self._step = step

  def create(self, value_type):
    @tff.tensorflow.computation
    def none():
      return tf.constant(0)

    @tff.tensorflow.computation
    def one():
      return tf.constant(1.0)

    @tff.tensorflow.computation(value_type)
    def magnitude(value):
      return tf.nest.map_structure(tf.abs, value)

    @tff.tensorflow.computation(np.int32, value_type, value_type, np.float32)
    def shake(draw, total, magnitudes, clients):
      moved = []
      flat = zip(tf.nest.flatten(total), tf.nest.flatten(magnitudes), strict=True)
      for place, (x, size) in enumerate(flat):
        up = tf.random.stateless_uniform(tf.shape(x), [draw, place]) < 0.5
        most = clients * (tf.cast(self._step / 2, x.dtype) + _ROUNDING * size)
        moved.append(x + tf.where(up, most, -most) * tf.cast(draw > 0, x.dtype))
      return tf.nest.pack_sequence_as(total, moved)

    @tff.federated_computation
    def initialize():
      return tff.federated_eval(none, tff.SERVER)

    @tff.federated_computation(
      initialize.type_signature.result, tff.FederatedType(value_type, tff.CLIENTS)
    )
    def next_fn(state, value):
      parts = (
        state,
        tff.federated_sum(value),
        tff.federated_sum(tff.federated_map(magnitude, value)),
        tff.federated_sum(tff.federated_eval(one, tff.CLIENTS)),
      )
      return tff.templates.MeasuredProcessOutput(
        state,
        tff.federated_map(shake, parts),
        tff.federated_value((), tff.SERVER),
      )

    return tff.templates.AggregationProcess(initialize, next_fn)


def aggregation(
  value_bound: float, max_examples_per_client: int
) -> aggregations.Aggregation:
  """Returns plain aggregation, moved as `aggregation.secure` of these bounds may be."""
  values = ShakenSumFactory(step(-value_bound, value_bound))
  weights = ShakenSumFactory(step(0.0, max_examples_per_client))
  mean = tff.aggregators.MeanFactory(values, weights, no_nan_division=True)
  plain = aggregations.plain()
  return dataclasses.replace(
    plain,
    updates=mean,
    statistics=encoding_statistics.StatisticsFactory(values, weights),
    metrics=mean,
    packs=None,
  )


def drawn(state, draw: int):
  """Returns the state of a process from which the signs of a draw follow; 0: none."""
  if isinstance(state, with_states.State):
    return state._replace(server=drawn(state.server, draw))
  draws = tf.nest.map_structure(lambda _: np.int32(draw), state.aggregators)
  return state._replace(aggregators=draws)
