"""Pictures of any size as the squares that an encoder takes, within exported models.

To the bit what Pillow's bicubic filter makes of them, by which `tasks/images.py` reads
pictures: antialiased, first along one axis and then along the other, with weights of 22
bits behind the point and pixels rounded to 8 bits after each axis. Since Pillow 13 the
first axis is the vertical one if the height shrinks by more than twice as many pixels
as the width.

`of_pictures` does it in TensorFlow; code for NumPy and PyTorch is written of one
template.
"""

from collections.abc import Callable, Sequence
import importlib.util
import os
import pathlib
from typing import Any

import jinja2
import numpy as np
import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.storage import files

# The central square, all of the picture between black bars, or in other proportions.
CROP, PAD, STRETCH = FITS = 'crop', 'pad', 'stretch'
# The file with the code for NumPy.
CODE = 'square.py'
# Weights are whole multiples of 1 / _UNITS.
_UNITS = 2**22


def check(shape: Sequence[int], fit: str) -> None:
  """Raises ValueError unless pictures can become what an encoder takes.

  Args:
    shape: (height, width, channels) of the encoder.
    fit: One of `FITS`.
  """
  checks.one_of(FITS, fit=fit)
  if len(shape) != 3 or shape[0] != shape[1]:
    raise ValueError(
      f'The encoder takes inputs of shape {tuple(shape)}; pictures of any size need '
      'one of squares.'
    )


def of_pictures(
  pictures: tf.Tensor, size: int, fit: str, dtype: tf.DType = tf.float64
) -> tf.Tensor:
  """Returns pictures as squares.

  Args:
    pictures: uint8 [n, height, width, channels], of any height and width.
    size: Height and width of the result, in pixels.
    fit: One of `FITS`.
    dtype: What is computed with. In float32, which is all that TFLite multiplies, about
      one of 20,000 pixels is one step higher or lower than in float64.

  Returns:
    uint8 [n, size, size, channels].
  """
  x = tf.transpose(tf.cast(pictures, dtype), [0, 3, 1, 2])
  # Sums of ones in place of `tf.shape`: so all shapes follow from that of the input,
  # which lets TFLite plan its memory and use its fast kernels.
  rows, columns = (tf.reduce_sum(x, axes) * 0 + 1 for axes in ([0, 1, 3], [0, 1, 2]))
  height, width = tf.reduce_sum(rows), tf.reduce_sum(columns)
  # Not transposed here: ONNX Runtime would fuse that with a product, and cannot.
  down = _weights(rows, width, size, fit, [size, 1])
  across = _weights(columns, height, size, fit, [1, size])
  shorter, narrower = (
    side - _count(side, other, size, fit)
    for side, other in ((height, width), (width, height))
  )

  def vertical(x: tf.Tensor) -> tf.Tensor:
    return _rounded(tf.matmul(down, x))

  def horizontal(x: tf.Tensor) -> tf.Tensor:
    return _rounded(tf.matmul(x, across))

  squares = tf.cond(
    (shorter > 0) & (shorter > 2 * narrower),
    lambda: horizontal(vertical(x)),
    lambda: vertical(horizontal(x)),
  )
  squares = tf.transpose(squares, [0, 2, 3, 1])
  shape = [None, size, size, pictures.shape[3]]
  return tf.cast(tf.ensure_shape(squares, shape), tf.uint8)


def _count(side: Any, other: Any, size: int, fit: str) -> Any:
  """Returns how many pixels of the square one side of a picture becomes."""
  if fit != PAD:
    return tf.constant(size, side.dtype)
  return tf.minimum(tf.round(side / other * size), size)


def _weights(
  ones: tf.Tensor, other: tf.Tensor, size: int, fit: str, shape: Sequence[int]
) -> tf.Tensor:
  """Returns the matrix that resizes one side of a picture.

  Args:
    ones: [side], ones.
    other: The other side.
    size: See `of_pictures`.
    fit: Likewise.
    shape: [size, 1] or [1, size]; the other axis is that of the picture's pixels.

  Returns:
    [size, side] or [side, size].
  """
  dtype, side = ones.dtype, tf.reduce_sum(ones)
  count = _count(side, other, size, fit)
  first = tf.round((size - count) / 2)
  taken = tf.minimum(side, other) if fit == CROP else side
  scale = taken / tf.maximum(count, 1)
  place = tf.constant(np.arange(size).reshape(shape), dtype) - first
  pixels = tf.reshape(tf.cumsum(ones), [-1 if length == 1 else 1 for length in shape])
  # Behind the bars there may be no pixel, and weights without a sum.
  nearest = tf.clip_by_value(place, 0, tf.maximum(count - 1, 0))
  center = (side - taken) / 2 + (nearest + 0.5) * scale
  x = tf.abs(pixels - 0.5 - center) * (1 / tf.maximum(scale, 1))
  weights = tf.where(
    x < 1,
    (1.5 * x - 2.5) * x * x + 1,
    tf.where(x < 2, (((x - 5) * x + 8) * x - 4) * -0.5, tf.zeros_like(x)),
  )
  weights /= tf.reduce_sum(weights, axis=shape.index(1), keepdims=True)
  weights = tf.sign(weights) * tf.floor(tf.abs(weights) * _UNITS + 0.5) / _UNITS
  return weights * tf.cast((place >= 0) & (place < count), dtype)


def _rounded(x: tf.Tensor) -> tf.Tensor:
  return tf.clip_by_value(tf.floor(x + 0.5), 0, 255)


def write(folder: str | os.PathLike[str], size: int, fit: str) -> pathlib.Path:
  """Writes the code for NumPy, by which people make squares for a model of Keras.

  Args:
    folder: It exists.
    size: Height and width of a square.
    fit: One of `FITS`.

  Returns:
    The file.
  """
  path = pathlib.Path(folder) / CODE
  files.write(path, template('square.py').render(size=size, fit=fit))
  return path


def load(path: str | os.PathLike[str]) -> Callable[[np.ndarray], np.ndarray]:
  """Returns the function of a file that `write` wrote: from pictures to squares.

  Args:
    path: Not from a stranger: the file is executed.
  """
  return load_code(path).squares


def load_code(path: str | os.PathLike[str]) -> Any:
  """Returns the module of a file of code.

  Args:
    path: Not from a stranger: the file is executed.
  """
  spec = importlib.util.spec_from_file_location('exported', path)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def template(name: str) -> jinja2.Template:
  """Returns the template of a file of code.

  Args:
    name: Name of the file.
  """
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent / 'templates'),
    keep_trailing_newline=True,
    lstrip_blocks=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
  )
  return environment.get_template(f'{name}.jinja')
