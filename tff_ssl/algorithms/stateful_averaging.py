"""Averaging of the updates of clients that keep a state, composed to a process.

The pseudocode of such an algorithm is a `client_functions.StatefulFunction`::

  def first(shared):  # What a client begins with; here its own copy of the model.
    return shared['params']


  def each(shared, state, examples):
    mixed = ...  # of shared['params'] and state.kept
    trained = local_training.train(
      objective, plan, mixed, examples, shared['seed'], shared['rate']
    )
    return sent(shared, trained.params, trained.metrics), trained.params
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import beside
from tff_ssl.aggregators import communication
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import client_states
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import cohorts
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import server
from tff_ssl.algorithms import stateful_process
from tff_ssl.objectives import base


class _ClientWork(NamedTuple):
  """What the clients' part of a round consists of.

  Attributes:
    cohort: How clients are laid out.
    train: (shared, states, examples) -> `sent`, `states`.
    metrics: Averages the metrics.
    counts: Sums the counts.
    report: (metrics, counts) -> numbers by name.
    rate: Round -> the clients' learning rate.
  """

  cohort: cohorts.Cohort
  train: tff.Computation
  metrics: tff.templates.AggregationProcess
  counts: tff.templates.AggregationProcess
  report: tff.Computation
  rate: tff.Computation


def sent(
  shared: client_functions.Shared,
  params: base.Params,
  metrics: base.Metrics,
  statistics: base.State | None = None,
) -> client_functions.Means:
  """Returns what a client sends that has trained the model.

  Args:
    shared: Values from the server, with the initial `params`.
    params: The final ones.
    metrics: Of its training, with `loss`.
    statistics: Of its population (`population.compute`), where the server has some.
  """
  update = tf.nest.map_structure(tf.subtract, shared['params'], params)
  means = collections.OrderedDict(update=update, metrics=metrics)
  if statistics:
    means[beside.STATISTICS] = statistics
  return means


def compose(
  initial_weights: tff.Computation,
  function: client_functions.StatefulFunction,
  element_spec: Any,
  optimizer: tff.learning.optimizers.Optimizer,
  config: fedavg.FedAvgConfig,
  summarize: Callable[[base.Metrics], base.Metrics],
  aggregation: aggregation_lib.Aggregation | None = None,
) -> stateful_process.StatefulProcess:
  """Composes a process whose server averages its clients' updates.

  Args:
    initial_weights: () -> model weights.
    function: Of one client. It is given `params`, the model's; `seed`, int32 [2], the
      round's; `rate`, float32, of the clients' optimizer; `round`, int32, from 0. It
      sends what `sent` returns.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    optimizer: Applies the averaged update (initial minus final weights) as a gradient.
    config: Its rate and its seed are used.
    summarize: The objective's.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    A process whose server state is a `LearningAlgorithmState` and whose metrics are
    those of a learning process, the clients' under `client_work`.

  Raises:
    ValueError: If the elements are not single examples with an `example_id`.
  """
  cohort = cohorts.build_cohort(element_spec, aggregation or aggregation_lib.plain())
  weights_type = initial_weights.type_signature.result
  shared_type = clients.shared_type(
    weights_type.trainable,
    rate=tff.TensorType(np.float32),
    round=tff.TensorType(np.int32),
  )
  state_type = client_states.state_type(function, shared_type)
  train = cohort.map_with_states(function, shared_type, state_type)
  # Statistics are broadcast with the weights, though clients have no use for them.
  down = communication.num_bytes(shared_type) + communication.num_bytes(
    weights_type.non_trainable
  )
  work = _build_client_work(cohort, train, down, config.rate, summarize)
  initialize, next_fn = _build_rounds(initial_weights, work, optimizer, config.seed)

  @tff.tensorflow.computation(initialize.type_signature.result.member)
  def get_model_weights(state):
    return state.global_model_weights

  return stateful_process.StatefulProcess(
    initialize, next_fn, get_model_weights, state_type
  )


def _build_client_work(cohort, train, down, rate, summarize) -> _ClientWork:
  sent = train.type_signature.result['sent']

  @tff.tensorflow.computation(sent['metrics'], sent['counts'])
  def report(metrics, counts):
    return clients.report(
      metrics,
      counts,
      summarize,
      down=down,
      up=communication.num_bytes(sent),
    )

  return _ClientWork(
    cohort,
    train,
    cohort.aggregation.metrics.create(sent['metrics'], sent['weight']),
    cohort.aggregation.counts.create(sent['counts']),
    report,
    tff.tensorflow.computation(rate, tff.TensorType(np.int32)),
  )


def _build_rounds(
  initial_weights, work: _ClientWork, optimizer, seed
) -> tuple[tff.Computation, tff.Computation]:
  """Returns `initialize` and `next`."""
  weights_type = initial_weights.type_signature.result
  states_type = work.train.type_signature.parameter[1]
  sent_type = work.train.type_signature.result['sent']
  distributor = tff.learning.templates.build_broadcast_process(weights_type)
  updates = beside.factory(work.cohort.aggregation, weights_type).create(
    beside.sent_type(sent_type), sent_type['weight']
  )
  finalizer = server.build_finalizer(weights_type, optimizer)
  initial_seed, next_seed = server.round_seeds(seed)

  @tff.federated_computation
  def initialize():
    client_work = collections.OrderedDict(
      round=server.first_round(),
      round_seed=tff.federated_eval(initial_seed, tff.SERVER),
      metrics=work.metrics.initialize(),
      counts=work.counts.initialize(),
    )
    return tff.federated_zip(
      tff.learning.templates.LearningAlgorithmState(
        tff.federated_eval(initial_weights, tff.SERVER),
        distributor.initialize(),
        tff.federated_zip(client_work),
        updates.initialize(),
        finalizer.initialize(),
      )
    )

  @tff.federated_computation(
    initialize.type_signature.result,
    tff.FederatedType(states_type, tff.CLIENTS),
    tff.FederatedType(work.cohort.data_type, tff.CLIENTS),
  )
  def next_fn(state, states, data):
    own = state.client_work
    model = distributor.next(state.distributor, state.global_model_weights)
    shared = collections.OrderedDict(
      params=model.result.trainable,
      seed=tff.federated_broadcast(own['round_seed']),
      rate=tff.federated_broadcast(tff.federated_map(work.rate, own['round'])),
      round=tff.federated_broadcast(own['round']),
    )
    examples = tff.federated_map(work.cohort.read, data)
    trained = tff.federated_map(work.train, (shared, states, examples))
    sent = trained['sent']
    metrics = work.metrics.next(own['metrics'], sent['metrics'], sent['weight'])
    counts = work.counts.next(own['counts'], sent['counts'])
    update = updates.next(state.aggregator, beside.sent(sent), sent['weight'])
    final = finalizer.next(state.finalizer, state.global_model_weights, update.result)
    client_work = collections.OrderedDict(
      round=server.next_round(own['round']),
      round_seed=next_seed(own['round_seed']),
      metrics=metrics.state,
      counts=counts.state,
    )
    new_state = tff.learning.templates.LearningAlgorithmState(
      final.result,
      model.state,
      tff.federated_zip(client_work),
      update.state,
      final.state,
    )
    measured = collections.OrderedDict(
      distributor=model.measurements,
      client_work=tff.federated_map(work.report, (metrics.result, counts.result)),
      aggregator=update.measurements,
      finalizer=final.measurements,
    )
    return stateful_process.Output(
      tff.federated_zip(new_state), trained['states'], tff.federated_zip(measured)
    )

  return initialize, next_fn
