"""Labels at the server: algorithms whose server trains too.

A round has two sources of data, which never meet: the server's labelled examples, and
the clients' unlabelled ones. Such an algorithm is `initialize` and one `next`, of the
server's state and data and of the clients' data, in that order; it is composed of other
computations as any other. What its server trains, and with what state of an optimizer,
is in its state. A run's round loop drives it through `Paired`, which takes both data as
one argument.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_ssl.algorithms import server
from tff_ssl.algorithms import server_training
from tff_ssl.objectives import base


class Process(NamedTuple):
  """An algorithm whose server has data.

  Attributes:
    initialize: () -> state@SERVER.
    next: (state@SERVER, labelled data@SERVER, data@CLIENTS) -> a
      `tff.learning.templates.LearningProcessOutput` of state and metrics@SERVER; the
      last argument is missing where no client takes part.
    get_model_weights: state -> `tff.learning.models.ModelWeights`: the model that is
      the round's result, of FedSup the student.
    get_classifier_weights: state -> parameters by name: those of an encoder and a head
      that classify together, by the name of the model ('student', 'teacher').
  """

  initialize: tff.Computation
  next: tff.Computation
  get_model_weights: tff.Computation
  get_classifier_weights: tff.Computation


class State(NamedTuple):
  """State between rounds, of algorithms with one model.

  Attributes:
    global_model_weights: `tff.learning.models.ModelWeights`.
    optimizer: The state of the server's optimizer.
    round: int32, the number of the next round, from 0.
    round_seed: int32 [2], of the next round.
    clients: What the clients' part keeps at the server.
  """

  global_model_weights: Any
  optimizer: Any
  round: Any
  round_seed: Any
  clients: Any


class Paired:
  """A process as the round loop runs it: what its server and its clients hold is one.

  algorithm = at_server.Paired(fedsup.build_fedsup(...))
  state = algorithm.next(state, (labelled, [client_1, client_2])).state
  """

  def __init__(self, process: Process):
    """Wraps a process."""
    self._process = process
    self.get_model_weights = process.get_model_weights
    self.get_classifier_weights = process.get_classifier_weights

  def initialize(self) -> Any:
    """Returns the initial state."""
    return self._process.initialize()

  def next(self, state: Any, data: tuple[Any, ...]) -> Any:
    """Runs one round.

    Args:
      state: The state before.
      data: The server's data set and the list of the clients'; the first alone where
        no client takes part.
    """
    return self._process.next(state, *data)


def select(params: Mapping[str, Any], names: Iterable[str]) -> base.Params:
  """Returns the parameters of these names, in their order."""
  return collections.OrderedDict((name, params[name]) for name in names)


def initial_models(
  objective: base.Objective | base.Stateful,
  server_objective: base.Objective,
  seed: int,
) -> tuple[tff.Computation, tff.StructType]:
  """Returns () -> the weights of both sides' networks, and the type of the clients'.

  What both have, the encoder, is drawn once.

  Args:
    objective: Of the clients.
    server_objective: Of the server.
    seed: Of the run.
  """

  @tff.tensorflow.computation
  def of_clients():
    return server.initial_weights(objective, seed).trainable

  @tff.tensorflow.computation
  def initial_weights():
    params = server.initial_weights(objective, seed).trainable
    own = server.initial_weights(server_objective, seed).trainable
    params.update((name, w) for name, w in own.items() if name not in params)
    return as_weights(params)

  return initial_weights, of_clients.type_signature.result


def as_weights(params: base.Params) -> tff.learning.models.ModelWeights:
  """Returns parameters as model weights, none of which is beside the trainable ones."""
  return tff.learning.models.ModelWeights(params, collections.OrderedDict())


def build_initialize(
  models: tff.Computation,
  labelled: server_training.Labelled,
  seed: int,
  clients_state: tff.Computation | None = None,
) -> tff.Computation:
  """Builds () -> the initial `State` at the server.

  Args:
    models: () -> initial model weights.
    labelled: The server's part, of the weights' trainable parameters.
    seed: Of the run.
    clients_state: () -> what the clients' part keeps; None: nothing.
  """
  initial_seed, _ = server.round_seeds(seed)

  @tff.federated_computation
  def initialize():
    weights = tff.federated_eval(models, tff.SERVER)
    nothing = tff.federated_value((), tff.SERVER)
    return tff.federated_zip(
      State(
        weights,
        tff.federated_map(labelled.initial_optimizer, weights.trainable),
        server.first_round(),
        tff.federated_eval(initial_seed, tff.SERVER),
        clients_state() if clients_state is not None else nothing,
      )
    )

  return initialize


def output(
  state: Any,
  params: tff.Value,
  trained: tff.Value,
  next_seed: Callable[[tff.Value], tff.Value],
  clients: tff.Value,
  **metrics: tff.Value,
) -> tff.learning.templates.LearningProcessOutput:
  """Returns what a round does: the `State` after it, and its metrics.

  Args:
    state: Before the round.
    params: After it.
    trained: What `server_training.Labelled.train` returned.
    next_seed: Of `server.round_seeds`.
    clients: What the clients' part keeps at the server.
    **metrics: Of the clients, by name.
  """
  as_model = tff.tensorflow.computation(as_weights, params.type_signature.member)
  return tff.learning.templates.LearningProcessOutput(
    tff.federated_zip(
      State(
        tff.federated_map(as_model, params),
        trained['optimizer'],
        server.next_round(state.round),
        next_seed(state.round_seed),
        clients,
      )
    ),
    tff.federated_zip(
      collections.OrderedDict(**metrics, server_work=trained['metrics'])
    ),
  )


def model_and_classifier(
  state_type: tff.Type, names: tuple[str, ...]
) -> tuple[tff.Computation, tff.Computation]:
  """Builds `get_model_weights` and `get_classifier_weights` of a `State`.

  Args:
    state_type: Of the state.
    names: The parameters of encoder and head; the model is called 'student'.
  """

  @tff.tensorflow.computation(state_type)
  def get_model_weights(state):
    return state.global_model_weights

  @tff.tensorflow.computation(state_type)
  def get_classifier_weights(state):
    params = state.global_model_weights.trainable
    return collections.OrderedDict(student=select(params, names))

  return get_model_weights, get_classifier_weights
