"""What a server with labels does in a round: it trains on them, as clients train.

Batch norm: scales and shifts are trained and averaged like all other weights, and all
training normalises by its own batch. The population statistics of a model are those of
the server's labelled images at the weights with which the round ends. The server may
see these images, whereas a mean of the clients' statistics would belong to weights that
no model has after averaging. The statistics are computed again in each round, are not
sent, and are part of no average.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import selection
from tff_ssl.optimization import local
from tff_ssl.settings import learning


def as_clients(labels: learning.ServerLabels) -> learning.AdamClients:
  """Returns clients that train as a server with labels does."""
  return learning.AdamClients(
    labels.learning_rate, epochs=labels.epochs, batch_size=labels.batch_size
  )


class Labelled:
  """The server's part: training some parameters of a model on labelled examples.

  Attributes:
    names: Names of the parameters that are trained.
    element_spec: Type of one labelled example.
  """

  def __init__(
    self,
    objective: base.Objective,
    element_spec: Any,
    labels: learning.ServerLabels,
  ):
    """Validates that elements have an `example_id` and a `label`.

    Args:
      objective: What is minimised.
      element_spec: `tf.TensorSpec`s of one labelled example.
      labels: How the server trains: by Adam, whose state is kept.

    Raises:
      ValueError: If elements have no scalar `example_id`, or no `label`.
    """
    clients.check_element(element_spec)
    if 'label' not in element_spec:
      raise ValueError(
        f'The elements of the server data are {element_spec}; they must have a `label`.'
      )
    self.element_spec = element_spec
    self._objective = objective
    self._training = fedavg.Training(as_clients(labels))
    self.names = _names(objective)

  def initial_optimizer(self, params: base.Params) -> local.State:
    """Returns the state of the server's optimizer before round 0."""
    return local.init(self._training.clients, self.own(params))

  def phase(self, name: str) -> phases.AtServer:
    """Returns the phase in which the server trains the model that clients are given.

    Args:
      name: Name of the phase.
    """

    def train(state, examples):
      params = state.global_model_weights.trainable
      params, optimizer, metrics = self.train(params, state, examples)
      state = server.with_params(state, params)._replace(optimizer=optimizer)
      return state, {phases.SERVER_WORK: metrics}

    return phases.AtServer(name, self.element_spec, train)

  def train(
    self,
    params: base.Params,
    state: phases.ServerState,
    examples: base.Examples,
    context: base.Context | None = None,
  ) -> tuple[base.Params, local.State, base.Metrics]:
    """Trains for a round; no examples or a non-finite result change nothing.

    Args:
      params: By name; at least `names`.
      state: With the optimizer's state, the round and its seed.
      examples: n >= 0 examples; those without a label do not count.
      context: Context of a contextual objective.

    Returns:
      All parameters after, the optimizer's state, and metrics.
    """
    own = self.own(params)
    examples = selection.select_examples(self._objective, examples)
    trained = local_training.train(
      self._objective.bind_context(context or {}),
      self._training.clients,
      own,
      examples,
      state.round_seed,
      self._training.rate(state.round),
      optimizer=state.optimizer,
    )
    num_examples = base.example_count(examples)
    finite = clients.is_finite((trained.params, trained.metrics))
    usable = tf.logical_and(finite, num_examples > 0)
    metrics = server.report(
      clients.keep_if(finite, trained.metrics), self._objective.summarize
    )
    metrics = clients.with_counts(
      metrics,
      collections.OrderedDict(
        examples=tf.where(finite, num_examples, 0),
        nonfinite_batches=tf.cast(tf.logical_not(finite), tf.int32),
      ),
    )
    everything = collections.OrderedDict(params)
    everything.update(clients.choose(usable, trained.params, own))
    optimizer = clients.choose(usable, trained.optimizer, state.optimizer)
    return everything, optimizer, metrics

  def own(self, params: base.Params) -> base.Params:
    """Returns the parameters that are trained: those of encoder and head."""
    return select(params, self.names)


def statistics(
  objective: base.Objective,
  params: base.Params,
  examples: base.Examples,
  before: base.State,
) -> base.State:
  """Returns the population statistics of the server's examples.

  Args:
    objective: What the server minimises, with the encoder whose statistics these are.
    params: Parameters of the model, after training.
    examples: n >= 0 examples; those without a label do not count.
    before: The statistics that are kept if there is no example, or a new one is not
      finite; empty without batch norm.
  """
  examples = selection.select_examples(objective, examples)
  measured = batch_norm_statistics.compute(objective, params, examples)
  usable = clients.is_finite(measured) & (base.example_count(examples) > 0)
  return clients.choose(usable, measured, before) if measured else before


