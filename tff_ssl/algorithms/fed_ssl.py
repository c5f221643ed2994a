"""Federated averaging where the objective's state stays with its client (FedSSL).

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022: the general framework of section 3. With BYOL it is Fed-BYOL,
with MoCo Fed-MoCo, with an objective without state FedAvg.

A round:
  1. the server broadcasts the online networks;
  2. client k replaces its own online networks with them. It resumes the state that it
     kept from its last participation (BYOL's target, MoCo's key networks and queue) or,
     the first time, starts one from them. It trains for E epochs and sends its update;
  3. the server averages the updates weighted by n_k and applies its optimizer.

In `fedavg` the state starts afresh in every round. With `reset` a part of it does: the
authors' Fed-MoCo starts each round with the global networks as key networks, and keeps
the queue.

Deviations: the framework's options (what to share, and how to update the online
networks) are separate algorithms here: FedU, FedEMA. In a client's first round, BYOL's
target starts as a copy of the networks that the client is given and follows its online
networks from there, as in BYOL. In the authors' code the two are one in that round,
`first_target` 'online': no moving average, and a target that is as trained as they are
when the second round begins. At a momentum of 0.99 a copy still consists to 0.99^n of
the weights that it was given, after n steps: to 64 % after 45, to 47 % after 75. A copy
is the default: on digits Fed-BYOL ends where it does with the other, and that cannot be
the paper's in its ablation without stop-gradient (Figure 2), which keeps its accuracy
there. A network that is its own target collapses without it, in a client's first round,
and a collapsed target keeps it so (docs/stateful_clients.md).
"""

import collections
from collections.abc import Sequence

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import stateful_averaging
from tff_ssl.encoders import parameter_names
from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.objectives import target


def client_function(
  objective: base.Objective,
  training: fedavg.Training,
  reset: Sequence[str] = (),
  first_target: str = target.COPY,
) -> client_functions.StatefulFunction:
  """Builds step 2: training on a client's examples, from the state it has kept.

  Args:
    objective: What is minimised; its state is what the client keeps.
    training: How a client trains, and how clients are weighted.
    reset: First parts of the names of those state tensors that start each round afresh.
    first_target: A client's target in its first round, one of `target.FIRST`.

  Returns:
    A function that sends what `fedavg.sent` returns.
  """

  def first(shared):
    return objective.init_state(shared['params'])

  def client_fn(shared, state, examples):
    kept = collections.OrderedDict(state.kept)
    if reset:
      fresh = objective.init_state(shared['params'])
      kept.update(parameter_names.of_networks(fresh, reset))
    minimised = fedavg.in_round(objective, shared, training)
    trained = local_training.train(
      target.in_round(minimised, first_target, state.last_round < 0),
      training.clients,
      shared['params'],
      examples,
      shared['seed'],
      shared['rate'],
      kept,
    )
    sent = fedavg.sent(shared, objective, trained.params, trained.metrics, examples)
    return sent, trained.state

  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def fed_ssl(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.Training | None = None,
  reset: Sequence[str] = (),
  first_target: str = target.COPY,
) -> phases.Algorithm:
  """Returns FedSSL over an objective.

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    training: How clients train; the defaults when None.
    reset: Which parts of a client's state start each round afresh, by the first part of
      their names, such as `target.TARGET`; with all of them it is FedAvg.
    first_target: A client's target in its first round, one of `target.FIRST`.

  Returns:
    The algorithm. Its metrics are, under `client_work`, those of `fedavg.fedavg`.

  Raises:
    ValueError: If `reset` names something that a client does not keep, the objective
      has no such first target, or it trains its target, which would be averaged.
  """
  training = training or fedavg.Training()
  _check_kept(objective, reset)
  target.check_first(objective, first_target)

  function = client_function(objective, training, reset, first_target)
  return stateful_averaging.stateful(objective, server_optimizer, training, function)


def _check_kept(objective: base.Objective, reset: Sequence[str]) -> None:
  """Refuses a target that would be sent, and names of state that a client lacks."""
  with tf.Graph().as_default():
    params = objective.init(tf.constant([0, 0], tf.int32))
    state = objective.init_state(params)
  if parameter_names.of_networks(params, (target.TARGET,)):
    raise ValueError(
      f'{type(objective).__name__} trains its target, which would be averaged instead '
      'of staying on its client; stop_gradient must be True, or target_trained False.'
    )
  known = {parameter_names.prefix_of(name) for name in state}
  for name in reset:
    if name not in known:
      raise ValueError(
        f'reset has {name!r}; of what a client keeps, it can name '
        f'{", ".join(sorted(known)) or "nothing"}.'
      )
