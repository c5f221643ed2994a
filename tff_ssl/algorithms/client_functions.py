"""What one client computes, said once for clients apart and for clients in packs."""

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


def as_sent(result: ClientResult) -> collections.OrderedDict[str, Any]:
  """Returns a client's result as the structure that leaves the client."""
  sent = collections.OrderedDict(result.means)
  sent['weight'] = result.weight
  if result.counts is not None:
    sent['counts'] = result.counts
  return sent
