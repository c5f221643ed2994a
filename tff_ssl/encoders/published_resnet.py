"""Residual networks that are as in PyTorch and Keras, to start from published weights.

They differ from `resnet`'s, with the same parameters, in two points: convolutions with
strides are padded symmetrically, and pixels are standardized inside. `torch_layout`
reads the weights of torchvision and timm. In Keras's, moreover, bottlenecks have their
stride in the first convolution, batch norm has another epsilon, pixels are those of
Caffe, and the biases of convolutions are a part of the means behind them
(`keras_applications`).

Batch norm makes an example's gradient depend on its batch, and clients' batches differ.
So it can be folded: with the statistics of the published weights, each norm becomes a
part of the convolution before it, and the network has none.

Sources: torchvision, models/resnet.py; keras.applications, resnet.py.
"""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any

from tff_ssl.encoders import checks
from tff_ssl.encoders import resnet

_TORCH = functools.partial(
  resnet.ResNetConfig,
  stem='imagenet',
  weight_standardization=False,
  normalization='batch',
  padding='symmetric',
  pixels='imagenet',
)
_KERAS = functools.partial(_TORCH, pixels='caffe', strided_first=True, epsilon=1.001e-5)
_CONFIGS = {
  'torch_resnet18': _TORCH(18),
  'torch_resnet50': _TORCH(50),
  'keras_resnet50': _KERAS(50),
}
NAMES = (*_CONFIGS,)
OPTIONS = ('normalization', 'pixels')
NORMS = ('batch', 'none')


def configure(
  name: str, image_shape: Sequence[int], width: float, **options: Any
) -> resnet.ResNetConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  del image_shape
  config = dataclasses.replace(_CONFIGS[name], width=width, **options)
  checks.one_of('normalization', config.normalization, NORMS)
  return config
