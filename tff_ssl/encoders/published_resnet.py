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

from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import resnet

_TORCH = functools.partial(
  resnet.ResNetConfig,
  stem='imagenet',
  weight_standardization=False,
  padding=resnet.SYMMETRIC,
  pixels=pixels_lib.IMAGENET,
)
_KERAS = functools.partial(
  _TORCH, pixels=pixels_lib.CAFFE, strided_first=True, epsilon=1.001e-5
)
_CONFIGS = {
  'torch_resnet18': _TORCH(18),
  'torch_resnet50': _TORCH(50),
  'keras_resnet50': _KERAS(50),
}
NAMES = (*_CONFIGS,)
NORMS = ('batch', 'none')


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  normalization: str = 'batch',
  pixels: str | None = None,
) -> network.Network:
  """Builds a residual encoder.

  Args:
    name: One of `NAMES`.
    image_shape: (height, width, channels).
    width: Factor on the numbers of channels; published weights have 1.
    normalization: 'batch', or 'none' if it is folded.
    pixels: One of `pixels.NAMES`; None: what the published weights expect.

  Returns:
    A network like those of `resnet.build_encoder`.

  Raises:
    ValueError: An argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  checks.one_of('normalization', normalization, NORMS)
  own = _CONFIGS[name]
  config = dataclasses.replace(
    own, width=width, normalization=normalization, pixels=pixels or own.pixels
  )
  return resnet.from_config(config, image_shape, name)
