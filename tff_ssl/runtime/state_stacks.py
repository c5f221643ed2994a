"""The states of a round's clients, stacked for packs in memory that is used again."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf


class StateStacks:
  """Arrays of the states of packs, each the size of the largest pack so far.

  New ones for each round would cost as much as all else that is done to fill them: the
  kernel clears the pages of memory that it gives.
  """

  def __init__(self, blank: Any):
    """Allocates nothing yet.

    Args:
      blank: A nest of arrays; every state has its structure, shapes and types.
    """
    self._blank = blank
    self._stacks: list[Any] = []

  def fill(self, place: int, count: int, states: Iterable[Any]) -> Any:
    """Returns states as one structure of arrays [K, ...], as `packs.stack` does.

    It is good until the same place is filled again.

    Args:
      place: Of the pack in its round, from 0.
      count: K, at least 1.
      states: K of them, taken one after another: one is held at a time.
    """
    while len(self._stacks) <= place:
      self._stacks.append(self._empty(0))
    if len(tf.nest.flatten(self._stacks[place])[0]) < count:
      self._stacks[place] = self._empty(count)
    stack = tf.nest.map_structure(lambda array: array[:count], self._stacks[place])
    arrays = tf.nest.flatten(stack)
    for k, state in enumerate(states):
      for array, leaf in zip(arrays, tf.nest.flatten(state), strict=True):
        array[k] = leaf
    return stack

  def _empty(self, count: int) -> Any:
    return tf.nest.map_structure(
      lambda leaf: np.empty([count, *np.shape(leaf)], np.asarray(leaf).dtype),
      self._blank,
    )
