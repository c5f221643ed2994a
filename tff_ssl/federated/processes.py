"""Processes: whole rounds of any algorithm as TFF computations.

    algorithm = dcco.dcco(objective, server_optimizer)
    process = processes.build(algorithm, clients.element_spec)
    state = process.next(process.initialize(), clients.cohort(client_ids)).state

Where clients keep no state and the server has no data, a process is a
`tff.learning.templates.LearningProcess`, for anyone's TFF program. TFF's own type has
no place for either, so all others are a `Process`.
"""

import collections
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.federated import phase_graph
from tff_ssl.federated import phases
from tff_ssl.federated import server

_RATE = tff.learning.optimizers.LEARNING_RATE_KEY


class StatefulOutput(NamedTuple):
  """The result of a round of clients that keep a state.

  Attributes:
    state: The server's.
    client_states: Those of the clients of the round, after it, in any order.
    metrics: Numbers by name, in groups.
  """

  state: Any
  client_states: Any
  metrics: Any


class Process(tff.templates.IterativeProcess):
  """Rounds of an algorithm whose clients keep a state, or whose server has data.

  `next` takes the server's state; the server's data, if it has any; the clients'
  states, if they keep any; and the clients' data, if there are clients. The data of
  server and clients never meet. It returns a `tff.learning.templates
  .LearningProcessOutput`, or a `StatefulOutput` if clients keep a state.

  Each of the clients' states is a `client_states.ClientState`, which holds the
  client's index, because TFF may return clients in another order. In packs they are
  stacked (`packs.stack`), in the order of the pack's clients. States stay on the
  devices: they are not communicated.

  Attributes:
    graph: The `phase_graph.Graph` that it was built from.
    get_model_weights: Server state -> `tff.learning.models.ModelWeights`.
    set_model_weights: Server state and weights -> the state with these weights.
  """

  def __init__(self, graph: phase_graph.Graph, next_fn: tff.Computation):
    """Takes all other computations from the graph."""
    super().__init__(graph.initialize, next_fn, next_is_multi_arg=True)
    self.graph = graph
    self.get_model_weights = graph.get_model_weights
    self.set_model_weights = _set_model_weights(graph)


class LearningProcess(tff.learning.templates.LearningProcess):
  """Rounds of an algorithm with stateless clients and no data at the server.

  Attributes:
    graph: The `phase_graph.Graph` that it was built from.
  """

  def __init__(self, graph: phase_graph.Graph, next_fn: tff.Computation):
    """Takes all other computations from the graph."""
    get_hparams, set_hparams = _hparams(graph)
    super().__init__(
      graph.initialize,
      next_fn,
      graph.get_model_weights,
      _set_model_weights(graph),
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
    )
    self.graph = graph


def _set_model_weights(graph: phase_graph.Graph) -> tff.Computation:
  """Returns (state, weights) -> the state with these weights."""

  @tff.federated_computation(graph.state_type.member, graph.weights_type)
  def set_model_weights(state, weights):
    return server.replaced(state, global_model_weights=weights)

  return set_model_weights


def _hparams(graph: phase_graph.Graph) -> tuple[tff.Computation, tff.Computation]:
  """Returns the computations that get and set the rates of a state, named as TFF's.

  `client_work` has the clients' `learning_rate`, which the configuration fixes;
  `finalizer` the numbers in the state of the server's optimizer, if no schedule sets
  them.
  """
  state_type, rate = graph.state_type.member, graph.algorithm.client_rate
  optimizer_type = state_type['optimizer']
  numbers = [
    name
    for name, each in tff.structure.iter_elements(optimizer_type)
    if isinstance(each, tff.TensorType)
    and (each.shape == () and np.issubdtype(each.dtype, np.floating))
  ]

  @tff.tensorflow.computation(np.int32)
  def of_clients(round):
    rates = {} if rate is None else {_RATE: rate(round) if callable(rate) else rate}
    return collections.OrderedDict(rates)

  @tff.federated_computation(state_type)
  def get_hparams(state):
    own = collections.OrderedDict((n, getattr(state.optimizer, n)) for n in numbers)
    return collections.OrderedDict(client_work=of_clients(state.round), finalizer=own)

  rates_type = of_clients.type_signature.result

  @tff.tensorflow.computation(np.int32, rates_type, rates_type)
  def checked(round, given, own):
    message = f'{_RATE} of client_work is fixed by the configuration; given and own are'
    for name, value in own.items():
      fits = tf.debugging.Assert(
        tf.equal(given[name], value), [message, given[name], value]
      )
      with tf.control_dependencies([fits] if fits is not None else []):
        round = tf.identity(round)
    return round

  @tff.federated_computation(state_type, get_hparams.type_signature.result)
  def set_hparams(state, hparams):
    own = of_clients(state.round)
    changed = {'round': checked(state.round, hparams.client_work, own)}
    if numbers:
      changed['optimizer'] = collections.OrderedDict(
        (n, getattr(hparams.finalizer if n in numbers else state.optimizer, n))
        for n in tff.structure.name_list(optimizer_type)
      )
    return server.replaced(state, **changed)

  return get_hparams, set_hparams


Built: TypeAlias = Process | LearningProcess


def build(
  algorithm: phases.Algorithm,
  element_spec: Any = None,
  aggregation: aggregations.Aggregation | None = None,
) -> Built:
  """Builds the rounds of an algorithm.

  Args:
    algorithm: What is built, as a function of `algorithms` returns it.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets, such as
      `client_data.element_type_structure`; or the `packs.PackSpec` of them; None if
      there are no clients.
    aggregation: Applied to everything that leaves a client; plain when None.

  Returns:
    The process. Its metrics are in groups, `client_work` with counts and bytes.

  Raises:
    ValueError: If the elements are not single examples with an `example_id` and the
      numbers that the algorithm asks for, or the aggregation does not fit it.
  """
  graph = phase_graph.Graph(algorithm, element_spec, aggregation)
  arguments = collections.OrderedDict(state=graph.state_type)
  if algorithm.server_spec is not None:
    labelled = tff.types.tensorflow_to_type(algorithm.server_spec)
    server_type = tff.SequenceType(labelled)
    arguments['server_data'] = tff.FederatedType(server_type, tff.SERVER)
  if algorithm.is_stateful:
    arguments['states'] = tff.FederatedType(graph.states_type, tff.CLIENTS)
  if algorithm.exchanges:
    arguments['data'] = tff.FederatedType(graph.cohort.data_type, tff.CLIENTS)

  @tff.federated_computation(tff.types.to_type(arguments))
  def next_fn(given):
    done = graph.run(**{name: getattr(given, name) for name in arguments})
    if algorithm.is_stateful:
      return StatefulOutput(done.state, done.client_states, done.metrics)
    return tff.learning.templates.LearningProcessOutput(done.state, done.metrics)

  if arguments.keys() == {'state', 'data'}:
    return LearningProcess(graph, next_fn)
  return Process(graph, next_fn)
