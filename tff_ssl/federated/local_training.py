"""Local training of a client: how long and by which steps, and the loop that does it.

The examples are one tensor and the loop a `tf.while_loop` over slices of it; nothing
iterates a data set (see `clients`).

Deviation: the authors of FedEMA and of most of the methods here leave out the last
batch of an epoch whenever it is incomplete. Here it is left out by default only with
batch norm, and only if it has fewer than a quarter of `batch_size` examples. Batch norm
normalizes by what is in the batch: it makes +1 and -1 in each dimension of two
examples, however near they are (258 examples in batches of 32 leave two). BYOL's step
on such a pair was 1.3 to 33 times as far as that on a full batch (digits, ResNet-8).
Without batch norm the mean over a small batch is merely noisy, and clients are often
smaller than a batch. `drop_last_batch` also offers the authors' rule, and leaving
out nothing.
"""

import collections
from typing import NamedTuple

import tensorflow as tf

from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import collapse
from tff_ssl.optimization import local
from tff_ssl.settings import learning


class Trained(NamedTuple):
  """The result of local training.

  Attributes:
    params: The trained parameters.
    state: What stays on the client (see `base.Objective`).
    metrics: The objective's metrics with `loss`, averaged over all examples visited,
      without those of batches that are left out; 0 without examples. The moments of
      encodings (`collapse.MOMENTS`) are those of the first batch alone, with the
      initial parameters: clients that start with the same ones can be averaged. With
      `own`, the model's own spread takes the moments' place.
    optimizer: The optimizer's state after the last step.
  """

  params: base.Params
  state: base.State
  metrics: base.Metrics
  optimizer: local.State


def train(
  objective: base.Objective,
  clients: learning.AnyClients,
  params: base.Params,
  examples: base.Examples,
  seed: tf.Tensor,
  rate: float | tf.Tensor,
  state: base.State | None = None,
  optimizer: local.State | None = None,
  anchor: base.Params | None = None,
  correction: base.Params | None = None,
  own: bool = False,
) -> Trained:
  """Trains on a client's examples.

  Every epoch visits all examples once, except a last batch that is left out.
  The order is drawn from the round's seed, the epoch and the client's first example id;
  views are fresh in each epoch.

  Args:
    objective: What is minimised.
    clients: How a client trains.
    params: Initial parameters.
    examples: n >= 0 examples.
    seed: int32 [2], the round's.
    rate: Learning rate of the round.
    state: The objective's; None: its initial state for these parameters.
    optimizer: The optimizer's state; None: a fresh one, as on clients.
    anchor: w_global of the proximal term; None: the initial parameters.
    correction: Added to each gradient; None: nothing is.
    own: Whether other clients of the round start with other parameters: then each has
      a spread of its own (see `collapse.with_client_spread`).

  Returns:
    The result of training. Without examples parameters and states are as given.
  """
  if state is None:
    state = objective.init_state(params)
  if optimizer is None:
    optimizer = local.init(clients, params)
  examples = objective.prepare(examples, seed)
  least = clients.least(batch_norm_statistics.mixes_examples(objective))
  trainer = _Trainer(
    objective,
    clients,
    params,
    rate,
    optimizer,
    anchor or params,
    correction,
    least,
  )
  # The common case of tiny clients, without the cost of a loop.
  run = trainer.one_step if clients.is_one_step else trainer.loop
  trained = run(state, examples, seed)
  if not own:
    return trained
  return trained._replace(metrics=collapse.with_client_spread(trained.metrics))


def num_batches(
  objective: base.Objective,
  clients: learning.AnyClients,
  examples: base.Examples,
) -> tf.Tensor:
  """Returns the batches of an epoch, int32: those of `Clients.batch_sizes`.

  Args:
    objective: What is minimised.
    clients: With the batch size, and when the last batch is left out.
    examples: n >= 0 examples of a client.
  """
  least = clients.least(batch_norm_statistics.mixes_examples(objective))
  return _num_batches(
    base.example_count(examples), _batch_size(clients, examples), least
  )


