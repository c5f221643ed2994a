"""Averaging of the updates of clients that keep a state."""

from collections.abc import Callable, Mapping

import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base


def stateful(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.Training,
  function: client_functions.StatefulFunction,
  initial: Callable[[], phases.ServerState] | None = None,
  kinds: Mapping[str, combine.Kind] | None = None,
  summarize: Callable[[base.Metrics], base.Metrics] | None = None,
) -> phases.Algorithm:
  """Returns an algorithm that averages the updates of stateful clients.

  Args:
    objective: What clients minimise.
    server_optimizer: Applied to the averaged update.
    training: Only its rate and its seed are used.
    function: What one client computes; it takes what `phases.model` returns, `rate` and
      `round`.
    initial: () -> the server's state before round 0; None: FedAvg's.
    kinds: How the values that a client sends are combined; None: like FedAvg's.
    summarize: Turns averaged metrics into what a round reports; None: the objective's.
  """

  def fedavg_initial():
    return server.initial_of(objective, training.seed, server_optimizer)

  def broadcast(state):
    return phases.model(state, rate=training.rate(state.round), round=state.round)

  receive = server.averaging(server_optimizer, summarize or objective.summarize)
  kinds = fedavg.sent_kinds(objective) if kinds is None else kinds
  train = phases.Exchange('train', broadcast, function, kinds, receive)
  return phases.Algorithm(initial or fedavg_initial, [train], objective=objective)
