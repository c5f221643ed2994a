"""Losses that see their examples only through means, the statistics.

The statistics of a union of clients are the weighted mean of the clients' statistics.
The loss of a large batch can therefore be computed by clients that hold one example
each.

Moments may be taken around a `reference` near the encodings' means, the same for all
moments that are added up (see `losses.cco`). Which references leave the value of a loss
as it is follows from the shifts of the encodings that the loss ignores.
"""

import collections
from collections.abc import Mapping

import tensorflow as tf

from tff_ssl.losses import lengths

Statistics = collections.OrderedDict[str, tf.Tensor]
# What all clients of a round share. Moments are taken around `f` [d] and `g` [d], or
# around 0 without them; directions are drawn from `seed`, int32 [2].
Reference = collections.OrderedDict[str, tf.Tensor]
SEED = 'seed'
# Shifts of the encodings that a loss ignores: none; one of both views; one of each.
NO_SHIFT, COMMON_SHIFT, EACH_SHIFT = 'none', 'common', 'each'


class StatisticsLoss:
  """A loss of the statistics of two views' encodings.

  A loss defines `statistics` and `loss`. It defines `share_bound` if one example's
  share of the statistics is bounded, `signs_of_collapse` if the statistics show one,
  and, if it ignores a shift, `ignores_shift` and `moved`. If its statistics depend on
  directions that are drawn for a round, it defines `drawn`.

  Attributes:
    ignores_shift: Which shifts of the encodings it ignores.
    draws: Whether it draws directions: a reference then has their `seed`.
  """

  ignores_shift = NO_SHIFT
  draws = False

  def with_seed(self, seed: tf.Tensor) -> 'StatisticsLoss':
    """Returns the loss with its random numbers, drawn from a seed, int32 [2]."""
    del seed
    return self

  def statistics(self, f: tf.Tensor, g: tf.Tensor) -> Statistics:
    """Returns means over examples, all zero for n = 0.

    Args:
      f: [n, d] encodings of the first view, less their reference if there is one.
      g: [n, d] encodings of the second view, likewise.
    """
    raise NotImplementedError

  def loss(self, statistics: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the loss, a scalar, of any statistics: local, aggregated or blended."""
    raise NotImplementedError

  def share_bound(self, norm: float | None) -> float | None:
    """Returns the largest l2 norm of one example's share of the statistics.

    n_k times a client's statistics are then at most n_k times as long.

    Args:
      norm: The largest l2 norm of what `statistics` takes of one view; None: there is
        no limit.

    Returns:
      None if there is no bound.
    """
    del norm
    return None

  def signs_of_collapse(self, statistics: Mapping[str, tf.Tensor]) -> Statistics:
    """Returns scalars by name that show a collapse in a cohort's statistics."""
    del statistics
    return collections.OrderedDict()

  def moved(
    self, statistics: Mapping[str, tf.Tensor], shift: Mapping[str, tf.Tensor]
  ) -> Statistics:
    """Returns the statistics of the same encodings around another reference.

    Args:
      statistics: Around a reference r.
      shift: `f` [d] and `g` [d]: the other reference less r; empty without references.
        The seed of directions does not change.
    """
    if set(shift) - {SEED}:
      raise NotImplementedError
    return collections.OrderedDict(statistics)


def around(
  f: tf.Tensor,
  g: tf.Tensor,
  reference: Mapping[str, tf.Tensor] | None = None,
  norm: float | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns encodings less their reference, of bounded length.

  Args:
    f: [n, d_f].
    g: [n, d_g].
    reference: No gradient flows into it; zeros when None or empty.
    norm: R, the largest distance of an encoding from its reference; an encoding farther
      away is moved towards the reference, to this distance. None: no limit.
  """
  if reference and 'f' in reference:
    f, g = (
      x - tf.cast(tf.stop_gradient(reference[name]), x.dtype)
      for name, x in (('f', f), ('g', g))
    )
  if norm is not None:
    f, g = lengths.at_most(f, norm), lengths.at_most(g, norm)
  return f, g


def means(f: tf.Tensor, g: tf.Tensor) -> Reference:
  """Returns the mean encodings, the best reference for them; zeros for n = 0.

  Args:
    f: [n, d_f].
    g: [n, d_g].
  """
  count = tf.cast(tf.shape(f)[0], f.dtype)
  return collections.OrderedDict(
    (name, tf.math.divide_no_nan(tf.reduce_sum(x, axis=0), count))
    for name, x in (('f', f), ('g', g))
  )


def blend(
  local: Mapping[str, tf.Tensor], aggregated: Mapping[str, tf.Tensor]
) -> collections.OrderedDict[str, tf.Tensor]:
  """Returns statistics with the aggregate's value and the client's gradient.

  Args:
    local: The client's own statistics S_k, differentiable in its model.
    aggregated: The cohort's statistics S, of the same names and shapes.

  Returns:
    S_k + stop_gradient(S - S_k), in the order of `local`.

  Raises:
    ValueError: If the two do not hold the same names.

  Source: Vemulapalli et al. 2022, Section 3 (DCCO, client update).
  """
  if set(local) != set(aggregated):
    raise ValueError(
      f'Local and aggregated statistics are {", ".join(sorted(local))} and '
      f'{", ".join(sorted(aggregated))}; they must be the same.'
    )
  return collections.OrderedDict(
    (name, value + tf.stop_gradient(aggregated[name] - value))
    for name, value in local.items()
  )
