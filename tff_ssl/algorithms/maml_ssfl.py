"""MAML-SSFL: a global model from which one step on a client's data leads to its own.

"SSFL: Tackling Label Deficiency in Federated Learning via Personalized
Self-Supervision", Chaoyang He, Zhengyu Yang, Erum Mushtaq, Sunwoo Lee, Mahdi
Soltanolkotabi, Salman Avestimehr, 2021, section 3.3, after perFedAvg:
"Personalized Federated Learning: A Meta-Learning Approach", Alireza Fallah, Aryan
Mokhtari, Asuman Ozdaglar, 2020.

A round is one of FedAvg. In each local step a client takes an inner step on one batch,
and moves the weights by the gradient on another batch, taken at the adapted weights.
`objectives.maml` has this objective, and states its deviations. Clients keep nothing; a
personal model is made when it is needed, by one step (see `la_ssfl`).

inner_rate = 0: FedAvg.
"""

import dataclasses
from typing import Any

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import builder
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.objectives import maml


@dataclasses.dataclass(frozen=True)
class MamlConfig:
  """Hyperparameters of MAML-SSFL.

  Attributes:
    training: beta of perFedAvg, and all else as in FedAvg.
    inner_rate: alpha, the rate of the inner step; 0 is FedAvg.
    second_order: Whether the gradient goes through the inner step; False: FO-MAML.
  """

  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  inner_rate: float = 0.01
  second_order: bool = True


def describe(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: MamlConfig,
) -> phases.Algorithm:
  """Returns the state and phases; see `build_maml_ssfl` for the arguments."""
  adapted = maml.MamlObjective(objective, config.inner_rate, config.second_order)
  return fedavg.describe(adapted, server_optimizer, config.training)


def build_maml_ssfl(
  objective: base.Objective,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: MamlConfig | None = None,
  aggregation: aggregations.Aggregation | None = None,
) -> tff.learning.templates.LearningProcess:
  """Builds MAML-SSFL as a learning process.

  Args:
    objective: What is minimised after the inner step: SimSiam, in the paper.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    config: Hyperparameters; the defaults when None.
    aggregation: Applied to everything that leaves a client; plain when None.

  Returns:
    A process as `fedavg.build_fedavg` returns it; its metrics are those of the adapted
    weights.

  Raises:
    ValueError: If the elements are not single examples with an `example_id`, the
      objective keeps a state, or `inner_rate` is negative.
  """
  algorithm = describe(objective, server_optimizer, config or MamlConfig())
  return builder.build_learning_process(algorithm, element_spec, aggregation)
