"""Expected numbers of clients and examples, in place of a round's counts.

If each client joins a cohort independently at random, the size of the cohort can reveal
whether a client was in it. Sums are then divided by the expected total (McMahan et al.,
"Learning Differentially Private Recurrent Language Models", ICLR 2018, the estimator
f_f).
"""

import collections
from collections.abc import Mapping
import dataclasses

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class Expected(kinds.Kind):
  """The expected numbers of a round whose cohort has a random size.

  Attributes:
    clients: Expected number of clients in a cohort.
    examples: Expected number of examples of all these clients together.
    weights: Expected sum of their weights, by which sums are divided; None: clients are
      weighted by their examples.
  """

  clients: kinds.Positive
  examples: kinds.Positive
  weights: kinds.Positive | None = None

  @property
  def divisor(self) -> float:
    """Returns by what sums over the clients are divided."""
    return self.examples if self.weights is None else self.weights


def factories(
  expected: Expected | None,
) -> tuple[tff.aggregators.UnweightedAggregationFactory | None, ...]:
  """Builds factories of expected sums of weights and counts; None: of real ones."""
  if expected is None:
    return None, None
  counts = {'clients': expected.clients, 'examples': expected.examples}
  return KnownFactory(expected.divisor), KnownFactory(counts)


class KnownFactory(tff.aggregators.UnweightedAggregationFactory):
  """Returns known numbers in place of sums over clients.

  The created process has `next(state, value@CLIENTS)` and ignores the value: nothing of
  it leaves a client.
  """

  def __init__(self, known: float | Mapping[str, float]):
    """Initializes the factory.

    Args:
      known: The number, or numbers by field; a field that is not named is 0.
    """
    self._known = known

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: A scalar if `known` is one number, otherwise a structure of named
        scalars.

    Raises:
      ValueError: If the type does not fit the known numbers.
    """
    known = self._of(value_type)

    @tff.tensorflow.computation
    def tell():
      return known()

    @tff.federated_computation
    def initialize():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      initialize.type_signature.result, tff.FederatedType(value_type, tff.CLIENTS)
    )
    def next_fn(state, value):
      del value
      return tff.templates.MeasuredProcessOutput(
        state,
        tff.federated_eval(tell, tff.SERVER),
        tff.federated_value((), tff.SERVER),
      )

    return tff.templates.AggregationProcess(initialize, next_fn)

  def _of(self, value_type):
    """Returns a function that makes the known numbers as tensors of a type."""
    known = self._known
    if not isinstance(known, Mapping):
      if isinstance(value_type, tff.TensorType) and value_type.shape == ():
        return lambda: tf.constant(_rounded(known, value_type), value_type.dtype)
      raise ValueError(f'The value has type {value_type}; it must be a number.')
    is_struct = isinstance(value_type, tff.StructType)
    names = dict(tff.structure.iter_elements(value_type)) if is_struct else {}
    if (
      not names or set(known) - set(names) or any(t.shape != () for t in names.values())
    ):
      raise ValueError(
        f'The value has type {value_type}; it must be named numbers, including '
        f'{", ".join(known)}.'
      )
    return lambda: collections.OrderedDict(
      (name, tf.constant(_rounded(known.get(name, 0), of_name), of_name.dtype))
      for name, of_name in names.items()
    )


def _rounded(value: float, value_type: tff.TensorType) -> float:
  return round(value) if np.issubdtype(value_type.dtype, np.integer) else value
