"""Clients train any objective, the server fine-tunes their average with its labels.

The baselines of FedSup (Gill, 2023, Algorithm 1), with FixMatch, SimCLR, SimSiam or
BYOL as the objective. With a supervised objective and labels on the clients it is the
upper bound, "Fully Supervised FL" (Section 5.1.2).

A round:
  1. the server broadcasts the model;
  2. client k trains it on its examples;
  3. the server averages the clients' models (FedAvg, or in groups);
  4. it trains encoder and head on its labelled examples.

Deviations: Algorithm 1 also trains at the server before the clients. From the second
round on, this would directly follow the fine-tuning of the round before, and only
double it. It is left out, and the first round's clients start from the initial weights.
A network that only one side trains (a projector, the head of a self-supervised
objective) is kept at the server.
"""

from typing import Any

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import grouping as grouping_lib
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.settings import learning


def server_finetuned(
  objective: base.Objective,
  server_objective: base.Objective,
  server_spec: Any,
  training: fedavg.Training | None = None,
  at_server: learning.ServerLabels | None = None,
  grouping: grouping_lib.Grouping = grouping_lib.FEDAVG,
) -> phases.Algorithm:
  """Returns FedAvg whose server fine-tunes the average.

  Args:
    objective: What a client minimises; its state, if any, starts afresh each round.
    server_objective: What the server minimises: the same encoder, with a head.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    training: How clients train, and the seed of weights and views; the defaults when
      None.
    at_server: How the server trains; the defaults when None.
    grouping: How clients are averaged.

  Returns:
    The algorithm, with the metrics `client_work` and `server_work`.

  Raises:
    ValueError: If an element of the server lacks what it needs, or the grouping has a
      weight of the server.
  """
  if grouping.server_weight:
    raise ValueError(
      f'server_weight is {grouping.server_weight}; it must be 0, as the server has no '
      'model of its own before the clients are averaged.'
    )
  training = training or fedavg.Training()
  at_server = at_server or learning.ServerLabels()
  labelled = server_training.Labelled(server_objective, server_spec, at_server)
  both = server_training.OneModel(objective, labelled, server_objective, training.seed)

  train = both.training(
    fedavg.client_function(objective, training),
    training.rate,
    grouping,
  )
  return phases.Algorithm(
    both.initial,
    [
      train,
      labelled.phase('finetune'),
      *server_training.statistics_phases(server_objective, server_spec),
    ],
    grouping.client_numbers,
    objective=objective,
    classifiers=server_training.student_of(server_objective),
  )
