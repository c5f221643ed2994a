"""What one client computes, described once for separate clients and for packs.

A `ClientFunction` is for stateless clients, a `StatefulFunction` for clients that keep
a state between their participations. Both return what the client sends, by name.
`run_client` discards what is not finite, weights the client and counts it.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from tff_ssl.aggregators import combine
from tff_ssl.federated import client_states
from tff_ssl.federated import clients
from tff_ssl.federated import update_lengths
from tff_ssl.objectives import base

# Values from the server, by name: parameters, the round's seed, ...
Shared = Mapping[str, Any]
# Structures of tensors by name.
Sent = collections.OrderedDict[str, Any]
# (shared, examples, number of clients) -> what clients of equal size send.
EqualClients = Callable[[Shared, base.Examples, tf.Tensor], Sent]


def by_examples(sizes: tf.Tensor) -> tf.Tensor:
  """Weights each client by its examples."""
  return tf.cast(sizes, tf.float32)


def uniformly(sizes: tf.Tensor) -> tf.Tensor:
  """Weights all clients that have examples equally."""
  return tf.cast(sizes > 0, tf.float32)


WEIGHTINGS = {'examples': by_examples, 'uniform': uniformly}


@dataclasses.dataclass(frozen=True)
class ClientFunction:
  """A pure function of one client, and how its mean over clients can be computed.

  Attributes:
    client_fn: (shared, examples) -> what the client sends, of n >= 0 examples. It need
      not check that its values are finite.
    additive: Whether the weighted mean of `client_fn` over clients is `client_fn` of
      the union of their examples, as with means over examples. Such clients are
      weighted by size.
    mean_fn: (shared, examples, num_clients) -> the weighted mean over
      `num_clients` clients of equal size n >= 1, whose examples follow one another;
      None: they can only be computed one by one.
    per_client_fn: (shared, examples, num_clients) -> what each of `num_clients` clients
      of equal size n >= 1 sends, each tensor [num_clients, ...]; None: they can only be
      computed one by one.
    weigh: int32 sizes of clients -> float32 weights of those that are not discarded.
    chunk_size: Examples per forward pass when several clients are computed at once; see
      `base.batch_in_cache`. A single client's are never divided.
  """

  client_fn: Callable[[Shared, base.Examples], Sent]
  additive: bool = False
  mean_fn: EqualClients | None = None
  per_client_fn: EqualClients | None = None
  weigh: Callable[[tf.Tensor], tf.Tensor] = by_examples
  chunk_size: int = 256


@dataclasses.dataclass(frozen=True)
class StatefulFunction:
  """A pure function of one stateful client: of its examples and of its state.

  A client that has no examples, or computes anything not finite, is discarded and keeps
  the state it had.

  Attributes:
    first: shared -> what a client has at its first participation. It also fixes the
      structure and the types of what is kept.
    client_fn: (shared, state, examples) -> what the client sends, and what it keeps in
      the place of `state.kept`; of one client with n >= 0 examples.
    weigh: int32 sizes of clients -> float32 weights of those that are not discarded.
  """

  first: Callable[[Shared], Any]
  client_fn: Callable[
    [Shared, client_states.ClientState, base.Examples], tuple[Sent, Any]
  ]
  weigh: Callable[[tf.Tensor], tf.Tensor] = by_examples


class ClientResult(NamedTuple):
  """The payload of one client, before it is combined.

  Attributes:
    means: Floating structures by name. The server needs their mean over clients,
      weighted by `weight`.
    weight: float32 scalar, usually n_k, the client's examples; 0 if the client is
      discarded (unless that is hidden), and all of `means` is then 0.
    totals: Structures of integers by name that the server sums.
  """

  means: Sent
  weight: tf.Tensor
  totals: Sent


@dataclasses.dataclass(frozen=True)
class ExchangeSpec:
  """How a client function's values are combined, and whether clients are counted.

  Attributes:
    kinds: How each value is combined.
    counted: Whether clients and examples are counted in this exchange.
    hides_discarded: Whether a discarded client weighs and counts as if it were not: it
      sends zeros, but nobody is told. For noised sums, which are divided by the sum of
      weights: without noise that would tell who was discarded.
    measures: Whether the lengths of clients' updates are counted (`update_lengths`).
  """

  kinds: Mapping[str, combine.Kind]
  counted: bool
  hides_discarded: bool = False
  measures: bool = False

  def lengths(
    self, means: Sent, square: Callable[[Any], tf.Tensor] = clients.squared_norm
  ) -> Sent:
    """Returns the histogram of updates' lengths by its name, if it is measured.

    Args:
      means: What a client sends, the mean of several, or a row for each of K clients.
      square: The updates among them -> their squared norm, or norms [K].
    """
    updates = [x for n, x in means.items() if self.kinds[n].clipped_as == 'update']
    if not self.measures or not updates:
      return collections.OrderedDict()
    counted = update_lengths.histogram(tf.reshape(square(updates), [-1]))
    return collections.OrderedDict([(update_lengths.LENGTHS, counted)])

  def sums(self, name: str) -> bool:
    """Returns whether a value is summed, whatever the weights."""
    return isinstance(self.kinds[name], combine.Sum)

  def totals(self, name: str) -> bool:
    """Returns whether a value consists of integers that the server sums."""
    return isinstance(self.kinds[name], combine.Total)

  def clip_norm(self, name: str, norms: Mapping[str, float]) -> float | None:
    """Returns the norm to which a value is clipped, of `aggregations.Packs`."""
    clipped_as = self.kinds[name].clipped_as
    return norms.get(clipped_as) if clipped_as is not None else None


def run_client(
  function: ClientFunction | StatefulFunction,
  spec: ExchangeSpec,
  shared: Shared,
  state: Any,
  examples: base.Examples,
) -> tuple[ClientResult, Any]:
  """Computes one client's part of an exchange.

  Args:
    function: Function of the client.
    spec: How the values that it returns are combined.
    shared: Values from the server; a stateful function needs `round`, int32, in them.
    state: A stateful client's state; for others it is returned unchanged.
    examples: n >= 0 examples.

  Returns:
    What leaves the client, and its state after the round, which is unchanged if the
    client is discarded.
  """
  if isinstance(function, ClientFunction):
    result, _ = _result(function, spec, function.client_fn(shared, examples), examples)
    return result, state
  is_first = state.last_round < 0
  brought = clients.choose(is_first, function.first(shared), state.kept)
  sent, kept = function.client_fn(shared, state._replace(kept=brought), examples)
  result, counted = _result(function, spec, sent, examples, _floating(kept))
  return result, client_states.ClientState(
    state.client,
    tf.where(counted, shared['round'], state.last_round),
    clients.choose(counted, kept, state.kept),
  )


def _result(
  function: ClientFunction | StatefulFunction,
  spec: ExchangeSpec,
  sent: Sent,
  examples: base.Examples,
  others: Any = (),
) -> tuple[ClientResult, tf.Tensor]:
  """Weights, counts and checks a payload; also returns whether the client counts."""
  check_names(spec, sent)
  num_examples = base.example_count(examples)
  means = collections.OrderedDict(
    (name, value) for name, value in sent.items() if not spec.totals(name)
  )
  weight = function.weigh(num_examples)
  finite = clients.is_usable(means, weight) & clients.is_finite(others)
  counts = finite & (num_examples > 0)
  is_counted = tf.constant(True) if spec.hides_discarded else finite
  weight = tf.where(is_counted & (num_examples > 0), weight, 0.0)
  for name in means:
    if spec.sums(name):
      # The mean of these is weighted; the server multiplies by the sum of weights.
      share = tf.math.divide_no_nan(1.0, weight)
      means[name] = tf.nest.map_structure(
        lambda x, share=share: x * tf.cast(share, x.dtype), means[name]
      )
  means = clients.keep_if(counts, means)
  totals = collections.OrderedDict(
    (name, clients.keep_if(counts, value))
    for name, value in sent.items()
    if spec.totals(name)
  )
  totals.update(spec.lengths(means))
  if spec.counted:
    totals['counts'] = clients.counts(num_examples, is_counted)
  return ClientResult(means, weight, totals), counts


def check_names(spec: ExchangeSpec, sent: Sent) -> None:
  """Raises ValueError if a client sends other names than an exchange combines."""
  if set(spec.kinds) != set(sent):
    raise ValueError(
      f'The client sends {sorted(sent)}, and the exchange combines '
      f'{sorted(spec.kinds)}; the names must be the same.'
    )


def as_sent(result: ClientResult) -> Sent:
  """Returns a client's result as the structure that leaves the client."""
  return collections.OrderedDict(
    [*result.means.items(), ('weight', result.weight), *result.totals.items()]
  )


def _floating(kept: Any) -> list[tf.Tensor]:
  tensors = map(tf.convert_to_tensor, tf.nest.flatten(kept))
  return [tensor for tensor in tensors if tensor.dtype.is_floating]
