"""The server's part of a round: seeds, the optimizer, and the learning process.

The five named parts of a `tff.learning.templates.LearningProcess` are put together
here; an algorithm brings its client work.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import beside
from tff_ssl.algorithms import clients
from tff_ssl.objectives import base
from tff_ssl.objectives import context
from tff_ssl.objectives import population

# Salts of the streams drawn from a run's seed.
_INITIAL_WEIGHTS = 0
_ROUNDS = 1


def initial_weights(
  objective: base.Objective | base.Stateful | context.Contextual, seed: int
) -> tff.learning.models.ModelWeights:
  """Returns an objective's initial weights for a run's seed.

  What is not trainable are the population statistics of batch norm, by name.
  """
  return tff.learning.models.ModelWeights(
    trainable=objective.init(tf.constant([seed, _INITIAL_WEIGHTS], tf.int32)),
    non_trainable=population.initial(objective),
  )


def initial_round_seed(seed: int) -> tf.Tensor:
  """Returns the seed of round 0, int32 [2]."""
  return _full_range(tf.constant([seed, _ROUNDS], tf.int32))


def next_round_seed(round_seed: tf.Tensor) -> tf.Tensor:
  """Returns the seed of the round after the one with this seed, int32 [2]."""
  return _full_range(round_seed)


def _full_range(seed: tf.Tensor) -> tf.Tensor:
  return tf.random.stateless_uniform(
    [2], seed, minval=None, maxval=None, dtype=tf.int32
  )


def nothing_arrived(state, update):
  """Tells the finalizer to leave everything as it is.

  An update that is exactly zero means that no client contributed: an optimizer with
  momentum would still move, so it is not asked.
  """
  del state
  total = tf.add_n([tf.reduce_sum(tf.abs(x)) for x in tf.nest.flatten(update)])
  unusable = tf.logical_or(tf.equal(total, 0), tf.logical_not(tf.math.is_finite(total)))
  return unusable, {'update_rejected': tf.cast(unusable, tf.int32)}


def round_seeds(
  seed: int,
) -> tuple[tff.Computation, Callable[[tff.Value], tff.Value]]:
  """Returns the seeds of the rounds as a piece of a server state.

  Args:
    seed: Of the run.

  Returns:
    () -> the seed of round 0, and a function from a round's seed at the server to the
    next one's.
  """

  @tff.tensorflow.computation
  def initial():
    return initial_round_seed(seed)

  following = tff.tensorflow.computation(next_round_seed, initial.type_signature.result)
  return initial, lambda round_seed: tff.federated_map(following, round_seed)


def first_round() -> tff.Value:
  """Returns the number of the first round, 0, at the server."""
  number = tff.tensorflow.computation(lambda: tf.constant(0, tf.int32))
  return tff.federated_eval(number, tff.SERVER)


def next_round(round: tff.Value) -> tff.Value:
  """Returns the number of the round after one, at the server."""
  step = tff.tensorflow.computation(lambda number: number + 1, np.int32)
  return tff.federated_map(step, round)


def build_finalizer(
  weights_type: tff.Type, optimizer: tff.learning.optimizers.Optimizer
) -> tff.learning.templates.FinalizerProcess:
  """Builds the part that applies an aggregated update, if there is one.

  Where the weights have population statistics, it comes with new ones, as `beside` has
  them, and these replace the old: an optimizer would take them for gradients.
  """
  finalizer = tff.learning.templates.build_apply_optimizer_finalizer(
    optimizer, weights_type, should_reject_update=nothing_arrived
  )
  if not list(weights_type.non_trainable.children()):
    return finalizer
  update_type = beside.result_type(weights_type.trainable, weights_type.non_trainable)

  @tff.tensorflow.computation(
    weights_type.non_trainable, update_type[beside.STATISTICS]
  )
  def latest(old, arrived):
    return clients.choose(arrived['num_examples'] > 0, arrived['statistics'], old)

  @tff.federated_computation(
    finalizer.initialize.type_signature.result,
    tff.FederatedType(weights_type, tff.SERVER),
    tff.FederatedType(update_type, tff.SERVER),
  )
  def next_fn(state, weights, update):
    output = finalizer.next(state, weights, update[beside.UPDATE])
    statistics = tff.federated_map(
      latest, (weights.non_trainable, update[beside.STATISTICS])
    )
    return tff.templates.MeasuredProcessOutput(
      output.state,
      tff.federated_zip(
        tff.learning.models.ModelWeights(output.result.trainable, statistics)
      ),
      output.measurements,
    )

  return tff.learning.templates.FinalizerProcess(
    finalizer.initialize,
    next_fn,
    get_hparams_fn=finalizer.get_hparams,
    set_hparams_fn=finalizer.set_hparams,
  )


def compose(
  initial_fn: tff.Computation,
  client_work: tff.learning.templates.ClientWorkProcess,
  updates: tff.aggregators.WeightedAggregationFactory,
  optimizer: tff.learning.optimizers.Optimizer,
) -> tff.learning.templates.LearningProcess:
  """Composes a learning process from an algorithm's client work.

  Args:
    initial_fn: () -> initial model weights.
    client_work: What a client does with the model and its data.
    updates: Aggregates the model updates, weighted; with population statistics beside
      them where the weights have some (see `beside`).
    optimizer: Applies the aggregated update (initial minus final weights) as a
      gradient.

  Returns:
    The learning process.
  """
  weights_type = initial_fn.type_signature.result
  result_type = client_work.next.type_signature.result.result.member
  return tff.learning.templates.compose_learning_process(
    initial_fn,
    tff.learning.templates.build_broadcast_process(weights_type),
    client_work,
    updates.create(result_type.update, result_type.update_weight),
    build_finalizer(weights_type, optimizer),
  )
