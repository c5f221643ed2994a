"""Objectives whose loss also depends on values that stay fixed while a client trains.

A server sends such values with the parameters: a teacher's weights, the weight of a
loss in this round, or the models of other clients. They are the objective's context. If
a context is a table of all clients, examples name the row of the client that holds
them.
"""

import dataclasses

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
