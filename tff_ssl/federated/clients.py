"""Functions of one client's tensors that every algorithm needs.

Clients take their examples as one tensor: `dataset.reduce` and iteration instantiate
their functions again for every client and round, which costs ten times the real work.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import aggregations
from tff_ssl.objectives import base

# More than any client holds; the batch takes only what is there.
_EVERYTHING = 2**31 - 1
# Of the l2 norm of what a client adds to a sum: 2^63.
_LARGEST_SQUARE = 2.0**126


def check_element(element_spec: Any) -> None:
  """Checks that a type is that of one example.

  Args:
    element_spec: `tf.TensorSpec`s of one example, with at least `example_id`.

  Raises:
    ValueError: If there is no int64 scalar `example_id`, as when elements are batches,
      or `label` is not an int32 scalar.
  """
  spec = element_spec.get('example_id') if hasattr(element_spec, 'get') else None
  if spec is None or spec.shape.rank != 0 or spec.dtype != tf.int64:
    raise ValueError(
      f'The elements of the client data are {element_spec}; they must be single '
      'examples (not batches) with an int64 scalar `example_id`.'
    )
  label = element_spec.get('label')
  if label is not None and (label.shape.rank != 0 or label.dtype != tf.int32):
    raise ValueError(
      f'`label` of an example is {label.dtype.name} of shape {label.shape}; it must be '
      'an int32 scalar, -1 where there is none.'
    )


def check_numbers(element_spec: Any, names: Sequence[str]) -> None:
  """Checks that examples have the numbers of the client that holds them.

  Args:
    element_spec: `tf.TensorSpec`s of one example, or the `packs.PackSpec` of them.
    names: Of the numbers: 'client' in the population, 'group' in this round.

  Raises:
    ValueError: If one of the names has no int32 scalar.
  """
  fields = getattr(element_spec, 'element_spec', element_spec)
  for name in names:
    spec = fields.get(name)
    if spec is None or spec.shape.rank != 0 or spec.dtype != tf.int32:
      raise ValueError(
        f'The elements of the client data are {fields}; they must have an int32 '
        f'scalar `{name}`.'
      )


def check_not_noised(aggregation: aggregations.Aggregation) -> None:
  """Checks that no noise is added: the server must see which clients sent something.

  Args:
    aggregation: Applied to the table.

  Raises:
    ValueError: If noise is added.
  """
  if aggregation.noised:
    raise ValueError(
      'The aggregation adds noise, as a private one does; this algorithm needs one '
      'without noise, because its server stores what each client sent and could not '
      'tell it from the noise.'
    )


def all_examples(dataset: tf.data.Dataset) -> base.Examples:
  """Returns a client's examples as tensors with a leading dimension n >= 0."""
  batches = dataset.batch(_EVERYTHING)
  empty = tf.nest.map_structure(
    lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype), batches.element_spec
  )
  # An empty data set has no batch at all: the empty batch is appended for it.
  padded = batches.concatenate(tf.data.Dataset.from_tensors(empty))
  return padded.take(1).get_single_element()


def is_finite(value: Any) -> tf.Tensor:
  """Returns whether every entry of a structure of floating tensors is finite."""
  # One sum per tensor is cheaper than an element-wise test of each, and is not finite
  # if any entry is not (a sum that overflows is as useless to the server).
  sums = [tf.cast(tf.reduce_sum(x), tf.float64) for x in tf.nest.flatten(value)]
  return tf.math.is_finite(tf.add_n(sums)) if sums else tf.constant(True)


def is_usable(value: Any, weight: tf.Tensor) -> tf.Tensor:
  """Returns whether a client's weighted values can be added to those of others.

  They cannot if an entry is not finite, or the l2 norm of weight times all of them is
  above 2^63. The square of a norm twice as large is infinite in float32: clipping would
  make NaN of it, and the sum over clients, of which one can drown all others, might be
  infinite.

  Args:
    value: A structure of floating tensors.
    weight: float32, the client's, or the sum over the clients whose mean `value` is.
  """
  # As cheap as a sum. An entry that is not finite makes it inf or NaN.
  halves = [tf.cast(tf.nn.l2_loss(x), tf.float64) for x in tf.nest.flatten(value)]
  if not halves:
    return tf.constant(True)
  return can_be_added(2 * tf.add_n(halves), weight)


