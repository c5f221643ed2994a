"""The first step of many clients of equal size, computed side by side.

If only the mean over the clients is needed, one gradient is taken of the mean loss. If
each client's gradient is needed, to be clipped, the clients still go through the
networks together, and each one's part of the gradient is kept apart
(`encoders.per_client_gradients`).
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import per_client_gradients
from tff_ssl.federated import client_functions
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import separable
from tff_ssl.optimization import local
from tff_ssl.settings import learning


def mean_gradient(
  objective: separable.Separable,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
  num_clients: tf.Tensor,
) -> tuple[base.Params, base.Metrics]:
  """Returns the means over clients of their gradients and of their metrics.

  All examples go through the networks together, the loss of each client's encodings is
  computed, and one gradient is taken of the mean of the losses.

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
  with tf.GradientTape() as tape:
    tape.watch(params)
    encodings = objective.encode(params, examples, seed)
  gradients, metrics = _of_losses(
    objective.with_seed(seed).loss_of_encodings, encodings, examples, num_clients
  )
  share = 1 / num_clients
  upstream = tf.nest.map_structure(lambda g: g * tf.cast(share, g.dtype), gradients)
  gradient = tape.gradient(
    encodings,
    params,
    output_gradients=upstream,
    unconnected_gradients=tf.UnconnectedGradients.ZERO,
  )
  return gradient, tf.nest.map_structure(lambda m: tf.reduce_mean(m, 0), metrics)


def each_gradient(
  encode: Callable[[base.Params], base.Encodings],
  loss: Callable[[base.Encodings, base.Examples], tuple[tf.Tensor, base.Metrics]],
  params: base.Params,
  examples: base.Examples,
  num_clients: tf.Tensor,
) -> tuple[base.Params, base.Metrics]:
  """Returns the gradient of each client's loss, and each client's metrics.

  Args:
    encode: Parameters -> the encodings of `examples`, through networks that have
      parameters for each client (see `gives_each`).
    loss: (encodings, examples) of a client -> its loss and metrics.
    params: Where all clients start.
    examples: Those of K clients with n >= 1 examples each, client after client.
    num_clients: K, int32 scalar.

  Returns:
    The gradients [K, ...] and the metrics with `loss`, [K, ...].
  """
  size = base.example_count(examples) // num_clients
  shared = collections.OrderedDict(
    (name, per_client_gradients.parameter(value, num_clients, size))
    for name, value in params.items()
  )
  slots = collections.OrderedDict((name, p.slots) for name, p in shared.items())
  with tf.GradientTape() as tape:
    tape.watch(slots)
    encodings = encode(shared)
  by_encodings, metrics = _of_losses(loss, encodings, examples, num_clients)
  gradients = tape.gradient(
    encodings,
    slots,
    output_gradients=by_encodings,
    unconnected_gradients=tf.UnconnectedGradients.ZERO,
  )
  return gradients, metrics


def gives_each(objective: Any) -> bool:
  """Returns whether `each_gradient` can take an objective's networks.

  Its parameters must belong to networks that treat each example by itself.

  Args:
    objective: What is minimised.
  """
  return bool(objective.networks) and not batch_norm_statistics.mixes_examples(
    objective
  )


def grouped(values: Any, num_clients: tf.Tensor) -> Any:
  """Reshapes each tensor of a structure from [K n, ...] to [K, n, ...]."""

  def group(value):
    sizes = [num_clients, tf.shape(value)[0] // num_clients]
    return tf.reshape(value, tf.concat([sizes, tf.shape(value)[1:]], 0))

  return tf.nest.map_structure(group, values)


def _of_losses(loss, encodings, examples, num_clients):
  """Returns each client's gradient by its encodings, and its metrics with `loss`."""

  @tf.autograph.experimental.do_not_convert
  def of_one_client(client):
    own, own_examples = client
    with tf.GradientTape() as client_tape:
      client_tape.watch(own)
      value, reported = loss(own, own_examples)
    metrics: base.Metrics = collections.OrderedDict(loss=value)
    metrics.update(reported)
    # An encoding may be there for the metrics alone.
    zero = tf.UnconnectedGradients.ZERO
    return client_tape.gradient(value, own, unconnected_gradients=zero), metrics

  gradients, metrics = tf.vectorized_map(
    of_one_client,
    grouped((encodings, examples), num_clients),
    fallback_to_while_loop=False,
  )
  # As the encodings are: one row after another.
  gradients = tf.nest.map_structure(
    lambda g, e: tf.reshape(g, tf.shape(e)), gradients, encodings
  )
  return gradients, metrics


def only_step(
  objective: base.Objective, clients: learning.AnyClients
) -> client_functions.EqualClients | None:
  """Builds the mean of the payloads of clients of equal size that take one step.

  Args:
    objective: What is minimised.
    clients: How a client trains.

  Returns:
    A function of `params`, `seed` and `rate` that gives the means `update` and
    `metrics`. None if clients take more steps, the objective is not
    `separable.Separable`, keeps a state, follows a schedule or has networks that mix
    examples, or the mean of the steps is not the step of the mean gradient.
  """
  if not local.first_step_is_affine(clients):
    return None
  separable = _taken_side_by_side(objective, clients)
  if separable is None:
    return None

  def mean_fn(shared, examples, num_clients):
    params = shared['params']
    gradient, metrics = mean_gradient(
      separable, params, examples, shared['seed'], num_clients
    )
    # The proximal term is 0 at the start.
    stepped, _ = local.update(
      clients, params, local.init(clients, params), gradient, shared['rate']
    )
    update = tf.nest.map_structure(tf.subtract, params, stepped)
    return collections.OrderedDict(update=update, metrics=metrics)

  return mean_fn


def each_only_step(
  objective: base.Objective, clients: learning.AnyClients
) -> client_functions.EqualClients | None:
  """Builds the payloads of clients of equal size that take one step, each by itself.

  Args:
    objective: What is minimised.
    clients: How a client trains.

  Returns:
    As for `only_step`, but with each client's own values, [K, ...]; None if clients
    must be computed one by one.
  """
  separable = _taken_side_by_side(objective, clients)
  if separable is None or not gives_each(separable):
    return None

  def per_client_fn(shared, examples, num_clients):
    params = shared['params']
    gradients, metrics = each_gradient(
      lambda own: separable.encode(own, examples, shared['seed']),
      separable.with_seed(shared['seed']).loss_of_encodings,
      params,
      examples,
      num_clients,
    )

    @tf.autograph.experimental.do_not_convert
    def update(gradient):
      stepped, _ = local.update(
        clients, params, local.init(clients, params), gradient, shared['rate']
      )
      return tf.nest.map_structure(tf.subtract, params, stepped)

    updates = tf.vectorized_map(update, gradients, fallback_to_while_loop=False)
    return collections.OrderedDict(update=updates, metrics=metrics)

  return per_client_fn


def _taken_side_by_side(
  objective: base.Objective, clients: learning.AnyClients
) -> separable.Separable | None:
  """Returns the objective if clients' only steps can be taken together, or None."""
  if not clients.is_one_step:
    return None
  if not isinstance(objective, separable.Separable):
    return None
  if objective.keeps_state or objective.is_scheduled:
    return None
  if batch_norm_statistics.mixes_examples(objective):
    return None
  return objective
