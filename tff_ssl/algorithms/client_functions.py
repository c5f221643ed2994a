"""What one client computes, said once for clients apart and for clients in packs.

A `ClientFunction` is of clients that forget, a `StatefulFunction` of clients that keep
a state of their own from one participation to the next (see `client_states`).
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import tensorflow as tf

from tff_ssl.objectives import base

# Values from the server, by name: parameters, the round's seed, ...
Shared = Mapping[str, Any]


# Floating structures by name.
Means = collections.OrderedDict[str, Any]
# (shared, examples, number of clients) -> means.
Alike = Callable[[Shared, base.Examples, tf.Tensor], Means]


def by_examples(sizes: tf.Tensor) -> tf.Tensor:
  """Weighs each client by its examples."""
  return tf.cast(sizes, tf.float32)


def uniformly(sizes: tf.Tensor) -> tf.Tensor:
  """Weighs all clients with examples alike."""
  return tf.cast(sizes > 0, tf.float32)


class ClientResult(NamedTuple):
  """What leaves a client, before it is aggregated.

  Attributes:
    means: Floating structures by name ('update', 'statistics', 'metrics'), of which the
      server wants the mean over clients weighted by `weight`.
    weight: float32 scalar, as a rule n_k, the client's examples; 0 where it has nothing
      usable, and all of `means` is then 0.
    counts: int32 scalars that the server sums; None: none are sent.
  """

  means: Means
  weight: tf.Tensor
  counts: base.Metrics | None = None


@dataclasses.dataclass(frozen=True)
class ClientFunction:
  """A pure function of one client, with what is known of its mean over clients.

  Attributes:
    each: (shared, examples) -> `ClientResult`, of one client with n >= 0 examples.
    additive: Whether the weighted mean of `each` over clients is `each` of the union of
      their examples, as with means over examples.
    alike: (shared, examples, num_clients) -> the weighted mean over `num_clients`
      clients of equal size n >= 1, whose examples follow one another; None: it is not
      known how to compute it but one by one. It need not look for what is not finite.
    weigh: int32 sizes of clients -> float32 weights of those that are usable. What is
      additive is weighted by size.
  """

  each: Callable[[Shared, base.Examples], ClientResult]
  additive: bool = False
  alike: Alike | None = None
  weigh: Callable[[tf.Tensor], tf.Tensor] = by_examples


class ClientState(NamedTuple):
  """What a client keeps; it never leaves the device.

  Attributes:
    client: int32 scalar, the client's index. Whoever runs the rounds gives it, and
      tells by it whose state is whose: values may come back in another order.
    last_round: int32 scalar, the round of the last participation that counted, from 0;
      `client_states.NEVER` before the first.
    kept: A structure of tensors of fixed shapes: the algorithm's own.
  """

  client: Any
  last_round: Any
  kept: Any


@dataclasses.dataclass(frozen=True)
class StatefulFunction:
  """A pure function of one client and of what it keeps.

  A client that has no examples, or gives anything not finite, sends zeros with weight 0
  and keeps what it had: neither function need look for it.

  Attributes:
    first: shared -> what a client begins with that takes part for the first time. It
      says too of which structure and types that is.
    each: (shared, state, examples) -> the means that it sends (see `ClientResult`), and
      what it keeps in the place of `state.kept`; of one client with n >= 0 examples.
    weigh: int32 sizes of clients -> float32 weights of those that are usable.
  """

  first: Callable[[Shared], Any]
  each: Callable[[Shared, ClientState, base.Examples], tuple[Means, Any]]
  weigh: Callable[[tf.Tensor], tf.Tensor] = by_examples


def as_sent(result: ClientResult) -> collections.OrderedDict[str, Any]:
  """Returns a client's result as the structure that leaves the client."""
  sent = collections.OrderedDict(result.means)
  sent['weight'] = result.weight
  if result.counts is not None:
    sent['counts'] = result.counts
  return sent
