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

import dataclasses
from typing import Any

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import grouping as grouping_lib
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.federated import phases
from tff_ssl.objectives import base


@dataclasses.dataclass(frozen=True)
class ServerFinetunedConfig:
  """Hyperparameters.

  Attributes:
    clients: How clients train, and the seed of weights and views.
    server: How the server trains.
    grouping: How clients are averaged; its server_weight must be 0, because the server
      has no model of its own. FedAvg by default.
  """

  clients: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  server: server_training.ServerPlan = dataclasses.field(
    default_factory=server_training.ServerPlan
  )
  grouping: grouping_lib.Grouping = grouping_lib.FEDAVG

  def __post_init__(self) -> None:
    if self.grouping.server_weight:
      raise ValueError(
        f'server_weight is {self.grouping.server_weight}; it must be 0, as the server '
        'has no model of its own before the clients are averaged.'
      )


def server_finetuned(
  objective: base.Objective,
  server_objective: base.Objective,
  server_spec: Any,
  config: ServerFinetunedConfig | None = None,
) -> phases.Algorithm:
  """Returns FedAvg whose server fine-tunes the average.

  Args:
    objective: What a client minimises; its state, if any, starts afresh each round.
    server_objective: What the server minimises: the same encoder, with a head.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    config: Hyperparameters; the defaults when None.

  Returns:
    The algorithm, with the metrics `client_work` and `server_work`.

  Raises:
    ValueError: If an element of the server lacks what it needs.
  """
  config = config or ServerFinetunedConfig()
  labelled = server_training.Labelled(server_objective, server_spec, config.server)
  both = server_training.OneModel(
    objective, labelled, server_objective, config.clients.seed
  )

  train = both.training(
    fedavg.client_function(objective, config.clients),
    config.clients.rate,
    config.grouping,
  )
  return phases.Algorithm(
    both.initial,
    [
      train,
      labelled.phase('finetune'),
      *server_training.statistics_phases(server_objective, server_spec),
    ],
    config.grouping.client_numbers,
    objective=objective,
    classifiers=server_training.student_of(server_objective),
  )
