"""Per-SSFL: a personal SimSiam on every client, kept near the global one's predictions.

"SSFL: Tackling Label Deficiency in Federated Learning via Personalized
Self-Supervision", Chaoyang He, Zhengyu Yang, Erum Mushtaq, Sunwoo Lee, Mahdi
Soltanolkotabi, Salman Avestimehr, 2021, section 3.3, Algorithm 2.

A round:
  1. the server broadcasts the global model Theta;
  2. client k resumes its own model theta_k, at first a copy of Theta. In every local
     step, on the same batch and its two views, it trains Theta with SimSiam's loss, and
     theta_k with SimSiam's loss plus lambda times the distance of its predictions from
     Theta's (see `objectives.personal_consensus`). It sends Theta's update and keeps
     theta_k;
  3. the server averages the updates weighted by n_k: Theta is the same as in FedAvg.

lambda = 0: every client trains by itself; Theta is still trained.

Deviations: the weights of the mean are n_k divided by the examples of the cohort; the
pseudocode divides by the examples of all clients. Momentum starts afresh in every
round, for both models. For norm layers see `objectives.simsiam`.
"""

import dataclasses

import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import stateful_averaging
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import collapse
from tff_ssl.objectives import personal_consensus
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import two_models
from tff_ssl.settings import personal


def client_function(
  objective: simsiam.SimSiamObjective,
  settings: personal.Per,
  training: fedavg.Training,
) -> client_functions.StatefulFunction:
  """Builds step 2: training both models on a client's examples.

  Args:
    objective: SimSiam's networks and views.
    settings: Weight of the agreement.
    training: How both models train.

  Returns:
    A function that keeps theta_k and, with batch norm, its population statistics. It
    sends what `fedavg.sent` returns.
  """
  both = personal_consensus.PerSSFLObjective(objective, settings.consensus_weight)

  def first(shared):
    return batch_norm_statistics.begin(objective, shared['params'])

  def client_fn(shared, state, examples):
    trained = local_training.train(
      both,
      training.clients,
      two_models.join(
        shared['params'],
        batch_norm_statistics.without_statistics(objective, state.kept),
      ),
      examples,
      shared['seed'],
      shared['rate'],
    )
    params, personal = two_models.split(trained.params)
    metrics = collapse.with_client_spread(trained.metrics, two_models.OF_PERSONAL)
    # What FedAvg reports under this name, not the sum that is minimised.
    metrics['loss'] = metrics.pop('global_loss')
    return (
      fedavg.sent(shared, objective, params, metrics, examples),
      batch_norm_statistics.with_statistics(objective, personal, examples),
    )

  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def per_ssfl(
  objective: simsiam.SimSiamObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: personal.Per | None = None,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns Per-SSFL.

  Args:
    objective: SimSiam's networks and views, of both models.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    settings: Those of the paper when None.
    training: How both models train; the defaults when None.

  Returns:
    An algorithm whose clients keep theta_k, by the names of `objective`. Its metrics
    are, under `client_work`, those of FedAvg, the same metrics of the personal models
    as `personal_...` (the loss without the second term), and `consensus`: the mean of
    the four D(p, P).

  Raises:
    ValueError: If clients have a proximal term.
  """
  settings, training = settings or personal.Per(), training or fedavg.Training()
  if training.clients.proximal_weight:
    raise ValueError(
      f'proximal_weight is {training.clients.proximal_weight}; for Per-SSFL it must be '
      '0, because it would also pull the personal model towards its value at the start '
      'of the round.'
    )
  algorithm = stateful_averaging.stateful(
    objective,
    server_optimizer,
    training,
    client_function(objective, settings, training),
    summarize=lambda metrics: two_models.summarize(objective, metrics),
  )
  return dataclasses.replace(algorithm, personal_model=phases.kept_model)
