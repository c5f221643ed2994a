"""Networks behind an encoder: projectors, predictors, linear heads and prototypes.

Source: Vemulapalli et al., 2022 (DCCO), Section 4: projections 1024-1024-1024 with
group norm and weight standardization in all layers but the last.
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from tff_ssl.computing import checks as computing_checks
from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import network_ops


@dataclasses.dataclass(frozen=True)
class ProjectorConfig(kinds.Kind):
  """Configuration of a projector.

  Attributes:
    widths: units of each layer; without layers it is the identity.
    normalization: norm of all layers but the last, which has none.
    groups: groups of a group norm where the units allow it.
    weight_standardization: whether all layers but the last use standardized kernels;
      with batch norm they never do.
    output_bias: whether the last layer has a bias. Before a loss that ignores a shift
      of its encodings, the bias has a gradient of zero, and rounding alone moves it.
  """

  widths: tuple[kinds.Count, ...] = (1024, 1024, 1024)
  normalization: checks.Norm = 'group'
  groups: kinds.Count = 32
  weight_standardization: bool = True
  output_bias: bool = True


def build_projector(
  input_dim: int,
  widths: Sequence[int] = (1024, 1024, 1024),
  normalization: str = 'group',
  name: str = 'projector',
  **options: Any,
) -> network.Network:
  """Builds dense layers, normalized and with relu in all but the last.

  A predictor (BYOL, SimSiam) is the same network with its own widths, the last being
  `input_dim`.

  Args:
    input_dim: units of the input.
    widths: see `ProjectorConfig`.
    normalization: see `ProjectorConfig`.
    name: name of the network.
    **options: other fields of `ProjectorConfig`.

  Returns:
    A network [n, input_dim] -> [n, widths[-1]].

  Raises:
    ValueError: an argument is not allowed.
  """
  computing_checks.at_least(1, input_dim=input_dim)
  config = ProjectorConfig(tuple(widths), normalization, **options)  # type: ignore[arg-type]
  return network.Network(name, (input_dim,), functools.partial(_forward, config))


def like(encoder: network.Network) -> str:
  """Returns the normalization of heads behind an encoder: 'batch' if that has it."""
  return 'batch' if encoder.mixes_examples else 'group'


def build_linear(
  input_dim: int, num_classes: int, name: str = 'linear'
) -> network.Network:
  """Builds a linear classifier.

  Args:
    input_dim: units of the input.
    num_classes: number of logits.
    name: name of the network.

  Returns:
    A network [n, input_dim] -> [n, num_classes].

  Raises:
    ValueError: an argument is not allowed.
  """
  computing_checks.at_least(1, num_classes=num_classes)
  return build_projector(input_dim, (num_classes,), name=name)


def build_prototypes(input_dim: int, number: int) -> network.Network:
  """Builds prototypes: scores are products with the columns of a kernel, no bias.

  Args:
    input_dim: units of the input.
    number: number of prototypes.

  Returns:
    A network [n, input_dim] -> [n, number] with one parameter, 'dense0/kernel'.

  Raises:
    ValueError: the number is below 1.
  """
  if number < 1:
    raise ValueError(f'The number of prototypes is {number}; it must be at least 1.')
  return network.Network('prototypes', (input_dim,), functools.partial(_scores, number))


def _scores(number: int, ops: network_ops.Operations, x: Any) -> Any:
  return ops.dense(x, 'dense0', units=number, use_bias=False, gain=1.0)


def _forward(config: ProjectorConfig, ops: network_ops.Operations, x: Any) -> Any:
  """All layers."""
  for index, units in enumerate(config.widths[:-1]):
    x = ops.dense(
      x,
      f'dense{index}',
      units=units,
      use_bias=config.normalization == 'none',
      standardize=config.weight_standardization and config.normalization != 'batch',
    )
    x = ops.relu(ops.norm(x, f'norm{index}', config.normalization, config.groups))
  for units in config.widths[-1:]:
    x = ops.dense(
      x,
      f'dense{len(config.widths) - 1}',
      units=units,
      use_bias=config.output_bias,
      gain=1.0,
    )
  return x
