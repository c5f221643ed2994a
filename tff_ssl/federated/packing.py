"""Packs: one TFF value that holds many simulated clients.

A value for each client costs TFF 2 to 10 ms of CPU time a round, and a client of four
images leaves the vector units idle. In a pack the examples of many clients are one
tensor and the client function runs over them inside one computation, so that a round
costs about what a centralized step does. The numbers are those of separate clients, up
to the order of floating-point sums:

  - Clients whose mean is known to be that of their union (`ClientFunction.additive`),
    or that can be computed side by side (`mean_fn`), go through the networks
    together, in chunks of `ClientFunction.chunk_size` examples: a chunk's feature maps
    stay in memory until its gradient is taken. No client's result depends on another's
    examples.
  - If the aggregation clips each client, clients whose values can be kept apart
    (`per_client_fn`) go through the networks together, as many as memory allows.
  - All others are computed one after another.
  - So are the clients of a chunk whose mean is not finite: the client whose values are
    not finite must be discarded, and the others must not.
  - So are stateful clients. The states of a pack are stacked, before and after, in the
    order of its clients.

A pack's mean is aggregated, with the sum of its weights. Aggregators that act on each
client must have their part done inside the pack (`aggregations.Packs`); those that
cannot be split refuse packs.
"""

import collections
from collections.abc import Callable, Mapping
import functools
import math
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import secure_values
from tff_ssl.federated import client_computations
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.federated import client_sums
from tff_ssl.federated import clients
from tff_ssl.federated import packs
from tff_ssl.objectives import base
from tff_ssl.objectives import selection

# The most numbers that the clients of a chunk send if they are kept apart: 8 MiB.
_FLOATS_APART = 2**21
# (shared, state, examples) -> what leaves one client, its state after.
RunClient = Callable[
  [client_functions.Shared, Any, base.Examples],
  tuple[client_functions.ClientResult, Any],
]


