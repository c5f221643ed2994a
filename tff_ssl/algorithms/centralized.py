"""Centralized training: the same objective, optimizer and seeds on the union of data.

This is the upper bound that the papers compare with, and what federated rounds are
measured against. It offers what the round loop needs of a learning process, but runs in
plain TensorFlow: a "cohort" is a list of data sets, and a step's batch is their union.
"""

import abc
import collections
from collections.abc import Sequence
import functools
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.federated import clients
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import selection


class CentralizedState(NamedTuple):
  """State between steps.

  Attributes:
    global_model_weights: `tff.learning.models.ModelWeights`.
    round_seed: int32 [2], of the next step's views.
    optimizer: The optimizer's state.
    objective: The state of the objective, such as BYOL's target.
    round: int32, the number of the next step, from 0.
  """

  global_model_weights: tff.learning.models.ModelWeights
  round_seed: Any
  optimizer: Any
  objective: base.State
  round: Any


class UnionProcess(abc.ABC):
  """A process in plain TensorFlow, whose rounds train on the union of a cohort."""

  def __init__(
    self,
    objective: base.Objective,
    seed: int,
    total_rounds: int | None = None,
  ):
    """Initializes the process.

    Args:
      objective: What is minimised.
      seed: Seed of the initial weights and the views.
      total_rounds: Rounds of the run, for an objective that follows a schedule.
    """
    self._objective = objective
    self._seed = seed
    self._total_rounds = total_rounds

  @abc.abstractmethod
  def initialize(self) -> Any:
    """Returns the state before the first round."""

  def next(
    self, state: Any, cohort: Sequence[tf.data.Dataset]
  ) -> tff.learning.templates.LearningProcessOutput:
    """Runs one round.

    Args:
      state: From `initialize` or the round before.
      cohort: Data sets of single examples; training is on their union.

    Returns:
      The new state, and metrics under `client_work` like those of the federated
      algorithms. A round without examples, or with a result that is not finite, changes
      nothing but the seed and the number of the round, and is counted.

    Raises:
      ValueError: If the cohort holds no data set.
    """
    if not cohort:
      raise ValueError('The cohort is empty; it must hold at least one data set.')
    union = functools.reduce(lambda a, b: a.concatenate(b), cohort)
    state, metrics = self._round(state, union)
    return tff.learning.templates.LearningProcessOutput(
      state, collections.OrderedDict(client_work=metrics)
    )

  def get_model_weights(self, state: Any) -> tff.learning.models.ModelWeights:
    """Returns the model weights of a state."""
    return state.global_model_weights

  @abc.abstractmethod
  def _round(self, state: Any, dataset: tf.data.Dataset) -> tuple[Any, base.Metrics]:
    """Returns the new state and the metrics of a round on a data set."""

  def _initial_weights(self) -> tff.learning.models.ModelWeights:
    return server.initial_weights(self._objective, self._seed)

  def _trained_weights(
    self, params: base.Params, examples: base.Examples
  ) -> tff.learning.models.ModelWeights:
    """Returns the trained weights, with population statistics of the examples."""
    statistics = batch_norm_statistics.compute(self._objective, params, examples)
    return tff.learning.models.ModelWeights(params, statistics)

  def _report(
    self, averaged: base.Metrics, num_examples: tf.Tensor, finite: tf.Tensor
  ) -> base.Metrics:
    """Returns a round's metrics.

    Args:
      averaged: The objective's, with `loss`, means over examples.
      num_examples: Number of examples of the round.
      finite: Whether all that was computed is finite.
    """
    return clients.with_counts(
      server.report(averaged, self._objective.summarize),
      collections.OrderedDict(
        examples=tf.where(finite, num_examples, 0),
        nonfinite_batches=tf.cast(tf.logical_not(finite), tf.int32),
      ),
    )


class Centralized(UnionProcess):
  """One step of an optimizer a round, on all examples of the cohort at once.

  With the seed and the server optimizer of a federated algorithm it starts from the
  same weights and sees the same views.
  """

  def __init__(
    self,
    objective: base.Objective,
    optimizer: tff.learning.optimizers.Optimizer,
    seed: int = 0,
    total_rounds: int | None = None,
  ):
    """Initializes the process.

    Args:
      objective: What is minimised.
      optimizer: Applied to the gradient.
      seed: Seed of the initial weights and the views.
      total_rounds: Steps of the run, for an objective that follows a schedule.
    """
    super().__init__(objective, seed, total_rounds)
    self._optimizer = optimizer

  def initialize(self) -> CentralizedState:
    """Returns the state before the first step."""
    weights = self._initial_weights()
    specs = tf.nest.map_structure(
      lambda x: tf.TensorSpec(x.shape, x.dtype), weights.trainable
    )
    return CentralizedState(
      weights,
      server.initial_round_seed(self._seed),
      tf.nest.map_structure(tf.convert_to_tensor, self._optimizer.initialize(specs)),
      self._objective.init_state(weights.trainable),
      tf.constant(0, tf.int32),
    )

  @tf.function(reduce_retracing=True, autograph=False)
  def _round(self, state, dataset):
    examples = selection.select_examples(self._objective, clients.all_examples(dataset))
    params = state.global_model_weights.trainable
    current = base.at_round(self._objective, state.round, self._total_rounds)
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss, reported, carry = current.loss_with_state(
        params, state.objective, examples, state.round_seed
      )
    gradient = tape.gradient(
      loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    optimizer, new_params = self._optimizer.next(state.optimizer, params, gradient)
    new_params, objective = current.after_step(new_params, state.objective, carry)
    metrics = collections.OrderedDict(loss=loss, **reported)
    num_examples = base.example_count(examples)
    weights = self._trained_weights(new_params, examples)
    finite = clients.is_finite((gradient, weights.trainable, weights.non_trainable))
    usable = tf.logical_and(finite, num_examples > 0)
    state = CentralizedState(
      clients.choose(usable, weights, state.global_model_weights),
      server.next_round_seed(state.round_seed),
      clients.choose(usable, optimizer, state.optimizer),
      clients.choose(usable, objective, state.objective),
      state.round + 1,
    )
    return state, self._report(metrics, num_examples, finite)
