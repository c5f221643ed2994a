"""Encoders of vectors: dense layers with norm and relu, for tabular data.

Compare Yury Gorishniy, Ivan Rubachev, Valentin Khrulkov, Artem Babenko. Revisiting Deep
Learning Models for Tabular Data. NeurIPS 2021, whose baseline is such a network.

Deviations: group norm or batch norm behind each layer, and no dropout, so that nothing
random enters an example's encoding.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import network_ops

NAMES = ('mlp',)
OPTIONS = ('normalization', 'groups')
_WIDTHS = (128, 128)


@dataclasses.dataclass(frozen=True)
class MlpConfig(kinds.Kind):
  """Configuration of an MLP.

  Attributes:
    widths: units of each layer, the last being the features.
    normalization: norm of all layers; 'none': they have biases instead.
    groups: most groups of a group norm; None: see `group_normalization.num_groups`.
  """

  widths: tuple[kinds.Count, ...] = _WIDTHS
  normalization: checks.Norm = 'group'
  groups: kinds.Count | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    if not self.widths:
      raise ValueError('widths is empty; it must have an entry.')


def configure(
  name: str, shape: Sequence[int], width: float, **options: Any
) -> MlpConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  del name, shape
  return MlpConfig(tuple(max(2, round(width * units)) for units in _WIDTHS), **options)


def forward(config: MlpConfig, ops: network_ops.Operations, x: Any) -> Any:
  """All layers."""
  for index, units in enumerate(config.widths):
    normalized = config.normalization != 'none'
    x = ops.dense(x, f'dense{index}', units=units, use_bias=not normalized)
    x = ops.relu(ops.norm(x, f'norm{index}', config.normalization, config.groups))
  return x
