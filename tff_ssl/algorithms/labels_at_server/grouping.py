"""Averaging in groups of clients: what clients send, and how the server averages it.

Group-wise averaging (`aggregators.groupwise`), as in FedRGD and FedSup, with the
gradient diversity that is logged. One group without the server's model is FedAvg.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.aggregators import combine
from tff_ssl.aggregators import groupwise
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import server
from tff_ssl.objectives import base

# A field of an example: this round's group of the client that holds the example.
GROUP = 'group'
# By group, the sum of |n_k update|^2.
ENERGY = 'energy'


@dataclasses.dataclass(frozen=True)
class Grouping:
  """How clients' models are averaged.

  Attributes:
    groups: S, groups of a round; 1: clients need not name theirs.
    server_weight: tau, how many clients the server's model counts for in a group; 0: it
      is in no group.
  """

  groups: int = 1
  server_weight: float = 0.0

  def __post_init__(self) -> None:
    groupwise.check(self.groups, self.server_weight)

  @property
  def client_numbers(self) -> tuple[str, ...]:
    """Fields that an example must have (see `phases.Algorithm`)."""
    return (GROUP,) if self.groups > 1 else ()

  @property
  def sent_kinds(self) -> dict[str, combine.Kind]:
    """How the values that a client of `client_function` sends are combined."""
    return {
      server.UPDATE: groupwise.GroupMean(self.groups, self.server_weight, GROUP),
      server.METRICS: combine.METRICS,
      GROUP: combine.LOCAL,
      ENERGY: combine.Sum(self.groups),
    }


FEDAVG = Grouping()


def client_function(
  train: client_functions.ClientFunction, groups: int
) -> client_functions.ClientFunction:
  """Builds what a client in a group computes.

  Args:
    train: What it computes alone; sends an `update`.
    groups: S.

  Returns:
    A function that sends what `train` does, its `group`, one-hot, and `energy`.
  """

  def client_fn(shared, examples):
    own = collections.OrderedDict(examples)
    # A client without examples is in no group. It is assigned 0, but does not count.
    group = tf.reduce_sum(own.pop(GROUP)[:1]) if groups > 1 else tf.constant(0)
    sent = collections.OrderedDict(train.client_fn(shared, own))
    # A server with data computes batch norm's statistics itself (`server_training`).
    sent.pop(server.STATISTICS, None)
    member = tf.one_hot(group, groups)
    weight = train.weigh(base.example_count(examples))
    squares = [tf.reduce_sum(tf.square(u)) for u in sent[server.UPDATE].values()]
    sent[GROUP] = member
    sent[ENERGY] = member * tf.square(weight) * tf.add_n(squares)
    return sent

  return client_functions.ClientFunction(client_fn, weigh=train.weigh)


def average(
  params: base.Params,
  aggregated: Mapping[str, Any],
  server_params: Mapping[str, Any],
) -> base.Params:
  """Returns the model after a round; unchanged if no client counts.

  Args:
    params: Before it.
    aggregated: The clients' payloads, combined.
    server_params: The server's model; parameters that it lacks are averaged over
      clients alone, as are all parameters if it is empty.
  """
  update = aggregated[server.UPDATE]
  result = collections.OrderedDict()
  for name, value in params.items():
    averaged = value - update['mean'][name]
    if name in server_params:
      share = tf.cast(update['server_share'], value.dtype)
      averaged = (1.0 - share) * averaged + share * server_params[name]
    result[name] = averaged
  return clients.choose(update['examples'] > 0, result, collections.OrderedDict(params))


def report(
  aggregated: Mapping[str, Any], summarize: Callable[[base.Metrics], base.Metrics]
) -> base.Metrics:
  """Returns what a round reports about its clients, with their gradient diversity.

  Args:
    aggregated: The clients' payloads, combined.
    summarize: The objective's.
  """
  result = server.report(aggregated[server.METRICS], summarize)
  result['gradient_diversity'] = diversity(
    aggregated[ENERGY], aggregated[server.UPDATE]
  )
  return result


def diversity(energy: tf.Tensor, aggregated: Mapping[str, Any]) -> tf.Tensor:
  """Returns sum |c_k u_k|^2 / |sum c_k u_k|^2; 0 if nothing moves.

  c_k = n_k s_g are the coefficients. With clients of one size in one group it is
  sum |u_k|^2 / |sum u_k|^2: 1/K where all K agree, and larger the less they do.

  Source: Yin et al., "Gradient Diversity", AISTATS 2018, Definition 1.

  Args:
    energy: By group, sum |n_k u_k|^2.
    aggregated: The result of a grouped mean.
  """
  total = tf.add_n([tf.reduce_sum(tf.square(u)) for u in aggregated['mean'].values()])
  of_clients = tf.square(1.0 - aggregated['server_share'])
  return tf.math.divide_no_nan(
    tf.reduce_sum(tf.square(aggregated['scales']) * energy), total * of_clients
  )
