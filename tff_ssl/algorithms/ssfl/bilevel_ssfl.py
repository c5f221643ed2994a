"""BiLevel-SSFL: a personal model on every client, its weights near the global ones.

"SSFL: Tackling Label Deficiency in Federated Learning via Personalized
Self-Supervision", Chaoyang He, Zhengyu Yang, Erum Mushtaq, Sunwoo Lee, Mahdi
Soltanolkotabi, Salman Avestimehr, 2021, section 3.3, after Ditto:
"Ditto: Fair and Robust Federated Learning Through Personalization", Tian Li, Shengyuan
Hu, Ahmad Beirami, Virginia Smith, ICML 2021, Algorithm 1.

A round:
  1. the server broadcasts the global model Theta;
  2. client k trains Theta on L(Theta) and sends its update. It also trains its own
     model theta_k, at first a copy of Theta, on
     L(theta_k) + lambda/2 |theta_k - Theta|^2 with Theta as it was broadcast, and keeps
     theta_k;
  3. the server averages the updates weighted by n_k: Theta is the same as in FedAvg.

lambda = 0: every client trains by itself.

Deviations: both models train by the same plan; Ditto allows each its own rate and
number of steps.
"""

import dataclasses

import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import stateful_averaging
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import two_models
from tff_ssl.settings import personal


def client_function(
  objective: base.Objective,
  settings: personal.Bilevel,
  training: fedavg.Training,
) -> client_functions.StatefulFunction:
  """Builds step 2: training both models on a client's examples.

  Args:
    objective: What both minimise; it keeps no state.
    settings: Weight of the distance.
    training: How both models train; FedProx's mu applies to the global one alone.

  Returns:
    A function that keeps theta_k and, with batch norm, its population statistics. It
    sends what `fedavg.sent` returns.
  """
  plan = training.clients
  near = dataclasses.replace(plan, proximal_weight=settings.proximity_weight)

  def first(shared):
    return batch_norm_statistics.begin(objective, shared['params'])

  def client_fn(shared, state, examples):
    params, seed, rate = shared['params'], shared['seed'], shared['rate']
    minimised = fedavg.in_round(objective, shared, training)
    trained = local_training.train(minimised, plan, params, examples, seed, rate)
    own = batch_norm_statistics.without_statistics(objective, state.kept)
    personal = local_training.train(
      minimised, near, own, examples, seed, rate, anchor=params, own=True
    )
    metrics = two_models.metrics_of_both(trained.metrics, personal.metrics)
    return (
      fedavg.sent(shared, objective, trained.params, metrics, examples),
      batch_norm_statistics.with_statistics(objective, personal.params, examples),
    )

  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def bilevel_ssfl(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: personal.Bilevel | None = None,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns BiLevel-SSFL.

  Args:
    objective: What both models minimise: SimSiam, in the paper.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    settings: Those of the paper when None.
    training: How both models train; the defaults when None.

  Returns:
    An algorithm whose clients keep theta_k, by the names of `objective`. Its metrics
    are, under `client_work`, those of FedAvg, and the same metrics of the personal
    models as `personal_...` (the loss without the proximal term).

  Raises:
    ValueError: If the objective keeps a state.
  """
  settings, training = settings or personal.Bilevel(), training or fedavg.Training()
  base.check_stateless(objective, 'BiLevel-SSFL')
  algorithm = stateful_averaging.stateful(
    objective,
    server_optimizer,
    training,
    client_function(objective, settings, training),
    summarize=lambda metrics: two_models.summarize(objective, metrics),
  )
  return dataclasses.replace(algorithm, personal_model=phases.kept_model)
