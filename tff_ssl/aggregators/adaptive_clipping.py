"""Clip norms that follow a quantile of the clients' norms.

Galen Andrew, Om Thakkar, H. Brendan McMahan, Swaroop Ramaswamy. Differentially
Private Learning with Adaptive Clipping. NeurIPS 2021.

The number of clients within the norm is released too. The standard deviation of its
noise is a twentieth of the clients, or z if z is larger: that leaves most of the
privacy budget for the values. The multiplier z covers both releases.
"""

import dataclasses

import tensorflow_federated as tff
import tensorflow_privacy as tfp

from tff_ssl.aggregators import bounds
from tff_ssl.computing import checks


@dataclasses.dataclass(frozen=True)
class AdaptiveClip:
  """How clip norms change from round to round.

  Attributes:
    quantile: gamma, the share of clients that should be within the norm.
    clients_per_round: m, by which the number of clients within the norm is divided.
    learning_rate: eta. In a round in which a share b of the clients is within the norm,
      noise included, the norm is multiplied by exp(-eta (b - gamma)).
  """

  quantile: float
  clients_per_round: int
  learning_rate: float = 0.2

  def __post_init__(self):
    if not 0 < self.quantile < 1:
      raise ValueError(f'quantile is {self.quantile}; it must be between 0 and 1.')
    checks.positive(
      clients_per_round=self.clients_per_round, learning_rate=self.learning_rate
    )


def build_sum(
  adaptive: AdaptiveClip, noise_multiplier: float, clip: float
) -> tff.aggregators.UnweightedAggregationFactory:
  """Builds a sum of clipped values with Gaussian noise.

  Args:
    adaptive: How the clip norm changes.
    noise_multiplier: z, the standard deviation of the noise over the clip norm, for the
      sum and the number of clients within the norm together.
    clip: The first round's clip norm: the largest l2 norm of a client's value.

  Raises:
    ValueError: If a number is out of range (`bounds`).
  """
  bounds.check_noise(noise_multiplier, clip=clip)
  clients = float(adaptive.clients_per_round)
  # Of the noise on the number of clients within the norm. Each client counts as +-1/2,
  # so that the multiplier of this release is twice the deviation.
  deviation = max(clients / 20, noise_multiplier)
  own = (noise_multiplier**-2 - (2 * deviation) ** -2) ** -0.5
  # Not TFF's `gaussian_adaptive`, which divides the sum by the clients.
  return tff.aggregators.DifferentiallyPrivateFactory(
    tfp.QuantileAdaptiveClipSumQuery(
      initial_l2_norm_clip=float(clip),
      noise_multiplier=own,
      target_unclipped_quantile=adaptive.quantile,
      learning_rate=adaptive.learning_rate,
      clipped_count_stddev=deviation,
      expected_num_records=clients,
      geometric_update=True,
    )
  )