class PackedClients:
  """One value, many clients: see `steps.Cohort`."""

  def __init__(
    self,
    spec: packs.PackSpec,
    aggregation: aggregations.Aggregation,
    objective: Any = None,
    keeps_order: bool = False,
  ):
    """Builds what reads a pack; see `steps.build_cohort`."""
    if aggregation.packs is None:
      raise ValueError(
        'The aggregation has no `packs`, because it acts on each client, but the '
        'element_spec is a PackSpec; it must be that of separate clients, as '
        '`simulated_clients.Clients(data, aggregation)` has it.'
      )
    self._packs = aggregation.packs
    self.aggregation = aggregation.packs.aggregation
    self.data_type = tff.SequenceType(tff.types.tensorflow_to_type(spec.pack_spec))

    # Clients that keep their order, without some examples, are not ordered by size.
    self._by_size = not keeps_order or selection.mask_of(objective) is None

    @tff.tensorflow.computation(self.data_type)
    def read(dataset):
      pack = collections.OrderedDict(dataset.take(1).get_single_element())
      pack[packs.EXAMPLES] = clients.in_range(pack[packs.EXAMPLES], objective)
      return packs.select_examples(objective, pack, self._by_size)

    self.read = read

  def map(self, function, exchange_spec, shared_type, state_type=None):
    """See `steps.Cohort`; the states of a pack are stacked."""
    run = self._over_clients(function, exchange_spec, shared_type, state_type)
    states_type = state_type and client_states.stacked_type(state_type)
    pack_type = self.read.type_signature.result
    return client_computations.as_computation(run, shared_type, states_type, pack_type)

  def _over_clients(
    self,
    function: client_functions.ClientFunction | client_functions.StatefulFunction,
    exchange_spec: client_functions.ExchangeSpec,
    shared_type: tff.Type,
    state_type: Any,
  ) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Returns (shared, states, pack) -> what a pack sends, and its states after.

    Args:
      function: Function of one client.
      exchange_spec: How the values that it returns are combined.
      shared_type: Type of its first argument.
      state_type: Type of one client's state; None if there is none.
    """
    examples_type = self.read.type_signature.result[packs.EXAMPLES]
    types = [shared_type, *([state_type] if state_type else []), examples_type]
    function = client_computations.traced_once(function, *types)
    run_client = functools.partial(client_functions.run_client, function, exchange_spec)
    sent = client_computations.sent_specs(function, exchange_spec)
    clip_norms = {
      name: norm
      for name in exchange_spec.kinds
      if (norm := exchange_spec.clip_norm(name, self._packs.clip_norms)) is not None
    }
    # Clipping needs each client's own value.
    vectorized = (
      vectorizable(function, exchange_spec, bool(clip_norms)) if self._by_size else None
    )

    most = self._packs.most_examples

    def run(shared, states, pack):
      if most is not None:
        pack = secure_values.bounded(pack, function.weigh(pack[packs.SIZES]), most)
      zero = client_sums.of_none(exchange_spec, sent)
      own = (run_client, exchange_spec, vectorized, clip_norms)
      total, states = ClientLoop(*own, shared, states, pack, zero).total()
      means = tf.nest.map_structure(
        lambda x: tf.math.divide_no_nan(x, tf.cast(total.weight, x.dtype)), total.means
      )
      result = client_functions.ClientResult(means, total.weight, total.totals)
      return client_functions.as_sent(result), states

    return run


def vectorizable(
  function: client_functions.ClientFunction | client_functions.StatefulFunction,
  exchange_spec: client_functions.ExchangeSpec,
  clipped: bool = False,
) -> client_functions.ClientFunction | None:
  """Returns the function if many clients can be computed at once, or None.

  Their clients keep nothing and send means alone: sums and integers are each client's
  own.

  Args:
    function: Function of one client.
    exchange_spec: How the values that it returns are combined.
    clipped: Whether each client's own values are needed, and not only their mean.
  """
  if not isinstance(function, client_functions.ClientFunction) or any(
    exchange_spec.sums(name) or exchange_spec.totals(name)
    for name in exchange_spec.kinds
  ):
    return None
  if clipped:
    return function if function.per_client_fn else None
  return function if function.additive or function.mean_fn else None


class ClientLoop:
  """The loop of a client function over the clients of one pack."""

  def __init__(
    self,
    run_client: RunClient,
    exchange_spec: client_functions.ExchangeSpec,
    vectorized: client_functions.ClientFunction | None,
    clip_norms: Mapping[str, float],
    shared: client_functions.Shared,
    states: Any,
    pack: Mapping[str, Any],
    zero: client_sums.Sums,
  ):
    """Takes what the loop needs; `total` runs it.

    Args:
      run_client: Computes one client.
      exchange_spec: How the values that clients return are combined.
      vectorized: Computes many clients at once, if this is possible and wanted.
      clip_norms: Norm of weight times each client's value, by name.
      shared: Values from the server.
      states: States of the clients, stacked; the empty tuple if they keep nothing.
      pack: The clients' examples and sizes (see `packs`).
      zero: Sums over no client.
    """
    self._run_client = run_client
    self._exchange_spec = exchange_spec
    self._vectorized = vectorized
    self._clip_norms = clip_norms
    self._shared = shared
    self._states = states
    self._examples = pack[packs.EXAMPLES]
    self._sizes = pack[packs.SIZES]
    self._ends = tf.cumsum(self._sizes)
    self._zero = zero
    floats = sum(math.prod(x.shape) for x in tf.nest.flatten(zero.means))
    self._most_apart = _FLOATS_APART // max(floats, 1)

  def total(self) -> tuple[client_sums.Sums, Any]:
    """Returns the sums over all clients, and the clients' states, stacked."""
    count = tf.size(self._sizes)
    arrays = tf.nest.map_structure(
      lambda x: tf.TensorArray(x.dtype, count, element_shape=x.shape[1:]), self._states
    )
    step = self._one
    if self._vectorized is not None and not self._clip_norms:
      step = functools.partial(self._chunk, self._vectorized)
    elif self._vectorized is not None and self._most_apart > 1:
      step = functools.partial(self._chunk_apart, self._vectorized)
    total, arrays = self._loop(tf.constant(0), count, step, arrays)
    return total, tf.nest.map_structure(lambda array: array.stack(), arrays)

  def _loop(self, first, end, step, arrays) -> tuple[client_sums.Sums, Any]:
    """Sums over clients `first` to `end`; `step` takes some of them at a time."""

    def body(first, total, arrays):
      after, part, arrays = step(first, end, arrays)
      return after, tf.nest.map_structure(tf.add, total, part), arrays

    _, total, arrays = tf.while_loop(
      lambda first, *_: first < end,
      body,
      (first, self._zero, arrays),
      # One step after another: in parallel they would need the memory of all.
      parallel_iterations=1,
    )
    return total, arrays

  def _one(self, first, end, arrays) -> tuple[tf.Tensor, client_sums.Sums, Any]:
    """Takes one client by itself, and writes its state to the arrays."""
    del end
    state = tf.nest.map_structure(lambda x: x[first], self._states)
    result, state = self._run_client(self._shared, state, self._take(first, first + 1))
    arrays = tf.nest.map_structure(
      lambda array, x: array.write(first, x), arrays, state
    )
    total = client_sums.of_client(result)
    means = collections.OrderedDict(
      (name, self._clipped(name, value)) for name, value in total.means.items()
    )
    return first + 1, total._replace(means=means), arrays

  def _clipped(self, name, value):
    """Clips one client's weighted value, if its kind has a clip norm."""
    if name not in self._clip_norms:
      return value
    return clients.clip(value, self._clip_norms[name])

  def _chunk_apart(
    self, vectorized, first, end, arrays
  ) -> tuple[tf.Tensor, client_sums.Sums, Any]:
    """Takes clients of equal size that go through the networks together, each clipped.

    They keep nothing: there are no arrays.
    """
    most = tf.minimum(first + self._most_apart, end)
    after = tf.minimum(self._chunk_end(vectorized, first, True), most)
    part = tf.cond(
      # A single client, and clients without examples, are computed as usual.
      (self._sizes[first] > 0) & (after - first > 1),
      lambda: self._sum_of_clipped(vectorized, first, after),
      lambda: self._loop(first, after, self._one, arrays)[0],
    )
    return after, part, arrays

  def _sum_of_clipped(self, vectorized, first, after) -> client_sums.Sums:
    """Returns the sums over clients of equal size, with each one clipped."""
    sent = vectorized.per_client_fn(
      self._shared, self._take(first, after), after - first
    )
    sizes = self._sizes[first:after]
    squares = {name: clients.squares_of_rows(value) for name, value in sent.items()}
    weights = vectorized.weigh(sizes)
    finite = clients.is_below_overflow(tf.add_n([*squares.values()]), weights)
    weights = tf.where(finite, weights, 0.0)
    means = collections.OrderedDict(
      (
        name,
        clients.sum_of_rows(value, weights, self._clip_norms.get(name), squares[name]),
      )
      for name, value in sent.items()
    )
    counted = clients.counts(sizes, tf.constant(True))
    lengths = self._exchange_spec.lengths(
      sent, lambda rows: tf.where(finite, clients.squares_of_rows(rows), 0.0)
    )
    if self._exchange_spec.hides_discarded:
      weights = vectorized.weigh(sizes)
    else:
      discarded = tf.reduce_sum(tf.cast(~finite, tf.int32))
      counted['examples'] -= discarded * sizes[0]
      counted['nonfinite_clients'] += discarded
    totals = self._totals(counted, lengths)
    return client_sums.Sums(means, tf.reduce_sum(weights), totals)

  def _totals(self, counted, lengths) -> client_functions.Sent:
    """Returns the totals of clients that are computed together: they send no others."""
    known = {'counts': counted, **lengths}
    return collections.OrderedDict((name, known[name]) for name in self._zero.totals)

  def _chunk(
    self, vectorized, first, end, arrays
  ) -> tuple[tf.Tensor, client_sums.Sums, Any]:
    """Takes clients from `first` on that go through the networks together.

    They keep nothing: there are no arrays.
    """
    after = tf.minimum(self._chunk_end(vectorized, first, not vectorized.additive), end)
    sizes = self._sizes[first:after]
    weight = tf.reduce_sum(vectorized.weigh(sizes))
    means = self._mean(vectorized, self._take(first, after), after - first)
    totals = self._totals(
      clients.counts(sizes, tf.constant(True)), self._exchange_spec.lengths(means)
    )
    total = client_sums.of_client(client_functions.ClientResult(means, weight, totals))
    part = tf.cond(
      clients.is_usable(means, weight),
      lambda: total,
      lambda: self._loop(first, after, self._one, arrays)[0],
    )
    return after, part, arrays

  def _chunk_end(self, vectorized, first, of_equal_size):
    """Returns the client after the last that goes together with `first`."""
    begin = self._ends[first] - self._sizes[first]
    after = tf.searchsorted(self._ends, [begin + vectorized.chunk_size], side='right')[
      0
    ]
    if of_equal_size:
      equal = tf.searchsorted(self._sizes, [self._sizes[first]], side='right')[0]
      after = tf.minimum(after, equal)
    return tf.maximum(after, first + 1)

  def _mean(self, vectorized, examples, num_clients):
    """Returns the mean over the clients of a chunk."""
    if vectorized.additive:
      return vectorized.client_fn(self._shared, examples)
    mean_fn = vectorized.mean_fn
    return tf.cond(
      base.example_count(examples) > 0,
      lambda: mean_fn(self._shared, examples, num_clients),
      lambda: self._zero.means,
    )

  def _take(self, first, after):
    """Returns the examples of clients `first` to `after`, at least one client."""
    begin, end = self._ends[first] - self._sizes[first], self._ends[after - 1]
    return tf.nest.map_structure(lambda x: x[begin:end], self._examples)
