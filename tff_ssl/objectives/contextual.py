"""Objectives whose loss also depends on values that stay fixed while a client trains.

A server sends such values with the parameters: a teacher's weights, the weight of a
loss in this round, or the models of other clients. They are the objective's context. If
a context is a table of all clients, examples name the row of the client that holds
them.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.objectives import base

# The field of an example with the number of the client that holds it, in [0, N), int32.
CLIENT = 'client'


@dataclasses.dataclass(frozen=True)
class ContextObjective(base.Objective):
  """An objective whose loss takes a context.

  Attributes:
    context: The values that the objective says it needs, constants to gradients; None:
      they are still to be bound.
  """

  context: base.Context | None = dataclasses.field(default=None, kw_only=True)

  def bind_context(self, context: base.Context) -> 'ContextObjective':
    """Returns the same objective with the values of its context."""
    constants = tf.nest.map_structure(tf.stop_gradient, context)
    return dataclasses.replace(self, context=constants)

  @property
  def bound(self) -> base.Context:
    """The values of the context.

    Raises:
      ValueError: If there are none yet.
    """
    if self.context is None:
      raise ValueError(
        f'The context of {type(self).__name__} is None; it must be bound.'
      )
    return self.context


def client_of(examples: base.Examples) -> tf.Tensor:
  """Returns the number of the client that holds these examples; 0 without any."""
  return tf.reduce_sum(examples[CLIENT][:1])


def place_of(examples: base.Examples, population: int) -> tf.Tensor:
  """Returns a client's one-hot place in a table of all: float32 [N], 1 at its number.

  Args:
    examples: The client's.
    population: N.

  Raises:
    tf.errors.InvalidArgumentError: At run time, if the number is not in [0, N).
  """
  client = client_of(examples)
  known = tf.debugging.Assert(
    (client >= 0) & (client < population),
    [
      tf.strings.format(
        f'the `{CLIENT}` of an example is {{}}; it must be in [0, {population}), '
        f'because the population is {population}',
        client,
      )
    ],
  )
  # In eager mode the assertion returns None, or has already raised.
  with tf.control_dependencies([known] if known is not None else []):
    return tf.one_hot(client, population)


def in_row(values: Any, place: tf.Tensor) -> Any:
  """Returns tensors [N, ...] that are 0 except in one row, as a client adds its own.

  Args:
    values: A structure of tensors, of any shapes.
    place: One-hot, [N], such as from `place_of`.
  """

  def placed(x: tf.Tensor) -> tf.Tensor:
    # No product of matrices, which a GPU may round.
    row = tf.reshape(tf.cast(place, x.dtype), [-1, *[1] * x.shape.rank])
    return row * x[tf.newaxis]

  return tf.nest.map_structure(placed, values)


def padded(rows: tf.Tensor, most: int) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns as many rows from every client, and which of them it has.

  Args:
    rows: [n, d], n <= most.
    most: The number of rows.

  Returns:
    [most, d], 0 behind the given rows; and float32 [most], 1 for these.
  """
  count = tf.shape(rows)[0]
  full = tf.pad(rows, [[0, most - count], [0, 0]])
  full = tf.ensure_shape(full, [most, rows.shape[1]])
  return full, tf.cast(tf.range(most) < count, tf.float32)


def is_filled(ones: tf.Tensor) -> tf.Tensor:
  """Returns whether some client has sent a row, for each row of a sum over clients.

  Args:
    ones: Sums of the clients' ones, 1 in each row that one sends. A secure sum of
      zeros need not be exactly 0.
  """
  return tf.round(ones) > 0
