"""The encoding statistics of each of many clients of equal size, computed together.

For DCCO's two exchanges if each client's values are clipped: all clients go through
the networks together, and each one's values are kept apart (see `vectorized_clients`).
"""

import collections

import tensorflow as tf

from tff_ssl.federated import vectorized_clients
from tff_ssl.losses import statistics_loss
from tff_ssl.objectives import base
from tff_ssl.objectives import statistics


def means(
  objective: statistics.StatisticsObjective,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
  reference: statistics_loss.Reference | None,
  num_clients: tf.Tensor,
) -> tuple[statistics_loss.Statistics, base.Metrics]:
  """Returns `objective.statistics_and_spread` of each client, each tensor [K, ...].

  Args:
    objective: Defines them; its networks treat each example by itself.
    params: The same for all clients.
    examples: Those of K clients with n >= 1 examples each, client after client.
    seed: int32 [2], the round's.
    reference: What moments are taken around.
    num_clients: K, int32 scalar.
  """

  @tf.autograph.experimental.do_not_convert
  def of_one(own):
    f, g = own
    return objective.statistics_of(f, g, reference)

  encodings = objective.model.encode(params, examples, seed)
  own = vectorized_clients.grouped(encodings, num_clients)
  return tf.vectorized_map(of_one, own, fallback_to_while_loop=False)


def gradients(
  objective: statistics.StatisticsObjective,
  aggregated: statistics_loss.Statistics,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
  reference: statistics_loss.Reference | None,
  num_clients: tf.Tensor,
) -> base.Params:
  """Returns each client's gradient of the loss of the aggregated statistics, [K, ...].

  The loss is L(S_k + sg(S - S_k)). Its gradient is linear in the client's statistics
  S_k; the coefficients are the gradient of L at S, the same for all clients.

  Args:
    objective: See `means`, also for all that is not said here.
    aggregated: S.
    params: The gradient is taken with respect to these.
    examples: Examples of K clients.
    seed: The round's.
    reference: What moments are taken around.
    num_clients: K.
  """
  with tf.GradientTape() as tape:
    tape.watch(aggregated)
    loss = objective.loss_of(aggregated)
  slope = tape.gradient(
    loss, aggregated, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )

  def encode(own: base.Params) -> base.Encodings:
    f, g = objective.model.encode(own, examples, seed)
    return collections.OrderedDict(f=f, g=g)

  def along(own: base.Encodings, own_examples: base.Examples):
    del own_examples
    own_statistics, _ = objective.statistics_of(own['f'], own['g'], reference)
    products = [
      tf.reduce_sum(slope[name] * value) for name, value in own_statistics.items()
    ]
    return tf.add_n(products), collections.OrderedDict()

  return vectorized_clients.each_gradient(encode, along, params, examples, num_clients)[
    0
  ]
