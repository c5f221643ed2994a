"""The ResNet-50 of keras.applications, to start from its published weights.

It differs from `torch_resnet`'s: bottlenecks have their stride in the first
convolution, batch norm has another epsilon, and pixels are those of Caffe. The biases
of its convolutions are a part of the means behind them (`keras_applications`).

Source: keras.applications, resnet.py.
"""

from collections.abc import Sequence

from tff_ssl.encoders import checks
from tff_ssl.encoders import network
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import resnet

_DEPTHS = {'keras_resnet50': 50}
NAMES = (*_DEPTHS,)
NORMS = ('batch', 'none')
_EPSILON = 1.001e-5


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  normalization: str = 'batch',
  pixels: str = pixels_lib.CAFFE,
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
    strided_first=True,
    epsilon=_EPSILON,
  )
  return resnet.from_config(config, image_shape, name)
