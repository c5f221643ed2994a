"""A running estimate of a quantile of the clients' divergences, at the server.

"Differentially Private Learning with Adaptive Clipping", Galen Andrew, Om Thakkar,
H. Brendan McMahan, Swaroop Ramaswamy, NeurIPS 2021, Algorithm 1 with the geometric
update: the server broadcasts a threshold C, and each client sends whether its number is
below C. From the share b of the clients that are below, the server computes

  C <- C exp(-rate (b - quantile)),

so that b approaches the quantile. No client sends its number for this, and no extra
exchange is needed: C goes down with the model, and one number comes up with the update,
through the same aggregation as the metrics.

Deviations: C is a ratio times the mean divergence of the last round that had one. The
mean is reported anyway, and only the ratio is updated. Divergences fall with the
learning rate by a factor of 40 in 20 rounds. At the paper's rate of 0.2 an independent
threshold would fall by at most 10 % a round, so that all clients would soon be below
it. Before the first divergences C is infinite, and all clients are below it. Shares are
shares of the clients' weights in the mean, as for all metrics; the noise is that of the
given aggregation.
"""

import collections
from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class RunningQuantile(kinds.Kind):
  """The quantile that is estimated, and the rate of the estimate's update.

  Attributes:
    quantile: gamma, the share of the clients whose numbers are below the threshold.
    rate: eta_C, of the update; the paper's 0.2.
  """

  quantile: kinds.Inner
  rate: kinds.Positive = 0.2

  def initial(self) -> collections.OrderedDict[str, Any]:
    """Returns what the server keeps before round 0."""
    return collections.OrderedDict(
      ratio=tf.constant(1.0), mean=tf.constant(np.inf, tf.float32)
    )

  def threshold(self, kept: Mapping[str, Any]) -> tf.Tensor:
    """Returns C, float32; infinite before the first round with numbers."""
    return kept['ratio'] * kept['mean']

  def updated(
    self, kept: Mapping[str, Any], below: tf.Tensor, mean: tf.Tensor, known: tf.Tensor
  ) -> collections.OrderedDict[str, Any]:
    """Returns what the server keeps after a round.

    Args:
      kept: Before it.
      below: b, share of the clients with a number whose number was below C.
      mean: Mean of these clients' numbers.
      known: Share of the clients with a number; 0: nothing changes.
    """
    factor = tf.exp(-self.rate * (below - self.quantile))
    # The share below an infinite threshold says nothing.
    compared = tf.math.is_finite(kept['mean'])
    ratio = tf.where(compared, kept['ratio'] * factor, kept['ratio'])
    return collections.OrderedDict(
      ratio=tf.where(known > 0, ratio, kept['ratio']),
      mean=tf.where(known > 0, mean, kept['mean']),
    )
