"""The collapse alarm's numbers: what clients send for it, and what a round reports."""

import collections

import tensorflow as tf

from tff_ssl.losses import spread
from tff_ssl.objectives import base

# Means over examples of one network's encodings. They must not be averaged over clients
# whose networks differ: five networks, each collapsed to a different point, would seem
# spread out.
MOMENTS = ('normalised_mean', 'normalised_square', 'normalised_second')
# The moments that `encoding_std` is computed from.
OF_STD = MOMENTS[:2]
STD, _RANK = 'encoding_std', 'effective_rank'


class SpreadReported:
  """An objective whose metrics are `spread_metrics`, and no others."""

  @property
  def collapsed_below(self) -> float:
    """The `encoding_std` below which encodings are collapsed (see `base.Watched`)."""
    return 0.05

  def summarize(self, metrics: base.Metrics) -> base.Metrics:
    """Turns averaged moments into the collapse alarm's numbers."""
    return summarize_spread(metrics)


def spread_metrics(encodings: tf.Tensor) -> base.Metrics:
  """Returns the moments of encodings [n, d] from which their spread is computed.

  They are means over examples: the cohort's spread follows from their weighted mean,
  even if every client holds one example. All clients must have encoded by the same
  network, as they do before the first step of training (see `local_training`). A client
  sends 2 d + min(d, 32)^2 numbers for this: 8 d + 4096 bytes in float32 for d >= 32.
  """
  mean, square, second = spread.normalised_moments(tf.stop_gradient(encodings))
  return collections.OrderedDict(
    normalised_mean=mean, normalised_square=square, normalised_second=second
  )


def std_metrics(encodings: tf.Tensor) -> base.Metrics:
  """Returns the 2 d means of `spread_metrics` that `encoding_std` is computed from."""
  moments = spread_metrics(encodings)
  return collections.OrderedDict((name, moments[name]) for name in OF_STD)


def summarize_spread(metrics: base.Metrics) -> base.Metrics:
  """Returns the two numbers of the collapse alarm.

  Args:
    metrics: The moments of `spread_metrics`, or what `of_own_network` made of them.

  Returns:
    `encoding_std`: about 1 when spread out, 0 when collapsed, for losses that do not
    ignore a shift. `effective_rank`: from 1 when collapsed to d when all directions of
    the L2-normalised encodings vary equally. For d > 32 it is computed in 32 fixed
    random dimensions (see `losses.spread`), and called `effective_rank_32`.
  """
  if STD in metrics:
    return collections.OrderedDict(
      (name, value) for name, value in metrics.items() if name.startswith((STD, _RANK))
    )
  mean = metrics['normalised_mean']
  exact = mean.shape[0] <= spread.SUBSPACE_DIM
  rank = _RANK if exact else f'{_RANK}_{spread.SUBSPACE_DIM}'
  return collections.OrderedDict(
    [
      (
        STD,
        spread.encoding_std_from_moments(mean, metrics['normalised_square']),
      ),
      (rank, spread.effective_rank_from_moments(mean, metrics['normalised_second'])),
    ]
  )


def summarize_std(metrics: base.Metrics) -> base.Metrics:
  """Returns `encoding_std` alone, of the moments `OF_STD` (see `summarize_spread`)."""
  std = spread.encoding_std_from_moments(*(metrics[name] for name in OF_STD))
  return collections.OrderedDict([(STD, std)])


def of_own_network(metrics: base.Metrics, prefix: str = '') -> base.Metrics:
  """Returns metrics with a client's own spread in place of its moments.

  This is for clients that train networks of their own. A round then reports the mean
  over clients of each client's spread, not the spread of encodings by different
  networks. A single example has a spread of 0.

  Args:
    metrics: One client's; without moments they are returned unchanged.
    prefix: Of the moments' names, for example 'personal_'.
  """
  moments = collections.OrderedDict(
    (name, metrics[prefix + name]) for name in MOMENTS if prefix + name in metrics
  )
  if not moments:
    return metrics
  result = collections.OrderedDict(
    (name, value)
    for name, value in metrics.items()
    if name.removeprefix(prefix) not in moments or not name.startswith(prefix)
  )
  result.update((prefix + name, v) for name, v in summarize_spread(moments).items())
  return result
