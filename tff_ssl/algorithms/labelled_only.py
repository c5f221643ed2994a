"""Training at the server with its labels alone: the lower bound, without clients.

"Centralized Supervised Learning" of FedSup (Gill, 2023, Section 5.1.2), in rounds: what
the server of `fedsup`, `fedrgd` and `server_finetuned` does without its clients.
"""

from typing import Any

import tensorflow_federated as tff

from tff_ssl.algorithms import at_server
from tff_ssl.algorithms import server
from tff_ssl.algorithms import server_training
from tff_ssl.objectives import base


def build_labelled_only(
  objective: base.Objective,
  server_spec: Any,
  plan: server_training.ServerPlan | None = None,
  seed: int = 0,
) -> at_server.Process:
  """Builds the process; its `next` takes the state and the server's data alone.

  Args:
    objective: What the server minimises, as `supervised.SupervisedObjective`.
    server_spec: `tf.TensorSpec`s of one labelled example.
    plan: How it trains; the defaults when None.
    seed: Of the initial weights, the orders and the views.

  Returns:
    The process; its metrics are `server_work`.

  Raises:
    ValueError: If an element lacks what it needs.
  """

  @tff.tensorflow.computation
  def initial_weights():
    return server.initial_weights(objective, seed)

  weights_type = initial_weights.type_signature.result
  labelled = server_training.Labelled(
    objective, server_spec, plan or server_training.ServerPlan(), weights_type.trainable
  )
  initialize = at_server.build_initialize(initial_weights, labelled, seed)
  state_type = initialize.type_signature.result
  _, next_seed = server.round_seeds(seed)

  @tff.federated_computation(
    state_type, tff.FederatedType(labelled.data_type, tff.SERVER)
  )
  def next_fn(state, server_data):
    trained = tff.federated_map(
      labelled.train,
      (
        state.global_model_weights.trainable,
        state.optimizer,
        state.round_seed,
        state.round,
        server_data,
      ),
    )
    return at_server.output(state, trained['params'], trained, next_seed, state.clients)

  return at_server.Process(
    initialize,
    next_fn,
    *at_server.model_and_classifier(state_type.member, labelled.names),
  )
