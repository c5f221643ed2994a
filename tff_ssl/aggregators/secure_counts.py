"""Secure sums of whole numbers: counts, and how many parameters are sent."""

import numpy as np
import tensorflow_federated as tff
import tree

from tff_ssl.aggregators import secure_values

# More parameters than any model has; the sum over 2^20 clients still fits int64.
_MOST_NUMBERS = 2**40


class SecureCountFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums counts securely, each of them clipped to a bound.

  int32 values count clients and examples; `max_count` is their bound. int64 values
  count parameters that are sent (eleven million for a ResNet-18); their bound is 2^40.
  """

  def __init__(self, max_count: int):
    """Sets the bound.

    Args:
      max_count: The bound of each count that is not int64.
    """
    self._max_count = max_count

  def create(self, value_type: tff.Type) -> tff.templates.AggregationProcess:
    """Returns the process.

    Args:
      value_type: Integers of one type, alone or in a structure.
    """
    types = tff.types.structure_from_tensor_type_tree(lambda t: t.dtype, value_type)
    is_wide = all(dtype == np.int64 for dtype in tree.flatten(types))
    most = _MOST_NUMBERS if is_wide else self._max_count
    return secure_values.SecureSumFactory(most, 0).create(value_type)
