"""The first step of many clients of equal size, computed side by side."""

import collections

import tensorflow as tf

from tff_ssl.federated import client_functions
from tff_ssl.federated import local_training
from tff_ssl.objectives import base
from tff_ssl.objectives import population


def mean_gradient(
  objective: base.Separable,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
  num_clients: tf.Tensor,
) -> tuple[base.Params, base.Metrics]:
  """Returns the mean over clients of what each one's first step needs.

  All examples go through the networks together, the loss is taken of each client's
  encodings, and one gradient is taken of the mean of the losses.

  Args:
    objective: What is minimised.
    params: Where all clients start.
    examples: Those of K clients with n >= 1 examples each, client after client.
    seed: int32 [2], the round's.
    num_clients: K, int32 scalar.

  Returns:
    The mean of the gradients of the clients' losses, and the mean of the objective's
    metrics with `loss`.
  """
  size = base.example_count(examples) // num_clients

  def grouped(value):
    return tf.reshape(value, tf.concat([[num_clients, size], tf.shape(value)[1:]], 0))

  with tf.GradientTape() as tape:
    tape.watch(params)
    encodings = objective.encode(params, examples, seed)

  @tf.autograph.experimental.do_not_convert
  def of_one_client(client):
    own, own_examples = client
    with tf.GradientTape() as client_tape:
      client_tape.watch(own)
      loss, reported = objective.loss_of_encodings(own, own_examples)
    metrics: base.Metrics = collections.OrderedDict(loss=loss)
    metrics.update(reported)
    # An encoding may be there for the metrics alone.
    zero = tf.UnconnectedGradients.ZERO
    return client_tape.gradient(loss, own, unconnected_gradients=zero), metrics

  gradients, metrics = tf.vectorized_map(
    of_one_client,
    tf.nest.map_structure(grouped, (encodings, examples)),
    fallback_to_while_loop=False,
  )
  share = 1 / num_clients
  upstream = tf.nest.map_structure(
    lambda g, e: tf.reshape(g, tf.shape(e)) * tf.cast(share, e.dtype),
    gradients,
    encodings,
  )
  gradient = tape.gradient(
    encodings,
    params,
    output_gradients=upstream,
    unconnected_gradients=tf.UnconnectedGradients.ZERO,
  )
  return gradient, tf.nest.map_structure(lambda m: tf.reduce_mean(m, 0), metrics)


def only_step(
  objective: base.Objective | base.Stateful, plan: local_training.LocalPlan
) -> client_functions.EqualClients | None:
  """Builds the mean of the payloads of clients of equal size that take one step.

  Args:
    objective: What is minimised.
    plan: How a client trains.

  Returns:
    A function of `params`, `seed` and `rate` that gives the means `update` and
    `metrics`; None where clients take more steps, the objective's networks mix examples
    or keep state, or the mean of the steps is not the step of the mean gradient.
  """
  optimizer = plan.optimizer
  if not (plan.is_one_step and optimizer.first_step_is_affine):
    return None
  if isinstance(objective, base.Stateful) or not isinstance(objective, base.Separable):
    return None
  if population.mixes_examples(objective) or isinstance(objective, base.Scheduled):
    return None
  separable: base.Separable = objective

  def of_equal_clients(shared, examples, num_clients):
    params = shared['params']
    gradient, metrics = mean_gradient(
      separable, params, examples, shared['seed'], num_clients
    )
    # The proximal term is 0 at the start.
    stepped, _ = optimizer.update(
      params, optimizer.init(params), gradient, shared['rate']
    )
    update = tf.nest.map_structure(tf.subtract, params, stepped)
    return collections.OrderedDict(update=update, metrics=metrics)

  return of_equal_clients
