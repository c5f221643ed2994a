"""DCCO's client: encode, then minimise the loss of the cohort's statistics.

Pure functions of tensors; `dcco` says where they come from and federates them.
"""

import dataclasses

import tensorflow as tf

from tff_ssl.algorithms import clients
from tff_ssl.losses import cco
from tff_ssl.objectives import base
from tff_ssl.objectives import statistics


@dataclasses.dataclass(frozen=True)
class DCCOConfig:
  """Hyperparameters of DCCO.

  Attributes:
    client_learning_rate: Of the clients' SGD; 1.0 in the paper (B), where a round
      equals one centralized step whatever the server's optimizer.
    local_steps: SGD steps of a client on all its data; 1 in the paper.
    stale_statistics: Whether clients use the statistics of the previous round, which
      saves the first of the two communications.
    seed: Of the initial weights and of every round's views.
  """

  client_learning_rate: float = 1.0
  local_steps: int = 1
  stale_statistics: bool = False
  seed: int = 0

  def __post_init__(self):
    if not 0 < self.client_learning_rate < float('inf'):
      raise ValueError(
        f'client_learning_rate is {self.client_learning_rate}; it must be positive and '
        'finite.'
      )
    if self.local_steps < 1:
      raise ValueError(f'local_steps is {self.local_steps}; it must be at least 1.')


def client_statistics(
  objective: statistics.StatisticsObjective,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
) -> tuple[base.Params, tf.Tensor]:
  """Encodes a client's examples: step 1.

  Args:
    objective: Defines the statistics.
    params: The server's model.
    examples: The client's n examples.
    seed: int32 [2], the round's.

  Returns:
    The statistics (means over the examples) and their weight, float32: n, or 0 with
    all statistics 0 where one is not finite.
  """
  local = objective.statistics(params, examples, seed)
  finite = clients.is_finite(local)
  num_examples = tf.cast(base.example_count(examples), tf.float32)
  return clients.keep_if(finite, local), tf.where(finite, num_examples, 0.0)


def client_update(
  objective: statistics.StatisticsObjective,
  config: DCCOConfig,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
  aggregated: base.Params,
) -> tuple[base.Params, tf.Tensor, base.Metrics]:
  """Minimises the loss of the aggregated statistics: step 3.

  Args:
    objective: Defines the statistics and their loss.
    config: Learning rate and number of steps.
    params: The server's model.
    examples: The client's n examples.
    seed: int32 [2], the round's: the views are those of `client_statistics`.
    aggregated: S, the cohort's statistics.

  Returns:
    The update (initial minus final weights), its weight n (float32), and the client's
    counts. An update that is not finite is 0 with weight 0.
  """

  def step(update):
    moved = tf.nest.map_structure(tf.subtract, params, update)
    with tf.GradientTape() as tape:
      tape.watch(moved)
      local = objective.statistics(moved, examples, seed)
      loss = objective.loss_of(cco.blend(local, aggregated))
    gradient = tape.gradient(
      loss, moved, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    # The sum of steps, not the difference of weights, which would round small steps.
    return tf.nest.map_structure(
      lambda u, g: u + config.client_learning_rate * g, update, gradient
    )

  update = tf.nest.map_structure(tf.zeros_like, params)
  if config.local_steps == 1:
    update = step(update)
  else:
    (update,) = tf.while_loop(
      cond=lambda _: True,
      body=lambda u: (step(u),),
      loop_vars=(update,),
      maximum_iterations=config.local_steps,
    )
  num_examples = base.example_count(examples)
  usable = clients.is_finite(update)
  contributes = tf.logical_and(usable, num_examples > 0)
  return (
    clients.keep_if(contributes, update),
    tf.where(contributes, tf.cast(num_examples, tf.float32), 0.0),
    clients.counts(num_examples, usable),
  )
