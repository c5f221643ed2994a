"""The collapse alarm's numbers: what clients send for it, and what a round reports."""

import collections

import tensorflow as tf

from tff_ssl.losses import spread
from tff_ssl.objectives import base


class SpreadReported:
  """An objective whose metrics are `spread_metrics`, and no others."""

  @property
  def collapsed_below(self) -> float:
    """The `encoding_std` of a collapse (see `base.Watched`)."""
    return 0.05

  def summarize(self, metrics: base.Metrics) -> base.Metrics:
    """Turns averaged moments into the collapse alarm's numbers."""
    return summarize_spread(metrics)


def spread_metrics(encodings: tf.Tensor) -> base.Metrics:
  """Returns the moments of encodings [n, d] from which their spread is known.

  They are means over examples, so the cohort's spread follows from their weighted mean
  even if every client holds one example. A client sends 2 d + min(d, 32)^2 numbers more
  for it: 8 d + 4096 bytes in float32 where d >= 32.
  """
  mean, square, second = spread.normalised_moments(tf.stop_gradient(encodings))
  return collections.OrderedDict(
    normalised_mean=mean, normalised_square=square, normalised_second=second
  )


def summarize_spread(metrics: base.Metrics) -> base.Metrics:
  """Returns the two numbers of the collapse alarm.

  Returns:
    `encoding_std`: about 1 when spread out, 0 when collapsed, for losses that do not
    ignore a shift. `effective_rank`: from 1 when collapsed to d when all directions of
    the L2-normalised encodings vary equally. Of d > 32 dimensions it is that of 32
    fixed random ones (see `losses.spread`), and called `effective_rank_32`.
  """
  mean = metrics['normalised_mean']
  exact = mean.shape[0] <= spread.SUBSPACE_DIM
  rank = 'effective_rank' if exact else f'effective_rank_{spread.SUBSPACE_DIM}'
  return collections.OrderedDict(
    [
      (
        'encoding_std',
        spread.encoding_std_from_moments(mean, metrics['normalised_square']),
      ),
      (rank, spread.effective_rank_from_moments(mean, metrics['normalised_second'])),
    ]
  )
