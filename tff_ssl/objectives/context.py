"""Objectives whose loss also depends on values that stay fixed while a client trains.

A server sends such values with the parameters: a teacher's weights, the weight of a
loss in this round, or the models of other clients. An objective names them as its
context; `given` makes an ordinary objective of an objective and the values of its
context. If a context is a table of all clients, examples name the row of the client
that holds them.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import tensorflow as tf

from tff_ssl.objectives import base

# Structures of tensors by name; no gradient flows into them.
Context = Mapping[str, Any]
# Of an example: the number of the client that holds it, in [0, N), int32.
CLIENT = 'client'


@runtime_checkable
class Contextual(Protocol):
  """An objective whose loss takes a context."""

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters; see `base.Objective`."""

  def loss_in_context(
    self,
    params: base.Params,
    context: Context,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss and metrics of a batch; see `base.Objective.loss`.

    Args:
      params: As made by `init`.
      context: The values that the objective says it needs.
      examples: n >= 0 examples.
      seed: int32 [2], the round's.
    """

  def summarize(self, metrics: base.Metrics) -> base.Metrics:
    """Turns averaged `metrics` into what a round reports; see `base.Objective`."""


class Given:
  """A contextual objective with its context: a `base.Objective`."""

  def __init__(self, objective: Contextual, context: Context):
    """Holds both.

    Args:
      objective: What is minimised.
      context: Values for it, constants from now on.
    """
    self._objective = objective
    self._context = tf.nest.map_structure(tf.stop_gradient, context)
    self.networks = objective.networks if isinstance(objective, base.Networked) else {}
    self.init = objective.init
    self.summarize = objective.summarize

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss and metrics of a batch; see `base.Objective`."""
    return self._objective.loss_in_context(params, self._context, examples, seed)


def given(
  objective: base.Objective | base.Stateful | Contextual, context: Context
) -> base.Objective | base.Stateful:
  """Returns an objective that needs no context: itself if it takes none.

  Args:
    objective: Any.
    context: For one that is `Contextual`; others ignore it.
  """
  return Given(objective, context) if isinstance(objective, Contextual) else objective


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
