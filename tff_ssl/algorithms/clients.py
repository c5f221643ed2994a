"""What every algorithm's clients have in common.

Clients take their examples as one tensor: `dataset.reduce` and iteration instantiate
their functions anew for every client and round, which costs ten times the real work.
"""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.objectives import base
from tff_ssl.objectives import context

# More than any client holds; the batch takes only what is there.
_EVERYTHING = 2**31 - 1


def check_element(element_spec: Any) -> None:
  """Checks that a type is that of one example.

  Args:
    element_spec: `tf.TensorSpec`s of one example, with at least `example_id`.

  Raises:
    ValueError: If there is no scalar `example_id`, as when elements are batches.
  """
  spec = element_spec.get('example_id') if hasattr(element_spec, 'get') else None
  if spec is None or spec.shape.rank != 0:
    raise ValueError(
      f'The elements of the client data are {element_spec}; they must be single '
      'examples (not batches) with an int64 scalar `example_id`.'
    )


def check_numbered(element_spec: Any) -> None:
  """Checks that examples name the number of the client that holds them.

  Args:
    element_spec: `tf.TensorSpec`s of one example, or the `packs.PackSpec` of them.

  Raises:
    ValueError: If there is no int32 scalar `client`.
  """
  spec = getattr(element_spec, 'element_spec', element_spec).get(context.CLIENT)
  if spec is None or spec.shape.rank != 0 or spec.dtype != tf.int32:
    raise ValueError(
      f'The elements of the client data are {element_spec}; they must have an int32 '
      f'scalar `{context.CLIENT}`.'
    )


def check_not_noised(aggregation: aggregation_lib.Aggregation | None) -> None:
  """Checks that a table of what each client sent can be told from an empty one.

  Args:
    aggregation: What the table goes through; plain when None.

  Raises:
    ValueError: If noise is added.
  """
  if aggregation is not None and aggregation.noised:
    raise ValueError(
      'The aggregation adds noise, as a private one does; here it must add none, for '
      'the server keeps a table of what each client sent, and noise in the place of a '
      'client that sent nothing would pass for something sent.'
    )


def shared_type(params_type: tff.Type, **others: tff.Type) -> tff.StructType:
  """Returns the type of what clients share: `params`, the round's `seed`, and others.

  Args:
    params_type: Of the parameters.
    **others: By name, what an algorithm adds.
  """
  return tff.types.to_type(
    collections.OrderedDict(
      params=params_type, seed=tff.TensorType(np.int32, [2]), **others
    )
  )


def all_examples(dataset: tf.data.Dataset) -> base.Examples:
  """Returns a client's examples as tensors with a leading dimension n >= 0."""
  batches = dataset.batch(_EVERYTHING)
  empty = tf.nest.map_structure(
    lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype), batches.element_spec
  )
  # An empty data set has no batch at all: the empty one stands behind it.
  padded = batches.concatenate(tf.data.Dataset.from_tensors(empty))
  return padded.take(1).get_single_element()


def is_finite(value: Any) -> tf.Tensor:
  """Returns whether every entry of a structure of floating tensors is finite."""
  # One sum per tensor is cheaper than an element-wise test of each, and is not finite
  # if any entry is not (a sum that overflows is as useless to the server).
  sums = [tf.reduce_sum(x) for x in tf.nest.flatten(value)]
  return tf.math.is_finite(tf.add_n([tf.cast(s, tf.float64) for s in sums]))


def choose(condition: tf.Tensor, value: Any, other: Any) -> Any:
  """Returns one of two structures of tensors of equal shapes, by a scalar condition."""
  # Not `tf.where`: broadcasting the condition costs it four times as much.
  return tf.nest.map_structure(
    lambda x, y: tf.raw_ops.Select(condition=condition, x=x, y=y), value, other
  )


def keep_if(condition: tf.Tensor, value: Any) -> Any:
  """Returns `value` where the scalar condition holds, else zeros of the same shape."""
  return choose(condition, value, tf.nest.map_structure(tf.zeros_like, value))


def zeros(value_type: tff.Type):
  """Returns zeros of an unplaced type of tensors, to be called while tracing."""
  return tff.types.structure_from_tensor_type_tree(
    lambda t: tf.zeros(t.shape, t.dtype), value_type
  )


def counts(num_examples: tf.Tensor, usable: tf.Tensor) -> base.Metrics:
  """Returns the int32 counts that every client reports, or their sums over clients.

  Args:
    num_examples: int32, the examples the client holds, a scalar; or those of K
      clients, [K].
    usable: bool scalar, whether all that was computed was finite.

  Returns:
    `clients` (1, or K), `examples` (0 when not usable), `empty_clients`,
    `nonfinite_clients`.
  """
  num_clients = tf.size(num_examples)
  return collections.OrderedDict(
    clients=num_clients,
    examples=tf.where(usable, tf.reduce_sum(num_examples), 0),
    # Not `==`: inside a TFF computation it compares Python objects, and is False.
    empty_clients=tf.reduce_sum(tf.cast(tf.equal(num_examples, 0), tf.int32)),
    nonfinite_clients=tf.where(usable, 0, num_clients),
  )


def traffic(num_clients: tf.Tensor, *, down: int, up: int) -> base.Metrics:
  """Returns the bytes that a round moves, from those of one client.

  Args:
    num_clients: int32 scalar, the cohort's size.
    down: Bytes from the server to one client.
    up: Bytes from one client to the server.

  Returns:
    int64 `bytes_down` and `bytes_up` of the whole cohort.
  """
  cohort = tf.cast(num_clients, tf.int64)
  return collections.OrderedDict(bytes_down=cohort * down, bytes_up=cohort * up)


def report(
  metrics: base.Metrics,
  counts: base.Metrics,
  summarize: Callable[[base.Metrics], base.Metrics],
  *,
  down: int,
  up: int,
) -> base.Metrics:
  """Returns what a round reports of its clients.

  Args:
    metrics: Averaged over examples, with `loss`.
    counts: Summed over clients.
    summarize: The objective's; turns the other metrics into scalars.
    down: Bytes from the server to one client.
    up: Bytes from one client to the server.
  """
  averaged = collections.OrderedDict(metrics)
  result = collections.OrderedDict(loss=averaged.pop('loss'))
  result.update(summarize(averaged))
  result.update(counts)
  result.update(traffic(counts['clients'], down=down, up=up))
  return result
