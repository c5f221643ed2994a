"""Encoders: the networks from examples to features."""

import dataclasses
from typing import Any, Literal

from tff_ssl.computing import kinds
from tff_ssl.settings import objectives

AUTO = 'auto'
Pixels = Literal['imagenet', 'signed', 'unit', 'lite']
KerasPixels = Literal['caffe', 'signed', 'imagenet', 'unit', 'lite']
Precision = Literal['float32', 'bfloat16', 'auto']
# Fields -> the library's name of the option, and what has its value.
_OF_LIBRARY = {
  'norm': ('normalization', 'norm'),
  'batch_norm': ('normalization', 'norm'),
  'patch': ('patch_size', 'patch'),
}


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
    frozen: Share of the layers, the first ones, that stay as --init_from has them, and
      are not sent; none: all are trained.
  """

  kind: str
  width: kinds.Positive = 1.0
  precision: Precision = 'float32'
  lora: kinds.Count | None = None
  frozen: kinds.Inner | None = None

  @property
  def partial(self) -> dict[str, float]:
    """The fields by which only a part is trained; it is empty if all is."""
    both = {'lora': self.lora, 'frozen': self.frozen}
    return {name: value for name, value in both.items() if value is not None}

  @property
  def options(self) -> dict[str, Any]:
    """The options with which the library builds the encoder, by its names."""
    own = kinds.field_types(type(self)).keys() - kinds.field_types(Encoder).keys()
    named = (_OF_LIBRARY.get(name, (name, name)) for name in own)
    return {option: getattr(self, name) for option, name in named}


@dataclasses.dataclass(frozen=True)
class ResNet(Encoder):
  """A residual network.

  Attributes:
    norm: Norm of the network and its heads; group comes with weight standardization.
    groups: Most groups of the network's group norm, 32 in DCCO's paper; none: at most
      32, of at least 8 channels each.
    stem: First layers, for small or large images.
  """

  norm: Literal['group', 'batch'] = 'group'
  groups: kinds.Count | None = None
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
    groups: Most groups of the network's group norm; none: at most 32, of at least 8
      channels or units each.
  """

  norm: Literal['group', 'batch'] = 'group'
  groups: kinds.Count | None = None


@dataclasses.dataclass(frozen=True)
class Mlp(Conv):
  """An MLP, for rows of numbers."""


@dataclasses.dataclass(frozen=True)
class _Published(Encoder):
  """A network of convolutions as others publish it, for its weights (init_from).

  Attributes:
    batch_norm: What becomes of batch norm: trained; or folded into the convolutions,
      which makes an example's gradient independent of the batch.
    pixels: How it reads pixels.
  """

  batch_norm: Literal['trained', 'folded'] = 'trained'
  pixels: str = 'imagenet'

  @property
  def norm(self) -> str:
    """Its norm, by the library's name."""
    return 'batch' if self.batch_norm == 'trained' else 'none'


@dataclasses.dataclass(frozen=True)
class TorchResNet(_Published):
  """A residual network as in PyTorch, for weights of torchvision or timm (init_from).

  Attributes:
    pixels: How it reads pixels: standardised as in ImageNet, in [-1, 1], in [0, 1],
      or as EfficientNet-Lite's weights expect.
  """

  pixels: Pixels = 'imagenet'


@dataclasses.dataclass(frozen=True)
class TorchMobileNet(_Published):
  """EfficientNet-Lite0, for its published weights (init_from).

  Attributes:
    pixels: How it reads pixels: less 127 and by 128 in [0, 255], as its weights expect;
      in [-1, 1]; standardised as in ImageNet; or in [0, 1].
  """

  pixels: Pixels = 'lite'


@dataclasses.dataclass(frozen=True)
class KerasResNet(_Published):
  """The residual network of keras.applications, for its weights (init_from).

  Attributes:
    pixels: How it reads pixels: as Caffe, which Keras's weights expect; in [-1, 1];
      standardised as in ImageNet; in [0, 1]; or as EfficientNet-Lite's expect.
  """

  pixels: KerasPixels = 'caffe'


@dataclasses.dataclass(frozen=True)
class KerasMobileNet(KerasResNet):
  """The MobileNetV2 of keras.applications, for its weights; width is Keras's alpha.

  Attributes:
    pixels: How it reads pixels: in [-1, 1], which Keras's weights expect; as Caffe;
      standardised as in ImageNet; in [0, 1]; or as EfficientNet-Lite's expect.
  """

  pixels: KerasPixels = 'signed'


@dataclasses.dataclass(frozen=True)
class TorchViT(Encoder):
  """A vision transformer as in PyTorch, for weights of timm or torchvision (init_from).

  Attributes:
    patch: Side of the patches in pixels; none: 16.
    layer_scale: Whether branches end in a layer scale, as in DINOv2 and DeiT III.
    registers: Register tokens.
    pool: What encodes an image: the class token, or the mean of the patches.
    pixels: How it reads pixels: standardised as in ImageNet, in [-1, 1], in [0, 1],
      or as EfficientNet-Lite's weights expect.
  """

  patch: kinds.Count | None = None
  layer_scale: bool = False
  registers: kinds.Natural = 0
  pool: Literal['class', 'mean'] = 'class'
  pixels: Pixels = 'imagenet'


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
  'torch_resnet18': TorchResNet,
  'torch_resnet50': TorchResNet,
  'keras_resnet50': KerasResNet,
  'torch_vit_tiny': TorchViT,
  'torch_vit_small': TorchViT,
  'torch_vit_base': TorchViT,
  'keras_mobilenet_v2': KerasMobileNet,
  'torch_efficientnet_lite0': TorchMobileNet,
}


def default(objective: objectives.Objective, batch_norm: bool) -> Encoder:
  """Returns the small encoder that an objective is shown with.

  Args:
    objective: What clients minimise.
    batch_norm: Whether a network that has a norm has batch norm.
  """
  if isinstance(objective, objectives.Mae):
    return ViT('vit_micro')
  return ResNet('resnet8', norm='batch' if batch_norm else 'group')
