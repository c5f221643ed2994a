"""Encoders of vectors: dense layers with norm and relu, for tabular data.

Compare Yury Gorishniy, Ivan Rubachev, Valentin Khrulkov, Artem Babenko. Revisiting Deep
Learning Models for Tabular Data. NeurIPS 2021, whose baseline is such a network.

Deviations: group norm or batch norm behind each layer, and no dropout, so that nothing
random enters an example's encoding.
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import network_ops

NAMES = ('mlp',)
_WIDTHS = (128, 128)


@dataclasses.dataclass(frozen=True)
class MlpConfig:
  """Configuration of an MLP.

  Attributes:
    widths: units of each layer, the last being the features.
    normalization: 'group', 'batch' or 'none', of all layers.
    groups: most groups of a group norm; None: see `group_normalization.num_groups`.
  """

  widths: tuple[int, ...] = _WIDTHS
  normalization: str = 'group'
  groups: int | None = None

  def __post_init__(self) -> None:
    """Checks the fields."""
    if not self.widths or min(self.widths) < 1:
      raise ValueError(
        f'widths is {self.widths}; it must have an entry, and each must be at least 1.'
      )
    checks.norm(self.normalization, self.groups)


def build_encoder(
  name: str,
  shape: Sequence[int],
  width: float = 1.0,
  normalization: str = 'group',
  groups: int | None = None,
) -> network.Network:
  """Builds an MLP.

  Args:
    name: one of `NAMES`.
    shape: (features,).
    width: factor on the 128 units of both layers.
    normalization: see `MlpConfig`.
    groups: see `MlpConfig`.

  Returns:
    A network [n, features] -> [n, 128 * width].

  Raises:
    ValueError: an argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  checks.width(width)
  widths = tuple(max(2, round(width * units)) for units in _WIDTHS)
  return from_config(MlpConfig(widths, normalization, groups), shape, name)


def from_config(
  config: MlpConfig, shape: Sequence[int], name: str = 'mlp'
) -> network.Network:
  """Builds an MLP of any size.

  Args:
    config: its configuration.
    shape: (features,).
    name: name of the network.

  Raises:
    ValueError: the shape is not of a vector.
  """
  if len(shape) != 1 or shape[0] < 1:
    raise ValueError(
      f'The shape of an example of {name} is {tuple(shape)}; it must be (features,), '
      'at least 1.'
    )
  forward = functools.partial(_forward, config)
  return network.Network(name, (int(shape[0]),), forward, config)


def _forward(config: MlpConfig, ops: network_ops.Operations, x: Any) -> Any:
  """All layers."""
  for index, units in enumerate(config.widths):
    normalized = config.normalization != 'none'
    x = ops.dense(x, f'dense{index}', units=units, use_bias=not normalized)
    x = ops.relu(ops.norm(x, f'norm{index}', config.normalization, config.groups))
  return x
