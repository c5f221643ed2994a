"""The one loop of local training: epochs of mini-batches on a client's examples.

The examples are one tensor and the loop a `tf.while_loop` over slices of it; nothing
iterates a data set (see `clients`).
"""

import collections
import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.objectives import base


@dataclasses.dataclass(frozen=True)
class LocalTraining:
  """How long a client trains.

  Attributes:
    epochs: E, passes over the client's examples.
    batch_size: B, examples per step; None: all of them in one step. The last batch of
      an epoch may be smaller.
  """

  epochs: int = 1
  batch_size: int | None = None

  def __post_init__(self):
    if self.epochs < 1:
      raise ValueError(f'epochs is {self.epochs}; it must be at least 1.')
    if self.batch_size is not None and self.batch_size < 1:
      raise ValueError(f'batch_size is {self.batch_size}; it must be at least 1.')


def train(
  objective: base.Objective,
  optimizer: tff.learning.optimizers.Optimizer,
  plan: LocalTraining,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
) -> tuple[base.Params, base.Metrics]:
  """Trains on a client's examples.

  Every epoch visits all examples once, in an order drawn from the round's seed, the
  epoch and the client's first example id, with views drawn anew for each epoch.

  Args:
    objective: What is minimised.
    optimizer: A fresh state of it is used.
    plan: Epochs and batch size.
    params: Initial parameters.
    examples: n >= 0 examples.
    seed: int32 [2], the round's.

  Returns:
    The trained parameters, and the objective's metrics with `loss`, averaged over all
    examples visited (0 where n = 0). Without examples the parameters are as given.
  """
  num_examples = base.example_count(examples)
  state = optimizer.initialize(
    tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), params)
  )
  if is_one_step(plan):
    # The common case of tiny clients, without the cost of a loop.
    _, new_params, metrics = _step(objective, optimizer, params, state, examples, seed)
    return _keep_empty(num_examples, params, new_params), metrics

  batch_size = num_examples if plan.batch_size is None else plan.batch_size
  batch_size = tf.maximum(batch_size, 1)
  batches = (num_examples + batch_size - 1) // batch_size

  def body(i, params, state, totals):
    epoch, batch = i // batches, i % batches
    epoch_seed = tf.random.experimental.stateless_fold_in(seed, epoch)
    order = _order(examples, epoch_seed, plan)
    chosen = order[batch * batch_size : (batch + 1) * batch_size]
    taken = tf.nest.map_structure(lambda x: tf.gather(x, chosen), examples)
    state, params, metrics = _step(
      objective, optimizer, params, state, taken, epoch_seed
    )
    weight = tf.cast(tf.shape(chosen)[0], tf.float32)
    totals = tf.nest.map_structure(
      lambda t, m: t + m * tf.cast(weight, m.dtype), totals, metrics
    )
    return i + 1, params, state, totals

  steps = plan.epochs * batches
  _, params, _, totals = tf.while_loop(
    lambda i, *_: i < steps,
    body,
    (tf.constant(0), params, state, _zero_metrics(objective, params, examples, seed)),
    # One step needs the one before it; no gradient is taken through the loop.
    parallel_iterations=1,
  )
  visited = tf.cast(plan.epochs * num_examples, tf.float32)
  return params, tf.nest.map_structure(
    lambda t: tf.math.divide_no_nan(t, tf.cast(visited, t.dtype)), totals
  )


def is_one_step(plan: LocalTraining) -> bool:
  """Returns whether training is one step on all of the examples."""
  return plan.epochs == 1 and plan.batch_size is None


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

  def of_one_client(client):
    own, own_examples = client
    with tf.GradientTape() as client_tape:
      client_tape.watch(own)
      loss, reported = objective.loss_of_encodings(own, own_examples)
    metrics: base.Metrics = collections.OrderedDict(loss=loss)
    metrics.update(reported)
    return client_tape.gradient(loss, own), metrics

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


def _step(objective, optimizer, params, state, examples, seed):
  """Takes one step; returns the optimizer's state, parameters and metrics."""
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, reported = objective.loss(params, examples, seed)
  gradient = tape.gradient(
    loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
  )
  state, params = optimizer.next(state, params, gradient)
  metrics: base.Metrics = collections.OrderedDict(loss=loss)
  metrics.update(reported)
  return state, params, metrics


def _order(examples, epoch_seed, plan):
  """Returns the order of an epoch, int32 [n]; in place where all make one batch."""
  positions = tf.range(base.example_count(examples))
  if plan.batch_size is None:
    return positions
  # A sum of at most one: the id of the first example, if there is one.
  first_id = tf.reduce_sum(examples['example_id'][:1])
  client_seed = tf.random.experimental.stateless_fold_in(epoch_seed, first_id)
  return tf.random.experimental.stateless_shuffle(positions, client_seed)


def _keep_empty(num_examples, params, new_params):
  """Returns `params` for a client without examples, else `new_params`."""
  return tf.nest.map_structure(
    lambda old, new: tf.where(num_examples > 0, new, old), params, new_params
  )


def _zero_metrics(objective, params, examples, seed):
  """Returns zeros in the shapes of a step's metrics, computed on no example."""
  none = tf.nest.map_structure(lambda x: x[:0], examples)
  loss, reported = objective.loss(params, none, seed)
  metrics = collections.OrderedDict(loss=loss)
  metrics.update(reported)
  return tf.nest.map_structure(tf.zeros_like, metrics)
