"""Helpers on a client's tensors: reading, checks, finiteness, counts, clipping.

Clients take their examples as one tensor: `dataset.reduce` and iteration instantiate
their functions again for every client and round, which costs ten times the real work.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import aggregations
from tff_ssl.computing import assertions
from tff_ssl.encoders import network
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder

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
    names: Names of the numbers: 'client' in the population, 'group' in this round.

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
  return is_below_overflow(squared_norm(value), weight)


def squared_norm(value: Any) -> tf.Tensor:
  """Returns the squared l2 norm of a structure of floating tensors, float64."""
  # As cheap as a sum. An entry that is not finite makes it inf or NaN.
  halves = [tf.cast(tf.nn.l2_loss(x), tf.float64) for x in tf.nest.flatten(value)]
  return 2 * tf.add_n(halves) if halves else tf.zeros([], tf.float64)


def is_below_overflow(squared: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
  """Returns whether the weighted norm of values is below the overflow limit.

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
    metrics: Metrics of the clients that count; numbers, perhaps nested.
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


# How far floating images may leave [0, 1], as after resizing.
_TOLERANCE = 0.01
_IMAGE_RANK = 3


def check_fields(element_spec: Any, objective: Any) -> None:
  """Checks that examples have what the encoders of an objective read.

  Args:
    element_spec: `tf.TensorSpec`s of one example, or the `packs.PackSpec` of them.
    objective: What clients minimise.

  Raises:
    ValueError: If a field is missing, or is not of an encoder's rank or, for images, of
      its size and of numbers.
  """
  fields = getattr(element_spec, 'element_spec', element_spec)
  if not isinstance(fields, Mapping):
    # Checked with the id of examples.
    return
  for field, encoder in _encoders(objective).items():
    if field not in fields:
      raise ValueError(
        f'The elements of the client data have the fields {", ".join(fields)}; they '
        f'must have `{field}`, which the encoder reads.'
      )
    spec, needed = fields[field], list(encoder.input_shape)
    shape = spec.shape.as_list()
    is_image = len(needed) == _IMAGE_RANK
    if len(shape) != len(needed) or (is_image and shape != needed):
      raise ValueError(
        f'`{field}` of an example has shape {shape}; the encoder takes {needed}.'
      )
    if is_image and spec.dtype != tf.uint8 and not spec.dtype.is_floating:
      raise ValueError(
        f'`{field}` of an example is {spec.dtype.name}; images must be uint8, or '
        'floating from 0 to 1.'
      )


def in_range(examples: base.Examples, objective: Any) -> base.Examples:
  """Returns examples whose floating images are from 0 to 1, or not finite.

  Clients with images that are not finite are discarded and counted. Images of uint8, as
  all programs have them, need no check.

  Args:
    examples: n >= 0 examples.
    objective: What clients minimise.

  Raises:
    ValueError: When it runs in one of our contexts and an image is out of range.
  """
  for field, encoder in _encoders(objective).items():
    images = examples[field]
    if len(encoder.input_shape) != _IMAGE_RANK or not images.dtype.is_floating:
      continue
    finite = tf.where(tf.math.is_finite(images), images, tf.zeros([], images.dtype))
    low, high = tf.reduce_min(finite), tf.reduce_max(finite)
    examples = assertions.checked(
      examples,
      (low >= -_TOLERANCE) & (high <= 1 + _TOLERANCE),
      f'`{field}` of an example is from {{}} to {{}}; floating images must be from 0 '
      'to 1, and those from 0 to 255 must be uint8.',
      low,
      high,
    )
  return examples


def _encoders(objective: Any) -> dict[str, network.Network]:
  """Returns the encoders of an objective by the field that they read."""
  networks = {} if objective is None else objective.networks
  return {
    dual_encoder.field_of(prefix, net): net
    for prefix, net in networks.items()
    if prefix in dual_encoder.ENCODERS
  }


def squares_of_rows(values: Any) -> tf.Tensor:
  """Returns the squared l2 norm of what each client sends, float32 [K].

  Args:
    values: A structure of floating tensors [K, ...], a row for each client.
  """
  squares = [_row_sums(tf.square(x)) for x in tf.nest.flatten(values)]
  return tf.add_n([tf.cast(s, tf.float32) for s in squares])


def sum_of_rows(
  values: Any,
  weights: tf.Tensor,
  norm: float | None = None,
  squares: tf.Tensor | None = None,
) -> Any:
  """Returns the sum over clients of weight times value, each product clipped first.

  Args:
    values: A structure of floating tensors [K, ...], a row for each client.
    weights: float32 [K]; a client of weight 0 adds nothing, whatever its values.
    norm: The l2 norm, over the whole structure, to which each client's product is
      clipped; None: it is not.
    squares: As of `squares_of_rows`, if known.

  Returns:
    The structure of tensors [...].
  """
  kept = tf.nest.map_structure(lambda x: _without_unweighted(x, weights), values)
  factors = weights
  if norm is not None:
    squares = squares_of_rows(values) if squares is None else squares
    lengths = weights * tf.sqrt(squares)
    factors = weights * tf.minimum(1.0, tf.math.divide_no_nan(norm, lengths))
    # A product of length 0, or of weight 0, needs no clipping.
    factors = tf.where(lengths > 0, factors, weights)
  return tf.nest.map_structure(
    lambda x: tf.tensordot(tf.cast(factors, x.dtype), x, axes=1), kept
  )


def clip(value: Any, norm: float) -> Any:
  """Returns one client's structure of floating tensors, clipped to an l2 norm.

  Not by `tf.clip_by_global_norm`, which gives NaN if the square of the norm overflows.

  Args:
    value: What the client sends, finite.
    norm: Over the whole structure.
  """
  row = tf.nest.map_structure(lambda x: x[tf.newaxis], value)
  return sum_of_rows(row, tf.ones([1]), norm)


def _without_unweighted(x: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
  """Returns the rows, zero where the weight is 0: a product would keep NaN."""
  used = tf.reshape(weights > 0, [-1, *[1] * (x.shape.rank - 1)])
  return tf.where(used, x, tf.zeros([], x.dtype))


def _row_sums(x: tf.Tensor) -> tf.Tensor:
  return tf.reduce_sum(x, list(range(1, x.shape.rank)))
