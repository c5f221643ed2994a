"""A process whose clients have a number, in the form of one whose clients have none.

The tests of algorithms then run both. A client's number is the id of its first example,
modulo the population: those of the tests' cohorts differ.
"""

import collections

import numpy as np
import tensorflow as tf

from tff_ssl.federated import packs
from tff_ssl.objectives import contextual

POPULATION = 16
SPEC = tf.TensorSpec([], tf.int32)


class Numbered:
  """Runs a process on cohorts of data sets, or of packs of them, without a number."""

  def __init__(self, process):
    self.process = process
    self.initialize = process.initialize
    self.get_model_weights = process.get_model_weights

  def next(self, state, datasets):
    return self.process.next(state, [numbered(dataset) for dataset in datasets])


def numbered(dataset):
  """Adds the number to the examples of a client, or to those of a pack of them."""
  if packs.SIZES not in dataset.element_spec:
    numbers = [int(element['example_id']) for element in dataset] or [0]
    number = tf.constant(numbers[0] % POPULATION, tf.int32)
    return dataset.map(
      lambda element: collections.OrderedDict(element, **{contextual.CLIENT: number})
    )
  (pack,) = dataset.as_numpy_iterator()
  ids, sizes = pack[packs.EXAMPLES]['example_id'], pack[packs.SIZES]
  starts = np.cumsum(sizes) - sizes
  held = [
    ids[start] % POPULATION for start, size in zip(starts, sizes, strict=True) if size
  ]
  numbers = np.repeat(held, sizes[sizes > 0]).astype(np.int32)
  examples = collections.OrderedDict(
    pack[packs.EXAMPLES], **{contextual.CLIENT: numbers}
  )
  return tf.data.Dataset.from_tensors(packs.content(examples, sizes))
