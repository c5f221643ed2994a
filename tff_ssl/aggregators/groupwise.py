"""Group-wise averaging, with the model of a server in each group.

Zhengming Zhang, Zhewei Yao, Yaoqing Yang, Yujun Yan, Joseph E. Gonzalez, Michael W.
Mahoney. Improving Semi-supervised Federated Learning by Reducing the Gradient Diversity
of Models. IEEE Big Data 2021 (FedRGD); FedSup (Gill, 2023), Algorithm 2.

The clients of a round are dealt into groups of two and three. A group's model is the
mean of its clients' models and the server's; the new model is the mean of the groups'
models:

  w = 1/S sum_g (m_g sum_{k in g} n_k/N_g w_k + tau w_server) / (m_g + tau)

with n_k the weight of client k, N_g and m_g the weight and the number of the clients of
group g that contribute, S the number of groups that have such a client, and tau how
many clients the server counts as. If clients have equal sizes and tau = 1, a group's
model is the plain mean of its models. With one group and tau = 0 this is FedAvg.

The new model is linear in the w_k: client k has the coefficient n_k s_g, where s_g
follows from two sums over clients, N_g and m_g. These sums are taken first. A weighted
mean with the coefficients remains, for which secure and private means swap in. A client
sends one model, as in FedAvg.

A TFF value may hold many clients (a pack) if all belong to one group. Its coefficient
is then the sum of its clients' coefficients.
"""

import collections
import dataclasses

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.computing import checks

# All clients of a pack are in one group if their mean share there is 1, up to rounding.
_NEARLY_ONE = 0.999


