"""Encoders: the networks from examples to features."""

import dataclasses
from typing import Literal

from binaries.config import objectives
from tff_ssl.computing import kinds

AUTO = 'auto'
Precision = Literal['float32', 'bfloat16', 'auto']


@dataclasses.dataclass(frozen=True)
class Encoder(kinds.Kind):
  """A network.

  Attributes:
    kind: Name of the network.
    width: Factor on its channels or units.
    precision: Precision of its maps in training; bfloat16 is fast on processors with
      AMX or AVX512-BF16; auto: the faster one on this machine, measured when the run
      begins, and kept by it.
    lora: Rank of adapters on dense layers, attention and convolutions of size 1; only
      these and the norms are trained, and sent, and all else stays as --init_from has
      it; none: all weights are trained.
  """

  kind: str
  width: kinds.Positive = 1.0
  precision: Precision = 'float32'
  lora: kinds.Count | None = None


@dataclasses.dataclass(frozen=True)
class ResNet(Encoder):
  """A residual network.

  Attributes:
    norm: Norm of the network and its heads; group comes with weight standardization.
    stem: First layers, for small or large images.
  """

  norm: Literal['group', 'batch'] = 'group'
  stem: Literal['cifar', 'imagenet'] = 'cifar'


@dataclasses.dataclass(frozen=True)
class ViT(Encoder):
  """A vision transformer.

  Attributes:
    patch: Side of the patches in pixels; none: as many as give at most 16 on a side.
  """

  patch: kinds.Count | None = None


@dataclasses.dataclass(frozen=True)
class ConvNeXt(Encoder):
  """A ConvNeXt."""


@dataclasses.dataclass(frozen=True)
class Conv(Encoder):
  """A plain convolutional network.

  Attributes:
    norm: Norm of the network and its heads.
  """

  norm: Literal['group', 'batch'] = 'group'


@dataclasses.dataclass(frozen=True)
class Mlp(Encoder):
  """An MLP, for rows of numbers.

  Attributes:
    norm: Norm of the network and its heads.
  """

  norm: Literal['group', 'batch'] = 'group'


ENCODERS: dict[str, type[Encoder]] = {
  'resnet8': ResNet,
  'resnet14': ResNet,
  'resnet18': ResNet,
  'resnet50': ResNet,
  'conv2': Conv,
  'conv4': Conv,
  'convnext_micro': ConvNeXt,
  'convnext_tiny': ConvNeXt,
  'vit_micro': ViT,
  'vit_tiny': ViT,
  'mlp': Mlp,
}


def suited(objective: objectives.Objective, batch_norm: bool) -> Encoder:
  """Returns the small encoder that an objective is shown with.

  Args:
    objective: What clients minimise.
    batch_norm: Whether a network that has a norm has batch norm.
  """
  if isinstance(objective, objectives.Mae):
    return ViT('vit_micro')
  return ResNet('resnet8', norm='batch' if batch_norm else 'group')
