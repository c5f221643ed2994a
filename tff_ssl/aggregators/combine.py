"""Kinds of combination of what clients send: mean, sum, statistics, and so on.

A phase of an algorithm (`federated.phases`) names a kind for each value that its
clients send. The factories themselves come from the `aggregations.Aggregation` that the
user gives, so that secure or private sums can replace plain ones everywhere.
"""

import abc
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import communication

_WEIGHT_TYPE = tff.TensorType(np.float32)


class Kind(abc.ABC):
  """How the values of one name are combined.

  Attributes:
    clipped_as: Which clip norm of `aggregations.Packs` applies; None: none does.
    slots: The size of a value's first dimension if a client fills one slot of it and
      leaves zeros in the others (`one_hot(number) x value`). Values that must not be
      mixed then go through one sum, which may be secure or in packs. A device would
      send its slot alone, and only the bytes of that slot are counted.
  """

  clipped_as: str | None = None
  slots: int = 1

  @property
  def weighed_by(self) -> tuple[str, ...]:
    """Names of the values of kind `Local` that `weigh` takes.

    If there are none, clients have the weight of the exchange.
    """
    return ()

  @property
  def in_groups(self) -> bool:
    """Whether values of clients of different groups must not be added."""
    return False

  @abc.abstractmethod
  def create(
    self, aggregation: aggregations.Aggregation, value_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Returns the aggregation of client values of a type."""

  def weigh(self, weight: tf.Tensor, clients: tf.Tensor, *values: Any) -> Any:
    """Returns the weight of a client, or of a pack of them, if `weighed_by` has names.

    Args:
      weight: Its weight in the exchange, float32.
      clients: How many clients count, int32.
      *values: The values that `weighed_by` names.
    """
    raise NotImplementedError

  def aggregated(self, result: Any) -> Any:
    """Converts the result of an aggregation to an argument of `receive`."""
    return result

  def num_bytes(self, value_type: tff.Type) -> int:
    """Returns the bytes that one client sends; with slots, the bytes of one slot."""
    return communication.num_bytes(value_type) // self.slots


@dataclasses.dataclass(frozen=True)
class Mean(Kind):
  """The mean over clients by their weights; 0 where no client counts.

  Attributes:
    factory: The field of the aggregation: 'updates' or 'metrics'.
    clipped_as: See `Kind`.
    slots: See `Kind`. The mean of a slot is over all clients, not only those that fill
      it.
  """

  factory: str
  clipped_as: str
  slots: int = 1

  def create(self, aggregation, value_type):
    """See `Kind`."""
    return getattr(aggregation, self.factory).create(value_type, _WEIGHT_TYPE)


@dataclasses.dataclass(frozen=True)
class Statistics(Kind):
  """The weighted mean, `statistics`, and the sum of the weights, `num_examples`."""

  clipped_as: str = 'statistics'
  slots: int = 1

  def create(self, aggregation, value_type):
    """See `Kind`."""
    return aggregation.statistics.create(value_type, _WEIGHT_TYPE)


@dataclasses.dataclass(frozen=True)
class Sum(Kind):
  """The sum over clients, whatever their weights.

  Attributes:
    slots: See `Kind`.
    clipped_as: See `Kind`; the value itself is clipped.
  """

  slots: int = 1
  clipped_as: str = 'statistics'

  def create(self, aggregation, value_type):
    """See `Kind`."""
    return aggregation.statistics.create(value_type, _WEIGHT_TYPE)

  def aggregated(self, result):
    """Returns the sum."""
    # What each client sends is divided by its weight (`client_functions.run_client`).
    return _times_weights(result)


@dataclasses.dataclass(frozen=True)
class Within(Kind):
  """How many clients are within a clip norm: a sum of numbers of at most 1/2.

  What a client sends is its number divided by its weight.
  """

  clipped_as: str = 'within'

  def create(self, aggregation, value_type):
    """See `Kind`."""
    return aggregation.within.create(value_type, _WEIGHT_TYPE)

  def aggregated(self, result):
    """Returns the sum."""
    return _times_weights(result)


@dataclasses.dataclass(frozen=True)
class Total(Kind):
  """The sum of integers over clients."""

  def create(self, aggregation, value_type):
    """See `Kind`."""
    return aggregation.counts.create(value_type)


@dataclasses.dataclass(frozen=True)
class Local(Kind):
  """A value that a client needs for combining another value, and does not send."""

  def create(self, aggregation, value_type):
    """Raises TypeError because nothing is combined."""
    raise TypeError(f'{self} of {value_type} cannot be combined by {aggregation}.')

  def num_bytes(self, value_type):
    """Returns 0 because nothing is sent."""
    del value_type
    return 0


def _times_weights(result: Any) -> Any:
  """Returns the sum of which an aggregation of statistics has the mean by weights."""
  total = result['num_examples']
  return tf.nest.map_structure(
    lambda x: x * tf.cast(total, x.dtype), result['statistics']
  )


UPDATE = Mean('updates', 'update')
METRICS = Mean('metrics', 'metrics')
STATISTICS = Statistics()
WITHIN = Within()
TOTAL = Total()
LOCAL = Local()
