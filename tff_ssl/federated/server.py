"""The server's part of a round: seeds, initial state, optimizer, and what is reported.

Pure functions of tensors, from which algorithms compose `broadcast` and `receive`.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.computing import seeds
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics

# Salts of the streams drawn from a run's seed.
_INITIAL_WEIGHTS = 0
_ROUNDS = 1

# Names of the payloads of most algorithms: initial minus final weights, the
# objective's metrics with `loss`, and with batch norm the statistics of its population.
UPDATE, METRICS, STATISTICS = 'update', 'metrics', 'statistics'


def initial_weights(
  objective: base.Objective, seed: int
) -> tff.learning.models.ModelWeights:
  """Returns an objective's initial weights for a run's seed.

  The weights that are not trainable are batch norm's population statistics, by name.
  """
  return tff.learning.models.ModelWeights(
    trainable=objective.init(seed_of_weights(seed)),
    non_trainable=batch_norm_statistics.initial(objective),
  )


def seed_of_weights(seed: int) -> tf.Tensor:
  """Returns the seed of the initial weights for a run's seed, int32 [2]."""
  return tf.constant(seeds.stream(seed, _INITIAL_WEIGHTS))


def as_weights(params: base.Params) -> tff.learning.models.ModelWeights:
  """Returns parameters as model weights without anything that is not trainable."""
  return tff.learning.models.ModelWeights(params, collections.OrderedDict())


def with_params(state: phases.ServerState, params: base.Params) -> phases.ServerState:
  """Returns a state with other parameters, and the population statistics it had."""
  weights = state.global_model_weights
  return state._replace(
    global_model_weights=tff.learning.models.ModelWeights(params, weights.non_trainable)
  )


def replaced(state: tff.Value, **fields: Any) -> Any:
  """Returns the state of a process, in a federated computation, with other fields.

  The others pass on without TensorFlow. TFF would write them in it, which names each
  tensor of the state: a twelfth of what is traced.
  """
  container = state.type_signature.python_container
  own = {name: getattr(state, name) for name in container._fields}
  return container(**{**own, **fields})


def initial_round_seed(seed: int) -> tf.Tensor:
  """Returns the seed of round 0, int32 [2]."""
  return next_round_seed(tf.constant(seeds.stream(seed, _ROUNDS)))


def next_round_seed(round_seed: tf.Tensor) -> tf.Tensor:
  """Returns the seed of the round after the one with this seed, int32 [2]."""
  # Without bounds: any of the 2^32 integers.
  return tf.random.stateless_uniform(
    [2], round_seed, minval=None, maxval=None, dtype=tf.int32
  )


def initial_state(
  weights: tff.learning.models.ModelWeights,
  seed: int,
  optimizer: Any = (),
  **extra: Any,
) -> phases.ServerState:
  """Returns the server's state before round 0.

  Args:
    weights: The initial model.
    seed: Seed of the run.
    optimizer: A `tff.learning.optimizers.Optimizer` of the trainable weights, which is
      initialized; or the state of another optimizer.
    **extra: What else the server keeps, by name.
  """
  if isinstance(optimizer, tff.learning.optimizers.Optimizer):
    optimizer = optimizer.initialize(
      tf.nest.map_structure(
        lambda x: tf.TensorSpec(x.shape, x.dtype), weights.trainable
      )
    )
  elif not all(map(tf.is_tensor, tf.nest.flatten(optimizer))):
    raise ValueError(
      f"The server's optimizer is {optimizer!r}; it must be one of tff.learning."
      'optimizers, as build_sgdm(1.0) returns it: none of Keras, and no function.'
    )
  return phases.ServerState(
    weights,
    optimizer,
    collections.OrderedDict(extra),
    tf.constant(0, tf.int32),
    initial_round_seed(seed),
  )


def initial_of(
  objective: base.Objective,
  seed: int,
  optimizer: tff.learning.optimizers.Optimizer,
) -> phases.ServerState:
  """Returns the state before round 0 of a server whose model is the objective's.

  Args:
    objective: What is trained.
    seed: Seed of the run.
    optimizer: Optimizer of the server, which is initialized.
  """
  return initial_state(initial_weights(objective, seed), seed, optimizer)


