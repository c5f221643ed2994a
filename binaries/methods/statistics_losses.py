"""The losses of encoding statistics, as --loss names them."""

from collections.abc import Callable, Mapping
import dataclasses

from binaries.flags import methods
from tff_ssl.losses import cco
from tff_ssl.losses import spectral
from tff_ssl.losses import statistics_loss
from tff_ssl.losses import vicreg


@dataclasses.dataclass(frozen=True)
class Loss:
  """A loss of encoding statistics.

  Attributes:
    build: () -> the loss, as the flags say.
    takes: Flags that only some of these losses take.
    two_towers: Whether it works for two modalities.
  """

  build: Callable[[], statistics_loss.StatisticsLoss]
  takes: tuple[str, ...] = ()
  two_towers: bool = True


LOSSES: Mapping[str, Loss] = {
  'cco': Loss(
    lambda: cco.CcoLoss(methods.OFF_DIAGONAL.value),
    ('off_diagonal_weight', 'encoding_norm'),
  ),
  'vicreg': Loss(vicreg.VicregLoss, ('encoding_norm',)),
  'spectral': Loss(
    lambda: spectral.SpectralLoss(methods.SPECTRAL_MU.value),
    ('spectral_mu',),
    two_towers=False,
  ),
}