def can_be_added(squared: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
  """Returns whether weight times values of a squared norm is short enough.

  Args:
    squared: Floating, of any shape; see `is_usable`.
    weight: float32, of the same shape.
  """
  square = tf.square(tf.cast(weight, tf.float64)) * tf.cast(squared, tf.float64)
  return square <= _LARGEST_SQUARE


def choose(condition: tf.Tensor, value: Any, other: Any) -> Any:
  """Returns one of two structures of tensors of equal shapes, by a scalar condition."""
  # Not `tf.where`: broadcasting the condition costs it four times as much.
  return tf.nest.map_structure(
    lambda x, y: tf.raw_ops.Select(condition=condition, x=x, y=y), value, other
  )


def keep_if(condition: tf.Tensor, value: Any) -> Any:
  """Returns `value` if the scalar condition holds, otherwise zeros of its shape."""
  return choose(condition, value, tf.nest.map_structure(tf.zeros_like, value))


def zeros(specs: Any) -> Any:
  """Returns zeros of a structure of `tf.TensorSpec`s."""
  return tf.nest.map_structure(lambda x: tf.zeros(x.shape, x.dtype), specs)


def with_counts(metrics: Mapping[str, Any], counted: base.Metrics) -> base.Metrics:
  """Returns a cohort's metrics, NaN if no example was counted, and its counts.

  Without examples the combined values are 0. What an objective computes from these (a
  loss of statistics that are all 0) was never measured.

  Args:
    metrics: Of the clients that count; numbers, perhaps nested.
    counted: Sums of `counts` over the cohort.
  """
  nothing = counted['examples'] < 1
  work = collections.OrderedDict(
    (name, tf.nest.map_structure(lambda x: _unless(nothing, x), value))
    for name, value in metrics.items()
  )
  work.update(counted)
  return work


def _unless(nothing: tf.Tensor, value: Any) -> tf.Tensor:
  tensor = tf.convert_to_tensor(value)
  if not tensor.dtype.is_floating:
    return tensor
  return tf.where(nothing, tf.constant(np.nan, tensor.dtype), tensor)


def counts(num_examples: tf.Tensor, finite: tf.Tensor) -> base.Metrics:
  """Returns the int32 counts that every client reports, or their sums over clients.

  Args:
    num_examples: int32, the examples the client holds, a scalar; or those of K
      clients, [K].
    finite: bool scalar, whether all that was computed was finite.

  Returns:
    `clients` (1, or K), `examples` (0 when not finite), `empty_clients`, and
    `nonfinite_clients`, of those that are not empty.
  """
  num_clients = tf.size(num_examples)
  # Not `==`: inside a TFF computation it compares Python objects, and is False.
  empty = tf.reduce_sum(tf.cast(tf.equal(num_examples, 0), tf.int32))
  return collections.OrderedDict(
    clients=num_clients,
    examples=tf.where(finite, tf.reduce_sum(num_examples), 0),
    empty_clients=empty,
    # No client is in both: `counting` subtracts the two.
    nonfinite_clients=tf.where(finite, 0, num_clients - empty),
  )


def counting(counted: Mapping[str, tf.Tensor]) -> tf.Tensor:
  """Returns how many clients count: those neither empty nor non-finite; int32.

  Args:
    counted: What `counts` returns, or its sums over clients.
  """
  return counted['clients'] - counted['empty_clients'] - counted['nonfinite_clients']


def no_counts() -> base.Metrics:
  """Returns what `counts` returns, summed over no client: zeros."""
  return collections.OrderedDict(
    (name, tf.constant(0))
    for name in ('clients', 'examples', 'empty_clients', 'nonfinite_clients')
  )
