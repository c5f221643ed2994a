"""Clients in groups: what one client computes, and how their models are averaged."""

import collections
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import fedavg
from tff_ssl.objectives import base
from tff_ssl.objectives import context as context_lib

# Of an example: the group of the client that holds it, in this round.
GROUP = 'group'
ENERGY = 'energy'


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
    means['metrics'][ENERGY] = result.weight * tf.add_n(squares)
    contributes = tf.cast(result.weight > 0, tf.float32)
    means[GROUP] = tf.one_hot(group, groups) * contributes
    return result._replace(means=means)

  return client_functions.ClientFunction(each)


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


def diversity(energy: tf.Tensor, aggregated: Any) -> tf.Tensor:
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


def check_element(element_spec: Any) -> None:
  """Raises ValueError if an example does not name its client's group."""
  spec = element_spec.get(GROUP)
  if spec is None or spec.shape.rank != 0 or spec.dtype != tf.int32:
    raise ValueError(
      f'The elements of the client data are {element_spec}; for several groups they '
      f'must have an int32 scalar `{GROUP}`.'
    )
