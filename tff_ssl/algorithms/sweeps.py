"""The sweep over the clients of one pack, inside one computation (see `packing`)."""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Any, NamedTuple

import tensorflow as tf

from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import packs
from tff_ssl.objectives import base

# Examples that go through the networks together. More is not faster, and takes memory:
# a chunk's activations stay until its gradient is taken.
_CHUNK = 256

# (shared, state, examples) -> what leaves one client, its state after.
Visit = Callable[
  [client_functions.Shared, Any, base.Examples],
  tuple[client_functions.ClientResult, Any],
]


class Sums(NamedTuple):
  """Sums over clients: of weight times means, of weights, of counts."""

  means: client_functions.Means
  weight: tf.Tensor
  counts: base.Metrics


def sums(result: client_functions.ClientResult) -> Sums:
  """Returns the sums over one client."""
  return Sums(
    tf.nest.map_structure(lambda x: x * tf.cast(result.weight, x.dtype), result.means),
    result.weight,
    collections.OrderedDict(result.counts or {}),
  )


class Sweep:
  """One computation of a function over the clients of one pack."""

  def __init__(
    self,
    visit: Visit,
    together: client_functions.ClientFunction | None,
    clip_norms: Mapping[str, float],
    shared: client_functions.Shared,
    states: Any,
    pack: Mapping[str, Any],
    zero: Sums,
  ):
    """Computes nothing yet.

    Args:
      visit: Computes one client.
      together: What computes many at once, where that is known and wanted.
      clip_norms: See `aggregation.Packs`.
      shared: Values from the server.
      states: Of the clients, stacked; the empty tuple where they keep nothing.
      pack: The clients' examples and sizes (see `packs`).
      zero: Sums over no client.
    """
    self._visit = visit
    self._together = together
    self._clip_norms = clip_norms
    self._shared = shared
    self._states = states
    self._examples = pack[packs.EXAMPLES]
    self._sizes = pack[packs.SIZES]
    self._ends = tf.cumsum(self._sizes)
    self._zero = zero

  def total(self) -> tuple[Sums, Any]:
    """Returns the sums over all clients, and the clients' states, stacked."""
    count = tf.size(self._sizes)
    arrays = tf.nest.map_structure(
      lambda x: tf.TensorArray(x.dtype, count, element_shape=x.shape[1:]), self._states
    )
    step = self._one
    if self._together is not None:
      step = functools.partial(self._chunk, self._together)
    total, arrays = self._loop(tf.constant(0), count, step, arrays)
    return total, tf.nest.map_structure(lambda array: array.stack(), arrays)

  def _loop(self, first, end, step, arrays) -> tuple[Sums, Any]:
    """Sums over clients `first` to `end` what `step` gives of some at a time."""

    def body(first, total, arrays):
      after, part, arrays = step(first, end, arrays)
      return after, tf.nest.map_structure(tf.add, total, part), arrays

    _, total, arrays = tf.while_loop(
      lambda first, *_: first < end,
      body,
      (first, self._zero, arrays),
      # One step after another: side by side they would need the memory of all.
      parallel_iterations=1,
    )
    return total, arrays

  def _one(self, first, end, arrays) -> tuple[tf.Tensor, Sums, Any]:
    """Takes one client by itself, and writes its state to the arrays."""
    del end
    state = tf.nest.map_structure(lambda x: x[first], self._states)
    result, state = self._visit(self._shared, state, self._take(first, first + 1))
    arrays = tf.nest.map_structure(
      lambda array, x: array.write(first, x), arrays, state
    )
    total = sums(result)
    means = collections.OrderedDict(
      (name, self._clipped(name, value)) for name, value in total.means.items()
    )
    return first + 1, total._replace(means=means), arrays

  def _clipped(self, name, value):
    """Returns n_k times a client's value as it may leave the client."""
    if name not in self._clip_norms:
      return value
    flat, _ = tf.clip_by_global_norm(tf.nest.flatten(value), self._clip_norms[name])
    return tf.nest.pack_sequence_as(value, flat)

  def _chunk(self, together, first, end, arrays) -> tuple[tf.Tensor, Sums, Any]:
    """Takes clients from `first` on that go through the networks together.

    They keep nothing: there are no arrays.
    """
    after = tf.minimum(self._chunk_end(together, first), end)
    sizes = self._sizes[first:after]
    means, usable = self._mean(together, self._take(first, after), after - first)
    counts = clients.counts(sizes, tf.constant(True)) if self._zero.counts else None
    weight = tf.reduce_sum(together.weigh(sizes))
    total = sums(client_functions.ClientResult(means, weight, counts))
    part = tf.cond(
      usable, lambda: total, lambda: self._loop(first, after, self._one, arrays)[0]
    )
    return after, part, arrays

  def _chunk_end(self, together, first):
    """Returns the client after the last that goes together with `first`."""
    begin = self._ends[first] - self._sizes[first]
    after = tf.searchsorted(self._ends, [begin + _CHUNK], side='right')[0]
    if not together.additive:
      alike = tf.searchsorted(self._sizes, [self._sizes[first]], side='right')[0]
      after = tf.minimum(after, alike)
    return tf.maximum(after, first + 1)

  def _mean(self, together, examples, num_clients):
    """Returns the mean over the clients of a chunk, and whether it is finite."""
    num_examples = base.example_count(examples)
    if together.additive:
      result = together.each(self._shared, examples)
      # A result that is not finite has weight 0.
      return result.means, tf.equal(result.weight, tf.cast(num_examples, tf.float32))
    alike = together.alike
    means = tf.cond(
      num_examples > 0,
      lambda: alike(self._shared, examples, num_clients),
      lambda: self._zero.means,
    )
    return means, clients.is_finite(means)

  def _take(self, first, after):
    """Returns the examples of clients `first` to `after`, at least one client."""
    begin, end = self._ends[first] - self._sizes[first], self._ends[after - 1]
    return tf.nest.map_structure(lambda x: x[begin:end], self._examples)
