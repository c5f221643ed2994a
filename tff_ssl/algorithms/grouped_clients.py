"""The clients' part of a round whose server has labels: local training, in groups.

Clients train any objective, with a context from the server where it takes one; their
updates go through `groupwise.GroupwiseFactory`. One group without the server's model is
FedAvg, and the default.
"""

import collections
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
from tff_ssl.algorithms import grouping as grouping_lib
from tff_ssl.algorithms import server_training
from tff_ssl.objectives import base
from tff_ssl.objectives import context as context_lib

# A mean of equal numbers, one for each client of a pack, may be rounded.
_NEARLY_ONE = 0.999


class Sent(NamedTuple):
  """What the server has after the clients' part.

  Attributes:
    state: Of the aggregators, for the next round.
    mean: The aggregated update.
    server_share: What the server's model counts in the average, a scalar.
    examples: Of all clients that contribute; 0: none does.
    metrics: Named numbers.
    others: The weighted means of what else the clients send, by name.
  """

  state: Any
  mean: Any
  server_share: Any
  examples: Any
  metrics: Any
  others: Any


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
    grouping: grouping_lib.Grouping = grouping_lib.FEDAVG,
    aggregation: aggregation_lib.Aggregation | None = None,
    context_type: tff.Type | None = None,
    function: client_functions.ClientFunction | None = None,
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
      function: What a client computes: `grouping.client_function`, as when None, or
        what sends more than that.

    Raises:
      ValueError: If elements are not single examples, or there are several groups and
        elements do not name theirs.
    """
    server_training.check_networks(objective)
    self.cohort = cohorts.build_cohort(
      element_spec, aggregation or aggregation_lib.plain()
    )
    if grouping.groups > 1:
      grouping_lib.check_element(getattr(element_spec, 'element_spec', element_spec))
    self._objective = objective
    others = {'rate': tff.TensorType(np.float32)}
    if context_type is not None:
      others['context'] = context_type
    self._shared_type = clients.shared_type(params_type, **others)
    function = function or grouping_lib.client_function(
      objective, config, grouping.groups
    )
    self._train = self.cohort.map(function, self._shared_type)
    self._rate = tff.tensorflow.computation(config.rate, tff.TensorType(np.int32))
    sent = self._train.type_signature.result
    through = self.cohort.aggregation
    self._updates = groupwise.GroupwiseFactory(
      grouping.groups, grouping.server_weight, through.updates, through.counts
    ).create(sent['update'])
    self._metrics = through.metrics.create(sent['metrics'], sent['weight'])
    self._counts = through.counts.create(sent['counts'])
    known = ('update', 'metrics', grouping_lib.GROUP, 'weight', 'counts')
    self._others = {
      name: through.updates.create(value_type, sent['weight'])
      for name, value_type in tff.structure.iter_elements(sent)
      if name not in known
    }
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
          **{name: other.initialize() for name, other in self._others.items()},
        )
      )

    @tff.tensorflow.computation(
      sent['weight'], sent['counts'], sent[grouping_lib.GROUP]
    )
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

    @tff.tensorflow.computation(
      sent['metrics'], sent[grouping_lib.GROUP], known['scales']
    )
    def scale_energy(metrics, members, scales):
      result = collections.OrderedDict(metrics)
      result[grouping_lib.ENERGY] *= tf.square(tf.reduce_sum(members * scales))
      return result

    down = communication.num_bytes(self._shared_type)
    # The group is what a client has been told, and its s_g comes down.
    up = communication.num_bytes(sent) - communication.num_bytes(
      sent[grouping_lib.GROUP]
    )

    @tff.tensorflow.computation(sent['metrics'], sent['counts'], known)
    def report(metrics, counts, aggregated):
      averaged = collections.OrderedDict(metrics)
      energy = averaged.pop(grouping_lib.ENERGY)

      def summarize(rest):
        summary = self._objective.summarize(rest)
        summary['gradient_diversity'] = grouping_lib.diversity(energy, aggregated)
        return summary

      return clients.report(averaged, counts, summarize, down=down, up=up)

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
      self._to_weight,
      (trained['weight'], trained['counts'], trained[grouping_lib.GROUP]),
    )
    updates = self._updates.next(state['updates'], trained['update'], weight)
    scales = tff.federated_broadcast(updates.result['scales'])
    scaled = tff.federated_map(
      self._scale_energy, (trained['metrics'], trained[grouping_lib.GROUP], scales)
    )
    metrics = self._metrics.next(state['metrics'], scaled, trained['weight'])
    counts = self._counts.next(state['counts'], trained['counts'])
    others = {
      name: other.next(state[name], trained[name], trained['weight'])
      for name, other in self._others.items()
    }
    return Sent(
      tff.federated_zip(
        collections.OrderedDict(
          updates=updates.state,
          metrics=metrics.state,
          counts=counts.state,
          **{name: other.state for name, other in others.items()},
        )
      ),
      updates.result['mean'],
      updates.result['server_share'],
      updates.result['examples'],
      tff.federated_map(self._report, (metrics.result, counts.result, updates.result)),
      {name: other.result for name, other in others.items()},
    )
