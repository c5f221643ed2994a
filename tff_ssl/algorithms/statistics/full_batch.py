"""Steps of a client on all of its examples at once."""

from collections.abc import Callable

import tensorflow as tf

from tff_ssl.objectives import base
from tff_ssl.settings import learning


def descend(
  clients: learning.StepClients,
  params: base.Params,
  gradient: Callable[[base.Params], base.Params],
) -> base.Params:
  """Takes the steps from some parameters.

  Args:
    clients: Rate and number of steps; at rate 1.0 a step is one of the server's
      optimizer, whatever it is.
    params: Where they start.
    gradient: Parameters -> gradient.

  Returns:
    The update: initial minus final parameters.
  """

  def step(update):
    moved = tf.nest.map_structure(tf.subtract, params, update)
    # The sum of steps, not the difference of weights, which would round small steps.
    return tf.nest.map_structure(
      lambda u, g: u + clients.learning_rate * g, update, gradient(moved)
    )

  update = tf.nest.map_structure(tf.zeros_like, params)
  if clients.local_steps == 1:
    return step(update)
  (update,) = tf.while_loop(
    cond=lambda _: True,
    body=lambda u: (step(u),),
    loop_vars=(update,),
    maximum_iterations=clients.local_steps,
  )
  return update
