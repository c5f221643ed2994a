"""The collapse alarm's numbers: what clients send for it, and what a round reports."""

import collections

import tensorflow as tf

from tff_ssl.losses import spread

Metrics = collections.OrderedDict[str, tf.Tensor]
# Means over examples of one network's encodings. They must not be averaged over clients
# whose networks differ: five networks, each collapsed to a different point, would seem
# spread out.
MOMENTS = ('normalised_mean', 'normalised_square', 'normalised_second')
# The moments that `encoding_std` is computed from.
OF_STD = MOMENTS[:2]
STD, _RANK = 'encoding_std', 'effective_rank'


def spread_metrics(encodings: tf.Tensor) -> Metrics:
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


def std_metrics(encodings: tf.Tensor) -> Metrics:
  """Returns the 2 d means of `spread_metrics` that `encoding_std` is computed from."""
  moments = spread_metrics(encodings)
  return collections.OrderedDict((name, moments[name]) for name in OF_STD)


def summarize(metrics: Metrics) -> Metrics:
  """Returns metrics with the two numbers of the collapse alarm in place of moments.

  Args:
    metrics: Scalars and the moments of `spread_metrics`; without moments they are
      returned unchanged.

  Returns:
    The scalars, then the two numbers. `encoding_std`: about 1 when spread out, 0 when
    collapsed, for losses that do not ignore a shift. `effective_rank`: from 1 when
    collapsed to d when all directions of the L2-normalised encodings vary equally. For
    d > 32 it is computed in 32 fixed random dimensions (see `losses.spread`), and
    called `effective_rank_32`.
  """
  if MOMENTS[0] not in metrics:
    return metrics
  mean = metrics['normalised_mean']
  exact = mean.shape[0] <= spread.SUBSPACE_DIM
  rank = _RANK if exact else f'{_RANK}_{spread.SUBSPACE_DIM}'
  summary = collections.OrderedDict(
    (name, value) for name, value in metrics.items() if name not in MOMENTS
  )
  summary[STD] = spread.encoding_std_from_moments(mean, metrics['normalised_square'])
  summary[rank] = spread.effective_rank_from_moments(mean, metrics['normalised_second'])
  return summary


def summarize_std(metrics: Metrics) -> Metrics:
  """Returns `encoding_std` alone, of the moments `OF_STD` (see `summarize`)."""
  std = spread.encoding_std_from_moments(*(metrics[name] for name in OF_STD))
  return collections.OrderedDict([(STD, std)])


def with_client_spread(metrics: Metrics, prefix: str = '') -> Metrics:
  """Returns metrics with a client's own spread in place of its moments.

  This is for clients that train networks of their own. A round then reports the mean
  over clients of each client's spread, not the spread of encodings by different
  networks. A single example has a spread of 0.

  Args:
    metrics: One client's; without moments they are returned unchanged.
    prefix: What the moments' names begin with, for example 'personal_'.
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
  result.update((prefix + name, v) for name, v in summarize(moments).items())
  return result