class _Position(NamedTuple):
  """Where a trainer is between two batches."""

  params: base.Params
  state: base.State
  optimizer: local.State
  metrics: base.Metrics


class _Pending(NamedTuple):
  """Gradients accumulated for the next step: their weighted sum, and the weights'."""

  gradient: base.Params
  weight: tf.Tensor


class _Trainer:
  """One client's training from given parameters."""

  def __init__(
    self,
    objective: base.Objective,
    clients: learning.AnyClients,
    params: base.Params,
    rate: float | tf.Tensor,
    optimizer: local.State,
    anchor: base.Params,
    correction: base.Params | None,
    least: int,
  ):
    self._objective = objective
    self._clients = clients
    self._initial = params
    self._rate = rate
    self._optimizer = optimizer
    self._anchor = anchor
    self._correction = correction
    self._least = least

  def one_step(self, state, examples, seed) -> Trained:
    """Takes one step on all examples."""
    gradient, metrics, carry = self._gradient(self._initial, state, examples, seed)
    position = self._step(self._start(state, metrics), gradient, carry)
    has_examples = base.example_count(examples) > 0
    params, state, optimizer = tf.nest.map_structure(
      lambda old, new: tf.where(has_examples, new, old),
      (self._initial, state, self._optimizer),
      (position.params, position.state, position.optimizer),
    )
    return Trained(params, state, metrics, optimizer)

  def loop(self, state, examples, seed) -> Trained:
    """Takes the steps of all epochs."""
    num_examples = base.example_count(examples)
    size = _batch_size(self._clients, examples)
    batches = _num_batches(num_examples, size, self._least)
    # For a batch of any size: traced once, for its types and for the loop.
    batch_spec = tf.nest.map_structure(
      lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), examples
    )
    gradient = tf.function(self._gradient, autograph=False).get_concrete_function(
      self._initial, state, batch_spec, seed
    )
    zero = tf.nest.map_structure(
      lambda x: tf.zeros(x.shape, x.dtype), gradient.structured_outputs[1]
    )

    def body(i, position, pending):
      epoch, batch = i // batches, i % batches
      epoch_seed = tf.random.experimental.stateless_fold_in(seed, epoch)
      order = _order(examples, epoch_seed, self._clients)
      chosen = order[batch * size : (batch + 1) * size]
      taken = tf.nest.map_structure(lambda x: tf.gather(x, chosen), examples)
      last = tf.equal(batch, batches - 1)
      given = gradient(position.params, position.state, taken, epoch_seed)
      weight = tf.cast(base.example_count(taken), tf.float32)
      position = self._measured(position, given[1], weight, tf.equal(i, 0))
      return i + 1, *self._batch(position, pending, given, weight, batch, last)

    _, position, _ = tf.while_loop(
      lambda i, *_: i < self._clients.epochs * batches,
      body,
      (tf.constant(0), self._start(state, zero), self._nothing_pending()),
      # One step needs the one before it; no gradient is taken through the loop.
      parallel_iterations=1,
    )
    visited = self._clients.epochs * tf.minimum(batches * size, num_examples)
    first = tf.minimum(size, num_examples)
    metrics = collections.OrderedDict(
      (name, tf.math.divide_no_nan(total, tf.cast(count, total.dtype)))
      for name, total in position.metrics.items()
      for count in [first if _is_of_first_batch(name) else visited]
    )
    return Trained(position.params, position.state, metrics, position.optimizer)

  def _measured(self, position: _Position, metrics, weight, is_first) -> _Position:
    """Returns a position with a batch's metrics added to the totals."""
    counted = {False: weight, True: tf.where(is_first, weight, 0.0)}
    totals = collections.OrderedDict(
      (name, total + metrics[name] * tf.cast(share, total.dtype))
      for name, total in position.metrics.items()
      for share in [counted[_is_of_first_batch(name)]]
    )
    return position._replace(metrics=totals)

  def _batch(self, position: _Position, pending, given, weight, batch, is_last):
    """Takes one batch's gradient, and the step that it completes, if any."""
    gradient, _, carry = given
    if self._clients.accumulate == 1:
      return self._step(position, gradient, carry), pending
    if carry:
      raise ValueError(
        f'accumulate is {self._clients.accumulate}; it must be 1, because the '
        'objective keeps something from each batch.'
      )
    pending = _Pending(
      tf.nest.map_structure(
        lambda p, g: p + g * tf.cast(weight, g.dtype), pending.gradient, gradient
      ),
      pending.weight + weight,
    )
    is_due = tf.equal((batch + 1) % self._clients.accumulate, 0) | is_last
    return tf.cond(
      is_due,
      lambda: (
        self._step(position, _mean(pending), carry),
        self._nothing_pending(),
      ),
      lambda: (position, pending),
    )

  def _nothing_pending(self):
    if self._clients.accumulate == 1:
      return ()
    return _Pending(tf.nest.map_structure(tf.zeros_like, self._initial), tf.zeros([]))

  def _start(self, state, metrics) -> _Position:
    return _Position(self._initial, state, self._optimizer, metrics)

  def _gradient(self, params, state, examples, seed):
    """Returns the gradient of a batch, its metrics, and what the state needs of it."""
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss, reported, carry = self._objective.loss_with_state(
        params, state, examples, seed
      )
    gradient = tape.gradient(
      loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return gradient, collections.OrderedDict(loss=loss, **reported), carry

  def _step(self, position: _Position, gradient, carry) -> _Position:
    """Takes a step, with the proximal term, and updates the state."""
    if self._clients.proximal_weight:
      gradient = tf.nest.map_structure(
        lambda g, w, w0: g + tf.cast(self._clients.proximal_weight, g.dtype) * (w - w0),
        gradient,
        position.params,
        self._anchor,
      )
    if self._correction is not None:
      gradient = tf.nest.map_structure(tf.add, gradient, self._correction)
    params, optimizer = local.update(
      self._clients, position.params, position.optimizer, gradient, self._rate
    )
    params, state = self._objective.after_step(params, position.state, carry)
    return _Position(params, state, optimizer, position.metrics)


def _is_of_first_batch(metric: str) -> bool:
  """Returns whether a metric is that of the first batch alone, see `Trained`."""
  return metric.endswith(collapse.MOMENTS)


def _batch_size(clients: learning.AnyClients, examples: base.Examples) -> tf.Tensor:
  num_examples = base.example_count(examples)
  return tf.maximum(
    num_examples if clients.batch_size is None else clients.batch_size, 1
  )


def _num_batches(num_examples: tf.Tensor, size: tf.Tensor, least: int) -> tf.Tensor:
  """Returns the number of batches, the last of which has at least `least` examples."""
  batches = (num_examples + size - least) // size
  # A batch of fewer examples is left out only if another precedes it.
  return tf.maximum(batches, tf.minimum(num_examples, 1))


def _mean(pending: _Pending) -> base.Params:
  return tf.nest.map_structure(
    lambda g: tf.math.divide_no_nan(g, tf.cast(pending.weight, g.dtype)),
    pending.gradient,
  )


def _order(examples, epoch_seed, clients):
  """Returns the order of an epoch, int32 [n]; unchanged if all make one batch."""
  positions = tf.range(base.example_count(examples))
  if clients.batch_size is None:
    return positions
  # A sum of at most one: the id of the first example, if there is one.
  first_id = tf.reduce_sum(examples['example_id'][:1])
  client_seed = tf.random.experimental.stateless_fold_in(epoch_seed, first_id)
  return tf.random.experimental.stateless_shuffle(positions, client_seed)
