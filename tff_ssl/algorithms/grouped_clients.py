"""The clients' part of a round whose server has labels: local training, in groups.

Clients train any objective, with a context from the server where it takes one; their
updates go through `groupwise.GroupwiseFactory`. One group without the server's model is
FedAvg, and the default.
"""

import collections
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import communication
from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import cohorts
from tff_ssl.algorithms import fedavg
from tff_ssl.objectives import base
from tff_ssl.objectives import context as context_lib

# Of an example: the group of the client that holds it, in this round.
GROUP = 'group'
_ENERGY = 'energy'
# A mean of equal numbers, one for each client of a pack, may be rounded.
_NEARLY_ONE = 0.999


@dataclasses.dataclass(frozen=True)
class Grouping:
  """How clients' models are averaged.

  Attributes:
    groups: S, groups of a round; 1: clients need not name one.
    server_weight: tau, what the server's model counts in a group, in clients; 0: it is
      in none.
  """

  groups: int = 1
  server_weight: float = 0.0

  def __post_init__(self) -> None:
    groupwise.check(self.groups, self.server_weight)


FEDAVG = Grouping()


def client_function(
  objective: base.Objective | base.Stateful | context_lib.Contextual,
  config: fedavg.FedAvgConfig,
  groups: int,
) -> client_functions.ClientFunction:
  """Builds what a client computes: FedAvg's part, in a context, with its group.

  Args:
    objective: What is minimised.
    config: How.
    groups: S.

  Returns:
    A function of `params`, `seed`, `rate` and, for a contextual objective, `context`.
    Beside what FedAvg's sends, there is `group`, one-hot, and among the metrics the
    `energy` n_k |update|^2.
  """

  def each(shared, examples):
    own = collections.OrderedDict(examples)
    group = _group_of(own.pop(GROUP)) if groups > 1 else tf.constant(0)
    given = context_lib.given(objective, shared.get('context', {}))
    result = fedavg.client_function(given, config).each(shared, own)
    squares = [tf.reduce_sum(tf.square(u)) for u in result.means['update'].values()]
    means = collections.OrderedDict(result.means)
    means['metrics'] = collections.OrderedDict(means['metrics'])
    means['metrics'][_ENERGY] = result.weight * tf.add_n(squares)
    contributes = tf.cast(result.weight > 0, tf.float32)
    means[GROUP] = tf.one_hot(group, groups) * contributes
    return result._replace(means=means)

  return client_functions.ClientFunction(each)


class Sent(NamedTuple):
  """What the server has after the clients' part.

  Attributes:
    state: Of the aggregators, for the next round.
    mean: The aggregated update.
    server_share: What the server's model counts in the average, a scalar.
    examples: Of all clients that contribute; 0: none does.
    metrics: Named numbers.
  """

  state: Any
  mean: Any
  server_share: Any
  examples: Any
  metrics: Any


