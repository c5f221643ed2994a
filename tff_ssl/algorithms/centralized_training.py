"""Centralized training in rounds: the local training of one client that has all data.

The upper bound for FedAvg: the same objective, epochs, batches, optimizer and seeds, on
the union of a cohort's examples. Like `centralized` it runs in plain TensorFlow.

Deviations and decisions:
  - As on a client, the optimizer starts afresh each round. The state of an objective
    (BYOL's target, MoCo's queue) persists over all rounds.
"""

from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import clients
from tff_ssl.federated import local_training
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import selection


class CentralizedTrainingState(NamedTuple):
  """State between rounds.

  Attributes:
    global_model_weights: `tff.learning.models.ModelWeights`.
    objective: The state of the objective, such as BYOL's target.
    round_seed: int32 [2], of the next round.
    round: int32, the number of the next round, from 0.
  """

  global_model_weights: tff.learning.models.ModelWeights
  objective: base.State
  round_seed: Any
  round: Any


class CentralizedTraining(centralized.UnionProcess):
  """E epochs a round on all examples of the cohort.

  It equals FedAvg with a single client, except for the state of the objective.
  """

  def __init__(
    self,
    objective: base.Objective,
    training: fedavg.Training,
  ):
    """Initializes the process.

    Args:
      objective: What is minimised.
      training: How a client would train; its weighting does nothing.
    """
    super().__init__(objective, training.seed, training.rounds)
    self._training = training

  def initialize(self) -> CentralizedTrainingState:
    """Returns the state before the first round."""
    weights = self._initial_weights()
    return CentralizedTrainingState(
      weights,
      self._objective.init_state(weights.trainable),
      server.initial_round_seed(self._seed),
      tf.constant(0, tf.int32),
    )

  @tf.function(reduce_retracing=True, autograph=False)
  def _round(self, state, dataset):
    examples = selection.select_examples(self._objective, clients.all_examples(dataset))
    trained = local_training.train(
      base.at_round(self._objective, state.round, self._total_rounds),
      self._training.clients,
      state.global_model_weights.trainable,
      examples,
      state.round_seed,
      self._training.rate(state.round),
      state.objective,
    )
    num_examples = base.example_count(examples)
    weights = self._trained_weights(trained.params, examples)
    finite = clients.is_finite(
      (weights.trainable, weights.non_trainable, trained.metrics)
    )
    usable = tf.logical_and(finite, num_examples > 0)
    state = CentralizedTrainingState(
      clients.choose(usable, weights, state.global_model_weights),
      clients.choose(usable, trained.state, state.objective),
      server.next_round_seed(state.round_seed),
      state.round + 1,
    )
    return state, self._report(trained.metrics, num_examples, finite)
