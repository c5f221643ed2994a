"""Steps of a client on all of its examples at once."""

from collections.abc import Callable
import dataclasses

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.objectives import base


@dataclasses.dataclass(frozen=True)
class LocalSteps(kinds.Kind):
  """How a client trains in a round.

  Attributes:
    client_learning_rate: Learning rate of the clients' SGD; 1.0 in the paper (B), where
      a round equals one centralized step whatever the server's optimizer.
    local_steps: SGD steps of a client on all its data; 1 in the paper.
  """

  client_learning_rate: kinds.Positive = 1.0
  local_steps: kinds.Count = 1

  def descend(
    self, params: base.Params, gradient: Callable[[base.Params], base.Params]
  ) -> base.Params:
    """Takes the steps from some parameters.

    Args:
      params: Where they start.
      gradient: Parameters -> gradient.

    Returns:
      The update: initial minus final parameters.
    """

    def step(update):
      moved = tf.nest.map_structure(tf.subtract, params, update)
      # The sum of steps, not the difference of weights, which would round small steps.
      return tf.nest.map_structure(
        lambda u, g: u + self.client_learning_rate * g, update, gradient(moved)
      )

    update = tf.nest.map_structure(tf.zeros_like, params)
    if self.local_steps == 1:
      return step(update)
    (update,) = tf.while_loop(
      cond=lambda _: True,
      body=lambda u: (step(u),),
      loop_vars=(update,),
      maximum_iterations=self.local_steps,
    )
    return update
