"""Clip norms that follow a quantile of the clients' norms.

Galen Andrew, Om Thakkar, H. Brendan McMahan, Swaroop Ramaswamy. Differentially
Private Learning with Adaptive Clipping. NeurIPS 2021.

The number of clients within the norm is released too. Each client counts as +1/2 or
-1/2, so that noise of deviation sigma on the sum is a multiplier of 2 sigma. As in the
paper sigma is a twentieth of the clients; or 5 z if that is larger, so that the counts
never cost more than a hundredth of the budget.

The first norm needs no data: it is 1. The first rounds take large steps: eta is 4 / t
in round t, until that is the paper's 0.2, in round 20. By then a norm that should be a
thousand times larger or smaller is found. A norm that is still too small costs little:
values keep their directions, and the noise shrinks with the norm.

`federated.followed_norms` says how a norm gets to the clients.
"""

import dataclasses

import tensorflow as tf

from tff_ssl.aggregators import bounds
from tff_ssl.computing import kinds

# What one client adds to the count: this, or minus this.
HALF = 0.5
# eta in the first round, from which it falls as 1 / t, and the least: the paper's.
_FIRST_RATE, _RATE = 4.0, 0.2
# sigma, over the multiplier of a round, and over its clients.
_OF_NOISE, _OF_CLIENTS = 5.0, 1 / 20
# A norm stays within these, whatever is counted.
_LEAST, _MOST = 1e-9, 1e9


@dataclasses.dataclass(frozen=True)
class AdaptiveClip(kinds.Kind):
  """How a clip norm changes from round to round.

  Attributes:
    quantile: gamma, the share of clients that should be within the norm.
    clients_per_round: m, by which the number of clients within the norm is divided.
    initial: The norm of the first round.
  """

  quantile: kinds.Inner
  clients_per_round: kinds.Count
  initial: float = 1.0

  def __post_init__(self):
    super().__post_init__()
    bounds.check_noise(1.0, initial=self.initial)

  def of_count(self, noise_multiplier: float) -> float:
    """Returns the noise multiplier of the number of clients within the norm.

    Args:
      noise_multiplier: z, of all releases of a round together.
    """
    clients = _OF_CLIENTS * self.clients_per_round
    return max(clients, _OF_NOISE * noise_multiplier) / HALF

  def after(self, norm: tf.Tensor, total: tf.Tensor, round: tf.Tensor) -> tf.Tensor:
    """Returns the norm of the next round.

    If a share b of the clients is within the norm, noise included, it is multiplied by
    exp(-eta (b - gamma)).

    Args:
      norm: Of this round.
      total: The sum over clients of +1/2 for one within the norm and -1/2 for others,
        noise included.
      round: int32, from 0.
    """
    share = total / self.clients_per_round + HALF
    first = _FIRST_RATE / (tf.cast(round, tf.float32) + 1)
    rate = tf.maximum(_RATE, first)
    moved = norm * tf.exp(-rate * (share - self.quantile))
    return tf.clip_by_value(moved, _LEAST, _MOST)
