"""How a network reads pixels, which come in [0, 1]."""

from collections.abc import Mapping
from typing import Any, Literal

from tff_ssl.encoders import network_ops

Pixels = Literal['unit', 'signed', 'imagenet', 'caffe', 'lite']
# Of red, green and blue in ImageNet, by which its networks standardize.
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Of red, green and blue, in 255ths: Keras's 'caffe' subtracts them.
_CAFFE_MEAN = (123.68, 116.779, 103.939)
# Names -> factors and offsets of the channels.
_FACTORS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
  'signed': ((2.0,) * 3, (-1.0,) * 3),
  'imagenet': (
    tuple(1 / deviation for deviation in _DEVIATION),
    tuple(-mean / deviation for mean, deviation in zip(_MEAN, _DEVIATION, strict=True)),
  ),
  'caffe': ((255.0,) * 3, tuple(-mean for mean in _CAFFE_MEAN)),
  'lite': ((255 / 128,) * 3, (-127 / 128,) * 3),
}


def read(ops: network_ops.Operations, x: Any, name: Pixels) -> Any:
  """Returns pixels as a network reads them.

  Args:
    ops: The interpreter.
    x: [n, height, width, channels] in [0, 1], with three channels or, unless `name` is
      'unit', one, which then stands for all three.
    name: 'unit', as they are; 'signed', in [-1, 1]; 'imagenet', standardized by the
      means and deviations of ImageNet; 'caffe', in [0, 255], without their mean (the
      channels stay red, green, blue: kernels are turned when they are read); 'lite',
      less 127 and by 128 in [0, 255], as of EfficientNet-Lite.
  """
  if name == 'unit':
    return x
  factors, offsets = _FACTORS[name]
  if ops.shape(x)[-1] == 1:
    x = ops.repeat_channels(x, len(factors))
  return ops.rescale(x, factors, offsets)
