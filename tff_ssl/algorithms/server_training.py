"""What a server with labels does in a round: training on them, as clients train."""

import collections
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import clients
from tff_ssl.algorithms import local_plan
from tff_ssl.algorithms import local_training
from tff_ssl.objectives import base
from tff_ssl.objectives import context as context_lib
from tff_ssl.objectives import population
from tff_ssl.optimization import local
from tff_ssl.optimization import schedules


@dataclasses.dataclass(frozen=True)
class ServerPlan:
  """How a server trains on its labelled examples in a round.

  Attributes:
    local: Epochs of a round, batch size and optimizer, whose state lives on.
    learning_rate: Of the optimizer, or a schedule of it over rounds, counted from 0.
  """

  local: local_plan.LocalPlan = dataclasses.field(
    default_factory=lambda: local_plan.LocalPlan(
      batch_size=128, optimizer=local.LocalOptimizer('adam')
    )
  )
  learning_rate: float | schedules.Schedule = 1e-3

  def __post_init__(self) -> None:
    rate = self.learning_rate
    if not callable(rate) and not 0 < rate < float('inf'):
      raise ValueError(f'learning_rate is {rate}; it must be positive and finite.')

  def rate(self, round: tf.Tensor) -> tf.Tensor:
    """Returns the learning rate of a round, float32."""
    if callable(self.learning_rate):
      return self.learning_rate(round)
    return tf.constant(self.learning_rate, tf.float32)


class Labelled:
  """The server's part: training some parameters of a model on labelled examples.

  Attributes:
    names: Of the parameters that are trained.
    data_type: Of the server's data.
    train: (parameters with at least `names`, optimizer's state, round's seed, round,
      data) -> `params` (all of them), `optimizer` and `metrics`; with `context` between
      seed and round where the objective takes one.
  """

  def __init__(
    self,
    objective: base.Objective | context_lib.Contextual,
    element_spec: Any,
    plan: ServerPlan,
    params_type: tff.StructType,
    context_type: tff.Type | None = None,
  ):
    """Builds the computations.

    Args:
      objective: What is minimised.
      element_spec: `tf.TensorSpec`s of one labelled example.
      plan: How.
      params_type: Of the parameters that `train` is given.
      context_type: Of a contextual objective's context.

    Raises:
      ValueError: If elements have no scalar `example_id`, or no `label`, or a network
        has batch norm.
    """
    check_networks(objective)
    clients.check_element(element_spec)
    if 'label' not in element_spec:
      raise ValueError(
        f'The elements of the server data are {element_spec}; they must have a `label`.'
      )
    self.data_type = tff.SequenceType(tff.types.tensorflow_to_type(element_spec))
    self._objective = objective
    self._plan = plan
    with tf.Graph().as_default():
      self.names = tuple(objective.init(tf.constant([0, 0], tf.int32)))
    self._build(params_type, context_type)

  def _build(self, params_type: tff.StructType, context_type: tff.Type | None) -> None:
    def initial_optimizer(params):
      return self._plan.local.optimizer.init(self._own(params))

    self.initial_optimizer = tff.tensorflow.computation(initial_optimizer, params_type)
    common = (
      params_type,
      self.initial_optimizer.type_signature.result,
      tff.TensorType(np.int32, [2]),
    )
    last = (tff.TensorType(np.int32), self.data_type)
    if context_type is None:

      @tff.tensorflow.computation(*common, *last)
      def train(params, optimizer, seed, round, data):
        return self._train(self._objective, params, optimizer, seed, round, data)
    else:

      @tff.tensorflow.computation(*common, context_type, *last)
      def train(params, optimizer, seed, context, round, data):
        given = context_lib.given(self._objective, context)
        return self._train(given, params, optimizer, seed, round, data)

    self.train = train

  def _own(self, params) -> base.Params:
    """Returns the parameters that are trained."""
    return collections.OrderedDict((name, params[name]) for name in self.names)

  def _train(self, objective, params, optimizer, seed, round, data):
    """Trains for a round; what is empty or not finite changes nothing."""
    examples = clients.all_examples(data)
    own = self._own(params)
    trained = local_training.train(
      objective,
      self._plan.local,
      own,
      examples,
      seed,
      self._plan.rate(round),
      optimizer=optimizer,
    )
    return _kept(self._objective, params, own, optimizer, trained, examples)


def check_networks(objective: Any) -> None:
  """Raises ValueError if a network has batch norm.

  The server's training and the clients' would each have population statistics of their
  own data, and no rule says whose a model has.
  """
  if population.mixes_examples(objective):
    raise ValueError(
      'A network has batch norm; with labels at the server all must have group norm.'
    )


def _kept(objective, params, own, optimizer, trained, examples):
  """Returns what training gave, or what was there if that is not finite."""
  num_examples = base.example_count(examples)
  finite = clients.is_finite((trained.params, trained.metrics))
  usable = tf.logical_and(finite, num_examples > 0)
  averaged = collections.OrderedDict(clients.keep_if(finite, trained.metrics))
  metrics = collections.OrderedDict(loss=averaged.pop('loss'))
  metrics.update(objective.summarize(averaged))
  metrics.update(
    examples=tf.where(finite, num_examples, 0),
    nonfinite_batches=tf.cast(tf.logical_not(finite), tf.int32),
  )
  everything = collections.OrderedDict(params)
  everything.update(clients.choose(usable, trained.params, own))
  return collections.OrderedDict(
    params=everything,
    optimizer=clients.choose(usable, trained.optimizer, optimizer),
    metrics=metrics,
  )
