"""What a pack of simulated clients holds, and how clients are dealt into packs.

A pack is a data set of one element: the examples of all of its clients as one tensor,
and the clients' sizes, in increasing order. `packing` computes on them.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.federated import clients
from tff_ssl.objectives import selection

EXAMPLES = 'examples'
SIZES = 'sizes'
# A data set is serialised with its tensors. Each may have 2 GB, and one that TFF sends
# 100 MB.
MAX_BYTES = 64 * 2**20


@dataclasses.dataclass(frozen=True)
class PackSpec:
  """Says that client data come in packs.

  It is given to an algorithm in place of `element_spec`.

  Attributes:
    element_spec: `tf.TensorSpec`s of one example.
    singles: Number of clients that have one example, if known.
  """

  element_spec: Any
  singles: int = dataclasses.field(default=0, compare=False)

  def __post_init__(self):
    clients.check_element(self.element_spec)

  @property
  def pack_spec(self) -> collections.OrderedDict[str, Any]:
    """`tf.TensorSpec`s of the only element of a pack's data set."""
    return collections.OrderedDict(
      [
        (
          EXAMPLES,
          tf.nest.map_structure(
            lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype),
            self.element_spec,
          ),
        ),
        (SIZES, tf.TensorSpec([None], tf.int32)),
      ]
    )


def deal(
  sizes: Sequence[int],
  num_packs: int,
  bytes_per_example: int,
  bytes_per_client: int = 0,
) -> list[list[int]]:
  """Deals clients into packs of nearly equal work.

  Args:
    sizes: Examples of each client, at least one client.
    num_packs: How many packs to make, as many as run at the same time; at least 1.
      There are fewer if there are fewer clients, and more if packs would be too large
      to send.
    bytes_per_example: Size of an example.
    bytes_per_client: Size of a client's state, which comes with its examples.

  Returns:
    The positions of each pack's clients, small clients first.

  Raises:
    ValueError: If there is no client, or `num_packs` is below 1.
  """
  if not len(sizes):
    raise ValueError('The cohort is empty; it must hold at least one client.')
  checks.at_least(1, num_packs=num_packs)
  weights = [bytes_per_client + int(size) * bytes_per_example for size in sizes]
  parts = math.ceil(sum(weights) / (MAX_BYTES * num_packs))
  count = min(num_packs * max(1, parts), len(sizes))
  packs: list[list[int]] = [[] for _ in range(count)]
  loads, held = [0] * count, [0] * count
  # The largest client first, each to the lightest pack that has room. Positions break
  # ties, so that packs are a function of the cohort alone.
  order = np.argsort(np.asarray(sizes), kind='stable')
  for position in order[::-1].tolist():
    rooms = [
      k
      for k, pack in enumerate(packs)
      if not pack or held[k] + weights[position] <= MAX_BYTES
    ]
    if not rooms:
      rooms = [len(packs)]
      packs.append([])
      loads.append(0)
      held.append(0)
    lightest = min(rooms, key=loads.__getitem__)
    packs[lightest].append(position)
    # An empty client costs something too.
    loads[lightest] += max(1, int(sizes[position]))
    held[lightest] += weights[position]
  return [pack[::-1] for pack in packs]


def content(
  examples: Mapping[str, np.ndarray], sizes: Sequence[int]
) -> collections.OrderedDict[str, Any]:
  """Returns the only element of a pack's data set, see `PackSpec.pack_spec`.

  Args:
    examples: Fields of all clients' examples, client after client: [sum of sizes, ...].
    sizes: Examples of each client, in increasing order.
  """
  return collections.OrderedDict(
    [
      (EXAMPLES, collections.OrderedDict(examples)),
      (SIZES, np.asarray(sizes, np.int32)),
    ]
  )


def select_examples(
  objective: Any, pack: Mapping[str, Any], by_size: bool
) -> Mapping[str, Any]:
  """Returns a pack without the examples that an objective's loss leaves out.

  Args:
    objective: What clients minimise; None: all examples enter.
    pack: The only element of a pack's data set, see `PackSpec.pack_spec`.
    by_size: Whether the clients are put in increasing order of the sizes that are left.
  """
  mask_fn = selection.mask_of(objective)
  if mask_fn is None:
    return pack
  mask = mask_fn(pack[EXAMPLES])

  def selected():
    count = tf.size(pack[SIZES])
    rows = tf.where(mask)[:, 0]
    owners = tf.gather(tf.repeat(tf.range(count), pack[SIZES]), rows)
    sizes = tf.math.unsorted_segment_sum(tf.ones_like(owners), owners, count)
    if by_size:
      order = tf.argsort(sizes, stable=True)
      places = tf.gather(tf.argsort(order), owners)
      rows = tf.gather(rows, tf.argsort(places, stable=True))
      sizes = tf.gather(sizes, order)
    examples = tf.nest.map_structure(lambda x: tf.gather(x, rows), pack[EXAMPLES])
    return collections.OrderedDict([(EXAMPLES, examples), (SIZES, sizes)])

  # Usually all examples enter, and nothing has to be copied.
  return tf.cond(tf.reduce_all(mask), lambda: collections.OrderedDict(pack), selected)


def stack(states: Sequence[Any]) -> Any:
  """Returns the states of a pack's clients as one structure of arrays [K, ...].

  Args:
    states: States of each client, in the pack's order, K >= 1; structures of arrays.
  """
  return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *states)


def unstack(states: Any) -> list[Any]:
  """Returns the state of each client of a pack: the inverse of `stack`.

  Args:
    states: A structure of arrays [K, ...], at least one.
  """
  count = len(tf.nest.flatten(states)[0])
  return [tf.nest.map_structure(lambda x, k=k: x[k], states) for k in range(count)]
