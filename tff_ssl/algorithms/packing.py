"""Packs: one TFF value that holds many simulated clients.

A value for each client costs TFF 2 to 10 ms of CPU time a round, and a client of four
images leaves the vector units idle. In a pack the examples of many clients are one
tensor and the client function runs over them inside one computation, so that a round
costs about what a centralized step does. The numbers are those of separate clients, up
to the order of floating-point sums:

  - Clients whose mean is known to be that of their union (`ClientFunction.additive`),
    or that can be computed side by side (`alike`), go through the networks together, in
    chunks. No client's result depends on another's examples.
  - All others are computed one after another.
  - So are those of a chunk that gives anything not finite: who is at fault must be
    left out, and the others must not.

What is aggregated is a pack's mean with the sum of its weights. Aggregators that act on
each client must have their part done inside (`aggregation.Packs`); those that cannot be
split refuse packs.
"""

import collections
from typing import NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import packs
from tff_ssl.objectives import base

# Examples that go through the networks together. More is not faster, and takes memory:
# a chunk's activations stay until its gradient is taken.
_CHUNK = 256


class PackedClients:
  """One value, many clients: see `cohorts.Cohort`."""

  def __init__(self, spec: packs.PackSpec, aggregation: aggregation_lib.Aggregation):
    """Builds what reads a pack; see `cohorts.build_cohort`."""
    if aggregation.packs is None:
      raise ValueError(
        'The aggregation has no `packs`, for it acts on each client; it needs an '
        'element_spec of clients apart, not a PackSpec.'
      )
    self._packs = aggregation.packs
    self.aggregation = aggregation.packs.aggregation
    self.data_type = tff.SequenceType(tff.types.tensorflow_to_type(spec.pack_spec))

    @tff.tensorflow.computation(self.data_type)
    def read(dataset):
      return dataset.take(1).get_single_element()

    self.read = read

  def map(
    self, function: client_functions.ClientFunction, shared_type: tff.Type
  ) -> tff.Computation:
    """Returns the function of a pack as a computation; see `cohorts.Cohort`."""
    examples_type = self.read.type_signature.result[packs.EXAMPLES]

    # Of one client, for the types of what it sends.
    @tff.tensorflow.computation(shared_type, examples_type)
    def one(shared, examples):
      return _sums(function.each(shared, examples))

    zero_type = one.type_signature.result
    clip_norms = self._packs.clip_norms

    @tff.tensorflow.computation(shared_type, self.read.type_signature.result)
    def run(shared, pack):
      sweep = _Sweep(function, clip_norms, shared, pack, clients.zeros(zero_type))
      total = sweep.total()
      means = tf.nest.map_structure(
        lambda x: tf.math.divide_no_nan(x, tf.cast(total.weight, x.dtype)), total.means
      )
      return client_functions.as_sent(
        client_functions.ClientResult(means, total.weight, total.counts)
      )

    return run


class _Sums(NamedTuple):
  """Sums over clients: of weight times means, of weights, of counts."""

  means: client_functions.Means
  weight: tf.Tensor
  counts: base.Metrics


def _sums(result: client_functions.ClientResult) -> _Sums:
  """Returns the sums over one client."""
  return _Sums(
    tf.nest.map_structure(lambda x: x * tf.cast(result.weight, x.dtype), result.means),
    result.weight,
    collections.OrderedDict(result.counts or {}),
  )


class _Sweep:
  """One computation of a function over the clients of one pack."""

  def __init__(self, function, clip_norms, shared, pack, zero: _Sums):
    self._function = function
    self._clip_norms = clip_norms
    self._shared = shared
    self._examples = pack[packs.EXAMPLES]
    self._sizes = pack[packs.SIZES]
    self._ends = tf.cumsum(self._sizes)
    self._zero = zero

  def total(self) -> _Sums:
    """Returns the sums over all clients."""
    together = self._function.additive or self._function.alike is not None
    # Each client's own value is wanted where it is clipped.
    step = self._chunk if together and not self._clip_norms else self._one
    return self._loop(tf.constant(0), tf.size(self._sizes), step)

  def _loop(self, first, end, step) -> _Sums:
    """Sums over clients `first` to `end` what `step` gives of some at a time."""

    def body(first, total):
      after, part = step(first, end)
      return after, tf.nest.map_structure(tf.add, total, part)

    _, total = tf.while_loop(
      lambda first, _: first < end,
      body,
      (first, self._zero),
      # One step after another: side by side they would need the memory of all.
      parallel_iterations=1,
    )
    return total

  def _one(self, first, end) -> tuple[tf.Tensor, _Sums]:
    """Takes one client by itself."""
    del end
    sums = _sums(self._function.each(self._shared, self._take(first, first + 1)))
    means = collections.OrderedDict(
      (name, self._clipped(name, value)) for name, value in sums.means.items()
    )
    return first + 1, sums._replace(means=means)

  def _clipped(self, name, value):
    """Returns n_k times a client's value as it may leave the client."""
    if name not in self._clip_norms:
      return value
    flat, _ = tf.clip_by_global_norm(tf.nest.flatten(value), self._clip_norms[name])
    return tf.nest.pack_sequence_as(value, flat)

  def _chunk(self, first, end) -> tuple[tf.Tensor, _Sums]:
    """Takes clients from `first` on that go through the networks together."""
    after = tf.minimum(self._chunk_end(first), end)
    sizes = self._sizes[first:after]
    means, usable = self._together(self._take(first, after), after - first)
    counts = clients.counts(sizes, tf.constant(True)) if self._zero.counts else None
    weight = tf.reduce_sum(self._function.weigh(sizes))
    sums = _sums(client_functions.ClientResult(means, weight, counts))
    return after, tf.cond(
      usable, lambda: sums, lambda: self._loop(first, after, self._one)
    )

  def _chunk_end(self, first):
    """Returns the client after the last that goes together with `first`."""
    begin = self._ends[first] - self._sizes[first]
    after = tf.searchsorted(self._ends, [begin + _CHUNK], side='right')[0]
    if not self._function.additive:
      alike = tf.searchsorted(self._sizes, [self._sizes[first]], side='right')[0]
      after = tf.minimum(after, alike)
    return tf.maximum(after, first + 1)

  def _together(self, examples, num_clients):
    """Returns the mean over the clients of a chunk, and whether it is finite."""
    num_examples = base.example_count(examples)
    if self._function.additive:
      result = self._function.each(self._shared, examples)
      # A result that is not finite has weight 0.
      return result.means, tf.equal(result.weight, tf.cast(num_examples, tf.float32))
    assert self._function.alike is not None
    alike = self._function.alike
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
