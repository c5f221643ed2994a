"""Residual networks that are as in PyTorch, to start from published weights.

They differ from `resnet`'s, with the same parameters, in two points: convolutions with
strides are padded symmetrically, and pixels are standardized inside. `torch_layout`
reads the weights of torchvision and timm.

Batch norm makes an example's gradient depend on its batch, and clients' batches differ.
So it can be folded: with the statistics of the published weights, each norm becomes a
part of the convolution before it, and the network has none.
"""

from collections.abc import Sequence

from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import resnet

_DEPTHS = {f'torch_resnet{depth}': depth for depth in (18, 50)}
NAMES = (*_DEPTHS,)
NORMS = ('batch', 'none')


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  normalization: str = 'batch',
  pixels: str = pixels_lib.IMAGENET,
) -> network.Network:
  """Builds a residual encoder.

  Args:
    name: One of `NAMES`.
    image_shape: (height, width, channels).
    width: Factor on the numbers of channels; published weights have 1.
    normalization: 'batch', or 'none' if it is folded.
    pixels: One of `pixels.NAMES`.

  Returns:
    A network like those of `resnet.build_encoder`.

  Raises:
    ValueError: An argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  checks.one_of('normalization', normalization, NORMS)
  config = resnet.ResNetConfig(
    _DEPTHS[name],
    width,
    stem='imagenet',
    normalization=normalization,
    weight_standardization=False,
    padding=resnet.SYMMETRIC,
    pixels=pixels,
  )
  return resnet.from_config(config, image_shape, name)
