"""Training at the server with its labels alone, without clients: the lower bound.

"Centralized Supervised Learning" of FedSup (Gill, 2023, Section 5.1.2), in rounds: what
the server of `fedsup`, `fedrgd` and `server_finetuned` does without its clients.
"""

from typing import Any

from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.settings import learning


def labelled_only(
  objective: base.Objective,
  server_spec: Any,
  at_server: learning.ServerLabels | None = None,
  seed: int = 0,
) -> phases.Algorithm:
  """Returns the algorithm, which has no clients.

  Args:
    objective: What the server minimises, such as `supervised.SupervisedObjective`.
    server_spec: `tf.TensorSpec`s of one labelled example.
    at_server: How it trains; the defaults when None.
    seed: Seed of the initial weights, the orders and the views.

  Returns:
    The algorithm; its metrics are `server_work`.

  Raises:
    ValueError: If an element lacks what it needs.
  """
  at_server = at_server or learning.ServerLabels()
  labelled = server_training.Labelled(objective, server_spec, at_server)

  def initial():
    weights = server.initial_weights(objective, seed)
    optimizer = labelled.initial_optimizer(weights.trainable)
    return server.initial_state(weights, seed, optimizer)

  return phases.Algorithm(
    initial,
    [
      labelled.phase('train'),
      *server_training.statistics_phases(objective, server_spec),
    ],
    classifiers=server_training.student_of(objective),
  )