def num_groups(num_clients: int) -> int:
  """Returns how many groups of two and three K clients form; a single one forms one.

  Args:
    num_clients: K, at least 1. If K is odd, one group has three.
  """
  checks.at_least(1, num_clients=num_clients)
  return max(1, num_clients // 2)


def deal(num_clients: int, seed: int, round: int) -> np.ndarray:
  """Deals clients into groups at random.

  Args:
    num_clients: K.
    seed: Seed of the run, not negative.
    round: Number of the round, not negative.

  Returns:
    int32 [K]: the group of each client, in [0, `num_groups(K)`); a function of the seed
    and the round alone.
  """
  generator = np.random.default_rng([seed, round, num_clients])
  groups = np.arange(num_clients, dtype=np.int32) % num_groups(num_clients)
  return generator.permutation(groups)


def check(groups: int, server_weight: float) -> None:
  """Raises ValueError if there is no group, or tau is negative or not finite."""
  checks.at_least(1, groups=groups)
  checks.not_negative(server_weight=server_weight)


def coefficients(
  weights: tf.Tensor, counts: tf.Tensor, server_weight: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the coefficients of clients and of the server in the average.

  Args:
    weights: N_g, float32 [S].
    counts: m_g, [S]; a group with N_g = 0 has no client.
    server_weight: tau, at least 0.

  Returns:
    s_g [S], 0 for a group without clients, and the server's coefficient, a scalar.
    The latter and sum_g N_g s_g add up to 1, or to 0 if no client contributes.
  """
  present = tf.cast(weights > 0, weights.dtype)
  shares = tf.math.divide_no_nan(present, tf.reduce_sum(present))
  members = tf.cast(counts, weights.dtype)
  of_clients = tf.math.divide_no_nan(members, members + server_weight)
  scales = tf.math.divide_no_nan(shares * of_clients, weights)
  return scales, tf.reduce_sum(shares * (1.0 - of_clients))


class GroupwiseFactory(tff.aggregators.WeightedAggregationFactory):
  """Weighted mean of client values with the coefficients of their groups.

  The created process has `next(state, value@CLIENTS, weight@CLIENTS)`. A weight
  is `examples` (float32, n_k, 0 for a discarded client), `clients` (int32, 1, or
  how many of a pack contribute) and `group` (int32). The result at the server is `mean`
  (like value; with c_k = n_k s_g, sum c_k v_k / sum c_k), `scales` (s_g, float32 [S]),
  `examples` (float32, sum n_k) and `server_share` (float32).
  """

  def __init__(
    self,
    groups: int,
    server_weight: float,
    mean: tff.aggregators.WeightedAggregationFactory,
    totals: tff.aggregators.UnweightedAggregationFactory,
  ):
    """Initializes the factory.

    Args:
      groups: S, at least 1.
      server_weight: tau, at least 0.
      mean: The weighted mean that values go through.
      totals: Sums int32 vectors over clients: the N_g and the m_g. The weight of each
        client is therefore rounded to a whole number.
    """
    check(groups, server_weight)
    self._groups = groups
    self._server_weight = server_weight
    self._mean = mean
    self._totals = totals

  @property
  def weight_type(self) -> tff.StructType:
    """The type of a client's weight."""
    return tff.types.to_type(
      collections.OrderedDict(
        examples=tff.TensorType(np.float32),
        clients=tff.TensorType(np.int32),
        group=tff.TensorType(np.int32),
      )
    )

  def create(self, value_type, weight_type=None) -> tff.templates.AggregationProcess:
    """Creates the process for a type of client values.

    Args:
      value_type: Structure of floating tensors.
      weight_type: The factory's `weight_type`; None means the same.
    """
    weight_type = weight_type or self.weight_type
    groups, server_weight = self._groups, self._server_weight

    @tff.tensorflow.computation(weight_type)
    def share_of_totals(weight):
      examples = _whole(weight['examples'])
      contributes = tf.cast(examples > 0, tf.int32)
      members = tf.one_hot(weight['group'], groups, dtype=tf.int32) * contributes
      return collections.OrderedDict(
        group_examples=members * tf.cast(examples, tf.int32),
        group_clients=members * weight['clients'],
      )

    totals = self._totals.create(share_of_totals.type_signature.result)
    mean = self._mean.create(value_type, tff.TensorType(np.float32))

    @tff.tensorflow.computation(share_of_totals.type_signature.result)
    def to_coefficients(total):
      weights = tf.cast(total['group_examples'], tf.float32)
      scales, share = coefficients(weights, total['group_clients'], server_weight)
      return collections.OrderedDict(
        scales=scales, examples=tf.reduce_sum(weights), server_share=share
      )

    scales_type = to_coefficients.type_signature.result['scales']

    @tff.tensorflow.computation(weight_type, scales_type)
    def coefficient(weight, scales):
      return _whole(weight['examples']) * scales[weight['group']]

    @tff.federated_computation
    def initialize():
      return tff.federated_zip(
        collections.OrderedDict(totals=totals.initialize(), mean=mean.initialize())
      )

    @tff.federated_computation(
      initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(weight_type, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      total = totals.next(state['totals'], tff.federated_map(share_of_totals, weight))
      known = tff.federated_map(to_coefficients, total.result)
      own = tff.federated_map(
        coefficient, (weight, tff.federated_broadcast(known['scales']))
      )
      averaged = mean.next(state['mean'], value, own)
      return tff.templates.MeasuredProcessOutput(
        tff.federated_zip(
          collections.OrderedDict(totals=total.state, mean=averaged.state)
        ),
        tff.federated_zip(
          collections.OrderedDict(
            mean=averaged.result,
            scales=known['scales'],
            examples=known['examples'],
            server_share=known['server_share'],
          )
        ),
        averaged.measurements,
      )

    return tff.templates.AggregationProcess(initialize, next_fn)


def _whole(examples: tf.Tensor) -> tf.Tensor:
  """Rounds n_k, so that N_g and the coefficients use the same integer."""
  return tf.round(examples)


@dataclasses.dataclass(frozen=True)
class GroupMean(combine.Kind):
  """The mean over groups of clients, with the server's model in each.

  The server receives the result of `GroupwiseFactory`: `mean`, `scales`,
  `examples` and `server_share`. A client names its group, one-hot, in the value of kind
  `Local` called `by`.

  Attributes:
    groups: S, at least 1.
    server_weight: tau, how many clients the server's model counts as in a group.
    by: Name of the value that gives the group.
    clipped_as: See `combine.Kind`.
  """

  groups: int
  server_weight: float = 0.0
  by: str = 'group'
  clipped_as: str = 'update'

  @property
  def weighed_by(self) -> tuple[str, ...]:
    """See `combine.Kind`."""
    return (self.by,)

  @property
  def in_groups(self) -> bool:
    """See `combine.Kind`."""
    return self.groups > 1

  def weigh(self, weight, clients, members):
    """Returns the weight in the group.

    It refuses a pack with clients of several groups, and a group not in [0, S).
    """
    group = tf.argmax(members, output_type=tf.int32)
    one_group = tf.reduce_max(members) > _NEARLY_ONE
    message = (
      f'the `{self.by}` of an example is not in [0, {self.groups}), or a pack has '
      'clients of several groups; the shares of the groups are'
    )
    check = tf.debugging.Assert(
      tf.logical_or(one_group, tf.equal(weight, 0.0)), [message, members]
    )
    with tf.control_dependencies([check] if check is not None else []):
      return collections.OrderedDict(
        examples=tf.identity(weight), clients=clients, group=group
      )

  def create(self, aggregation, value_type):
    """See `combine.Kind`."""
    return GroupwiseFactory(
      self.groups, self.server_weight, aggregation.updates, aggregation.counts
    ).create(value_type)