def next_number_and_seed(
  number: tf.Tensor, seed: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the number and the seed of the round after one with these."""
  return number + 1, next_round_seed(seed)


def next_round(state: phases.ServerState) -> phases.ServerState:
  """Returns the state with the number and the seed of the next round."""
  number, seed = next_number_and_seed(state.round, state.round_seed)
  return state._replace(round=number, round_seed=seed)


def is_nothing(update: Any) -> tf.Tensor:
  """Returns whether an aggregated update must not be applied.

  The update is exactly zero if no client counts. An optimizer with momentum would still
  move, so it is not applied then. Nor is it if anything is not finite.
  """
  total = tf.add_n([tf.reduce_sum(tf.abs(x)) for x in tf.nest.flatten(update)])
  return tf.logical_or(tf.equal(total, 0), tf.logical_not(tf.math.is_finite(total)))


def apply(
  optimizer: tff.learning.optimizers.Optimizer,
  state: phases.ServerState,
  aggregated: Mapping[str, Any],
) -> tuple[phases.ServerState, base.Metrics]:
  """Applies what clients have sent to the model, if any of them counts.

  Args:
    optimizer: Takes the mean update (initial minus final weights) as a gradient.
    state: State of the server.
    aggregated: The mean `UPDATE`, and with batch norm `STATISTICS`: these replace the
      old ones, because an optimizer would take them for gradients.

  Returns:
    The state after, and the metric `update_rejected`.
  """
  weights, update = state.global_model_weights, aggregated[UPDATE]
  rejected = is_nothing(update)
  try:
    optimizer_state, trainable = optimizer.next(
      state.optimizer, weights.trainable, update
    )
  except TypeError as error:
    raise ValueError(
      f"The server's optimizer is {optimizer!r}, which TensorFlow cannot trace; it "
      'must be another of tff.learning.optimizers, such as build_adam(1e-3).'
    ) from error
  optimizer_state, trainable = clients.choose(
    rejected, (state.optimizer, weights.trainable), (optimizer_state, trainable)
  )
  statistics = weights.non_trainable
  if STATISTICS in aggregated:
    new = aggregated[STATISTICS]
    statistics = clients.choose(new['num_examples'] > 0, new['statistics'], statistics)
  return (
    state._replace(
      global_model_weights=tff.learning.models.ModelWeights(trainable, statistics),
      optimizer=optimizer_state,
    ),
    collections.OrderedDict(update_rejected=tf.cast(rejected, tf.int32)),
  )


def report(
  metrics: base.Metrics, summarize: Callable[[base.Metrics], base.Metrics]
) -> base.Metrics:
  """Returns what a round reports about its clients' training.

  Args:
    metrics: Averaged over clients, with `loss`.
    summarize: The objective's; turns the other metrics into scalars.
  """
  averaged = collections.OrderedDict(metrics)
  result = collections.OrderedDict(loss=averaged.pop('loss'))
  result.update(summarize(averaged))
  return result


def averaging(
  optimizer: tff.learning.optimizers.Optimizer,
  summarize: Callable[[base.Metrics], base.Metrics],
) -> Callable[..., tuple[phases.ServerState, phases.Metrics]]:
  """Returns FedAvg's `receive`: the mean update is applied, and metrics are reported.

  Args:
    optimizer: Applies the mean update.
    summarize: The objective's.
  """

  def receive(state, aggregated):
    state, measured = apply(optimizer, state, aggregated)
    return state, {
      phases.CLIENT_WORK: report(aggregated[METRICS], summarize),
      phases.FINALIZER: measured,
    }

  return receive


def sent_kinds(has_statistics: bool = False) -> dict[str, combine.Kind]:
  """Returns how the update, the metrics and the statistics of clients are combined.

  Args:
    has_statistics: Whether population statistics of batch norm are sent.
  """
  kinds: dict[str, combine.Kind] = {UPDATE: combine.UPDATE, METRICS: combine.METRICS}
  if has_statistics:
    kinds[STATISTICS] = combine.STATISTICS
  return kinds