def statistics_phases(
  objective: base.Objective, element_spec: Any
) -> list[phases.AtServer]:
  """Returns the phase that computes the model's population statistics, if it has any.

  Args:
    objective: What the server minimises.
    element_spec: Type of one labelled example.

  Returns:
    A list of this phase; an empty one without batch norm.
  """

  def measure(state, examples):
    weights = state.global_model_weights
    measured = statistics(objective, weights.trainable, examples, weights.non_trainable)
    weights = tff.learning.models.ModelWeights(weights.trainable, measured)
    return state._replace(global_model_weights=weights), {}

  if not batch_norm_statistics.mixes_examples(objective):
    return []
  return [phases.AtServer(server.STATISTICS, element_spec, measure)]


class OneModel:
  """One model that the server trains with labels and clients train without."""

  def __init__(
    self,
    objective: base.Objective,
    labelled: Labelled,
    server_objective: base.Objective,
    seed: int,
  ):
    """Finds the names of the parameters that clients train.

    Args:
      objective: What a client minimises.
      labelled: The server's part.
      server_objective: What it minimises: the same encoder, with a head.
      seed: Seed of the run.
    """
    self._objective = objective
    self._labelled = labelled
    self._server_objective = server_objective
    self._seed = seed
    self._names = _names(objective)

  def initial(self) -> phases.ServerState:
    """Returns the state before round 0; weights that both sides have are drawn once."""
    params = server.initial_weights(self._objective, self._seed).trainable
    own = server.initial_weights(self._server_objective, self._seed)
    params.update((name, w) for name, w in own.trainable.items() if name not in params)
    optimizer = self._labelled.initial_optimizer(params)
    weights = tff.learning.models.ModelWeights(params, own.non_trainable)
    return server.initial_state(weights, self._seed, optimizer)

  def broadcast(self, state: phases.ServerState, rate: tf.Tensor) -> Mapping[str, Any]:
    """Returns what is broadcast: the networks that clients train, seed and rate."""
    params = select(state.global_model_weights.trainable, self._names)
    values = collections.OrderedDict(params=params, seed=state.round_seed, rate=rate)
    if self._objective.is_scheduled:
      values['round'] = state.round
    return values

  def average(
    self,
    state: phases.ServerState,
    aggregated: Mapping[str, Any],
    own: base.Params | None = None,
  ) -> base.Params:
    """Returns the model after the clients' part of a round.

    Args:
      state: Before it.
      aggregated: The clients' payloads, combined.
      own: The server's model, which is averaged with theirs; None: there is none.

    Returns:
      The average of what clients train; everything else is the server's.
    """
    before = state.global_model_weights.trainable
    params = collections.OrderedDict(before if own is None else own)
    common = {} if own is None else select(own, self._names)
    params.update(grouping.average(select(before, self._names), aggregated, common))
    return params

  def training(
    self,
    function: client_functions.ClientFunction,
    rate: Callable[[tf.Tensor], tf.Tensor],
    plan: grouping.Grouping,
    own: Callable[[phases.ServerState], base.Params] | None = None,
  ) -> phases.Exchange:
    """Returns the clients' part of a round, after which the model is the average.

    Args:
      function: What a client computes from the values of `broadcast`.
      rate: The number of a round -> the clients' learning rate.
      plan: How clients are averaged.
      own: State -> `own` of `average`; None: there is none.
    """

    def receive(state, aggregated):
      params = self.average(state, aggregated, own(state) if own else None)
      metrics = grouping.report(aggregated, self._objective.summarize)
      return server.with_params(state, params), {phases.CLIENT_WORK: metrics}

    return phases.Exchange(
      'train',
      lambda state: self.broadcast(state, rate(state.round)),
      grouping.client_function(function, plan.groups),
      plan.sent_kinds,
      receive,
    )


def student_of(
  objective: base.Objective,
) -> Callable[[phases.ServerState], Mapping[str, base.Params]]:
  """Returns state -> the model's encoder and head, by the name 'student'.

  With batch norm its population statistics are among them.

  Args:
    objective: What the server minimises; it defines the names.
  """
  names = _names(objective)

  def classifiers(state):
    weights = state.global_model_weights
    student = select(weights.trainable, names)
    student.update(weights.non_trainable)
    return collections.OrderedDict(student=student)

  return classifiers


def _names(
  objective: base.Objective,
) -> tuple[str, ...]:
  """Returns the names of an objective's parameters, without computing any."""
  with tf.Graph().as_default():
    return tuple(objective.init(tf.constant([0, 0], tf.int32)))


def select(params: Mapping[str, Any], names: Iterable[str]) -> base.Params:
  """Returns the parameters of these names, in their order."""
  return collections.OrderedDict((name, params[name]) for name in names)
