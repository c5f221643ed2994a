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

import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.objectives import maml


def maml_ssfl(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.Training | None = None,
  inner_rate: float = 0.01,
) -> phases.Algorithm:
  """Returns MAML-SSFL.

  Args:
    objective: What is minimised after the inner step: SimSiam, in the paper.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    training: beta of perFedAvg, and all else as in FedAvg; the defaults when None.
    inner_rate: alpha, the rate of the inner step.

  Returns:
    The algorithm. Its metrics are those of FedAvg, of the adapted weights.

  Raises:
    ValueError: If the objective keeps a state.
  """
  adapted = maml.MamlObjective(objective, inner_rate)
  return fedavg.fedavg(adapted, server_optimizer, training)