class GroupedClients:
  """The clients' part of a round.

  Attributes:
    cohort: How the clients are laid out.
    initialize: () -> states of the aggregators at the server.
  """

  def __init__(
    self,
    objective: base.Objective | base.Stateful | context_lib.Contextual,
    element_spec: Any,
    params_type: tff.Type,
    config: fedavg.FedAvgConfig,
    grouping: Grouping = FEDAVG,
    aggregation: aggregation_lib.Aggregation | None = None,
    context_type: tff.Type | None = None,
  ):
    """Builds the computations.

    Args:
      objective: What a client minimises.
      element_spec: Of one example, or the `packs.PackSpec` of it.
      params_type: Of the objective's parameters.
      config: How a client trains; its seed is not used here.
      grouping: How updates are averaged.
      aggregation: What everything that leaves a client goes through; plain when None.
      context_type: Of a contextual objective's context.

    Raises:
      ValueError: If elements are not single examples, or there are several groups and
        elements do not name theirs.
    """
    self.cohort = cohorts.build_cohort(
      element_spec, aggregation or aggregation_lib.plain()
    )
    if grouping.groups > 1:
      _check_group(getattr(element_spec, 'element_spec', element_spec))
    self._objective = objective
    others = {'rate': tff.TensorType(np.float32)}
    if context_type is not None:
      others['context'] = context_type
    self._shared_type = clients.shared_type(params_type, **others)
    function = client_function(objective, config, grouping.groups)
    self._train = self.cohort.map(function, self._shared_type)
    self._rate = tff.tensorflow.computation(config.rate, tff.TensorType(np.int32))
    sent = self._train.type_signature.result
    through = self.cohort.aggregation
    self._updates = groupwise.GroupwiseFactory(
      grouping.groups, grouping.server_weight, through.updates, through.counts
    ).create(sent['update'])
    self._metrics = through.metrics.create(sent['metrics'], sent['weight'])
    self._counts = through.counts.create(sent['counts'])
    self._build_small_parts(sent)

  def _build_small_parts(self, sent: tff.StructType) -> None:
    """Builds what goes on between the aggregations."""

    @tff.federated_computation
    def initialize():
      return tff.federated_zip(
        collections.OrderedDict(
          updates=self._updates.initialize(),
          metrics=self._metrics.initialize(),
          counts=self._counts.initialize(),
        )
      )

    @tff.tensorflow.computation(sent['weight'], sent['counts'], sent[GROUP])
    def to_weight(weight, counts, members):
      group = tf.argmax(members, output_type=tf.int32)
      one_group = tf.reduce_max(members) > _NEARLY_ONE
      check = tf.debugging.Assert(
        tf.logical_or(one_group, tf.equal(weight, 0.0)),
        ['a pack holds clients of several groups, with shares', members],
      )
      with tf.control_dependencies([check] if check is not None else []):
        idle = counts['empty_clients'] + counts['nonfinite_clients']
        return collections.OrderedDict(
          examples=tf.identity(weight), clients=counts['clients'] - idle, group=group
        )

    known = self._updates.next.type_signature.result.result.member

    @tff.tensorflow.computation(sent['metrics'], sent[GROUP], known['scales'])
    def scale_energy(metrics, members, scales):
      result = collections.OrderedDict(metrics)
      result[_ENERGY] *= tf.square(tf.reduce_sum(members * scales))
      return result

    down = communication.num_bytes(self._shared_type)
    # The group is what a client has been told, and its s_g comes down.
    up = communication.num_bytes(sent) - communication.num_bytes(sent[GROUP])

    @tff.tensorflow.computation(sent['metrics'], sent['counts'], known)
    def report(metrics, counts, aggregated):
      averaged = collections.OrderedDict(metrics)
      energy = averaged.pop(_ENERGY)
      result = collections.OrderedDict(loss=averaged.pop('loss'))
      result.update(self._objective.summarize(averaged))
      result['gradient_diversity'] = _diversity(energy, aggregated)
      result.update(counts)
      result.update(clients.traffic(counts['clients'], down=down, up=up))
      return result

    self.initialize = initialize
    self._to_weight, self._scale_energy = to_weight, scale_energy
    self._report = report

  def next(self, state, params, seed, round, data, context=None) -> Sent:
    """Runs the clients' part, inside a federated computation.

    Args:
      state: Of the aggregators, at the server.
      params: Of the objective, at the server.
      seed: The round's, at the server.
      round: Its number, at the server.
      data: On the clients.
      context: Of a contextual objective, at the server.
    """
    shared = collections.OrderedDict(
      params=tff.federated_broadcast(params),
      seed=tff.federated_broadcast(seed),
      rate=tff.federated_broadcast(tff.federated_map(self._rate, round)),
    )
    if context is not None:
      shared['context'] = tff.federated_broadcast(context)
    examples = tff.federated_map(self.cohort.read, data)
    trained = tff.federated_map(self._train, (shared, examples))
    weight = tff.federated_map(
      self._to_weight, (trained['weight'], trained['counts'], trained[GROUP])
    )
    updates = self._updates.next(state['updates'], trained['update'], weight)
    scales = tff.federated_broadcast(updates.result['scales'])
    scaled = tff.federated_map(
      self._scale_energy, (trained['metrics'], trained[GROUP], scales)
    )
    metrics = self._metrics.next(state['metrics'], scaled, trained['weight'])
    counts = self._counts.next(state['counts'], trained['counts'])
    return Sent(
      tff.federated_zip(
        collections.OrderedDict(
          updates=updates.state, metrics=metrics.state, counts=counts.state
        )
      ),
      updates.result['mean'],
      updates.result['server_share'],
      updates.result['examples'],
      tff.federated_map(
        self._report, (metrics.result, counts.result, updates.result)
      ),
    )


def average(params, mean, server_params, server_share, examples) -> base.Params:
  """Returns the model after a round; as it was where no client contributed.

  Args:
    params: Before it.
    mean: The aggregated update of the clients, initial minus final.
    server_params: The server's model; parameters that it does not have are averaged
      over clients alone, as are all of them where it is empty.
    server_share: What it counts.
    examples: Of all clients that contribute.
  """
  result = collections.OrderedDict()
  for name, value in params.items():
    averaged = value - mean[name]
    if name in server_params:
      share = tf.cast(server_share, value.dtype)
      averaged = (1.0 - share) * averaged + share * server_params[name]
    result[name] = averaged
  return clients.choose(examples > 0, result, collections.OrderedDict(params))


def _diversity(energy: tf.Tensor, aggregated: Any) -> tf.Tensor:
  """Returns sum |c_k u_k|^2 / sum |c_k u_k|, squared; 0 where nothing moves.

  c_k = n_k s_g are the coefficients. With clients of one size in one group it is
  sum |u_k|^2 / |sum u_k|^2: 1/K where all K agree, and larger the less they do.

  Source: Yin et al., "Gradient Diversity", AISTATS 2018, Definition 1.
  """
  total = tf.add_n([tf.reduce_sum(tf.square(u)) for u in aggregated['mean'].values()])
  of_clients = tf.square(1.0 - aggregated['server_share'])
  return tf.math.divide_no_nan(energy * aggregated['examples'], total * of_clients)


def _group_of(groups: tf.Tensor) -> tf.Tensor:
  """Returns the group of a client, from those of its examples; 0 without any."""
  return tf.reduce_sum(groups[:1])


def _check_group(element_spec: Any) -> None:
  spec = element_spec.get(GROUP)
  if spec is None or spec.shape.rank != 0 or spec.dtype != tf.int32:
    raise ValueError(
      f'The elements of the client data are {element_spec}; for several groups they '
      f'must have an int32 scalar `{GROUP}`.'
    )
