"""Secure sums of bounded numbers, without TensorFlow's complaints.

TFF traces assertions whose results it does not use, and TensorFlow logs ten lines for
each. Values out of bounds are clipped, but not weights: a mean of values that are all
there over clipped weights is too large.
"""

from collections.abc import Iterator
import contextlib
import logging
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import assertions


def bounded(value: Any, weights: tf.Tensor, most: float) -> Any:
  """Returns a structure of tensors that exist only if no client is too large.

  Args:
    value: The structure.
    weights: n_k of one client or of several, at least one.
    most: The bound of n_k.

  Raises:
    ValueError: When it runs in one of our contexts and n_k is above the bound.
  """
  largest = tf.reduce_max(weights)
  return assertions.checked(
    value,
    largest <= most,
    f'A client has {{}} examples; max_examples_per_client is {most:g}, which must be '
    'at least as many.',
    largest,
  )


class SecureSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """TFF's factory of the same name."""

  def __init__(self, upper: float, lower: float):
    """Sets the bounds between which each entry is clipped."""
    self._sum = tff.aggregators.SecureSumFactory(upper, lower)

  def create(self, value_type: tff.Type) -> tff.templates.AggregationProcess:
    """Returns the process."""
    with _quietly():
      return self._sum.create(value_type)


class SecureWeightFactory(tff.aggregators.UnweightedAggregationFactory):
  """A secure sum of n_k that refuses those above the bound."""

  def __init__(self, most: float):
    """Sets the bound."""
    self._most = float(most)

  def create(self, value_type: tff.Type) -> tff.templates.AggregationProcess:
    """Returns the process; its `next` raises if a weight is above the bound.

    Args:
      value_type: A floating scalar.
    """
    total = SecureSumFactory(self._most, 0.0).create(value_type)

    @tff.tensorflow.computation(value_type)
    def checked(weight):
      return bounded(weight, weight, self._most)

    @tff.federated_computation(
      total.initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, weight):
      return total.next(state, tff.federated_map(checked, weight))

    return tff.templates.AggregationProcess(total.initialize, next_fn)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
  """Has TensorFlow not log which operations were never used."""
  logger = tf.get_logger()
  logger.addFilter(_is_no_complaint)
  try:
    yield
  finally:
    logger.removeFilter(_is_no_complaint)


def _is_no_complaint(record: logging.LogRecord) -> bool:
  return 'Object was never used' not in record.getMessage()
