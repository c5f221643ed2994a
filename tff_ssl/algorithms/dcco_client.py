"""DCCO's client: encode, then minimise the loss of the cohort's statistics.

Pure functions of tensors; `dcco` says where they come from and federates them.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.algorithms import client_functions
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


def statistics_function(
  objective: statistics.StatisticsObjective,
) -> client_functions.ClientFunction:
  """Builds step 1: encoding a client's examples.

  Args:
    objective: Defines the statistics.

  Returns:
    A function of the server's `params` and of `seed`, int32 [2], the round's. It sends
    the `statistics` (means over the examples) and their weight n; where one is not
    finite all are 0 with weight 0.
  """

  def each(shared, examples):
    local = objective.statistics(shared['params'], examples, shared['seed'])
    finite = clients.is_finite(local)
    num_examples = tf.cast(base.example_count(examples), tf.float32)
    return client_functions.ClientResult(
      collections.OrderedDict(statistics=clients.keep_if(finite, local)),
      tf.where(finite, num_examples, 0.0),
    )

  return client_functions.ClientFunction(each, additive=True)


def update_function(
  objective: statistics.StatisticsObjective, config: DCCOConfig
) -> client_functions.ClientFunction:
  """Builds step 3: minimising the loss of the aggregated statistics.

  Args:
    objective: Defines the statistics and their loss.
    config: Learning rate and number of steps.

  Returns:
    A function of `params`, `seed` (the views are those of step 1) and `statistics`: S,
    the cohort's. It sends the `update` (initial minus final weights), its weight n and
    the client's counts; an update that is not finite is 0 with weight 0.
  """

  def gradient(params, examples, shared):
    with tf.GradientTape() as tape:
      tape.watch(params)
      local = objective.statistics(params, examples, shared['seed'])
      loss = objective.loss_of(cco.blend(local, shared['statistics']))
    return tape.gradient(
      loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )

  def each(shared, examples):
    def step(update):
      moved = tf.nest.map_structure(tf.subtract, shared['params'], update)
      # The sum of steps, not the difference of weights, which would round small steps.
      return tf.nest.map_structure(
        lambda u, g: u + config.client_learning_rate * g,
        update,
        gradient(moved, examples, shared),
      )

    update = tf.nest.map_structure(tf.zeros_like, shared['params'])
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
    return client_functions.ClientResult(
      collections.OrderedDict(update=clients.keep_if(contributes, update)),
      tf.where(contributes, tf.cast(num_examples, tf.float32), 0.0),
      clients.counts(num_examples, usable),
    )

  # Appendix A: where S is fixed, the gradient is linear in the client's statistics,
  # which are means. A second step starts where only this client is.
  return client_functions.ClientFunction(each, additive=config.local_steps == 1)
