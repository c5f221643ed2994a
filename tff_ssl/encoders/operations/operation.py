"""What an operation is: its parameters, and its meaning wherever a network is used."""

import abc
from collections.abc import Callable, Mapping, Sequence
import math
from typing import Any, ClassVar

import tensorflow as tf

from tff_ssl.encoders import parameters

# Whether windows may begin and end outside of the maps, so that every position is the
# middle of one; outside, maps are 0.
SAME, VALID = 'same', 'valid'


class Operation(abc.ABC):
  """One operation with its options, as a frozen dataclass.

  Inputs and results are [n, height, width, channels], [n, tokens, units] or [n, units];
  shapes are those of one example. `values` are the parameters' values in the order of
  `specs`. Errors need not name the operation: whoever describes a network does.

  Attributes:
    waits: Whether `compute`, `train` and `per_client`, of maps in bfloat16, take
      `other` and `rectified`: what is added to the result, and whether its relu is
      taken.
  """

  waits: ClassVar[bool] = False

  def specs(self, shape: parameters.Shape) -> parameters.Specs:
    """Returns the parameters' specs by name; none by default.

    Args:
      shape: the first input's.
    """
    del shape
    return {}

  def output_shape(self, *shapes: Any) -> parameters.Shape:
    """Returns the result's shape; the first input's by default.

    Args:
      *shapes: the inputs'.

    Raises:
      ValueError: the operation cannot take such inputs.
    """
    return shapes[0]

  @abc.abstractmethod
  def compute(self, *args: Any, **kwargs: Any) -> tf.Tensor:
    """Computes the result of inputs and then values, as in inference."""

  def train(
    self, *args: Any, batches: int, **behind: Any
  ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    """Computes the result as in training; as `compute` by default.

    Args:
      *args: the inputs, then the values of what is trained.
      batches: how many batches of equal size the input holds, one after another.
      **behind: see `waits`.

    Returns:
      A tuple of the result, and what the batch says of each parameter that is not
      trained.
    """
    del batches
    return self.compute(*args, **behind), ()

  def per_client(self, *args: Any, **kwargs: Any) -> tf.Tensor:
    """Computes the result with a gradient for each client.

    By default as `compute`, which is right where there are no parameters. An operation
    with parameters has its own: see `per_client_gradients`.

    Args:
      *args: the inputs, then a `per_client_gradients.Parameter` for each value.
      **kwargs: none.
    """
    return self.compute(*args, **kwargs)

  @abc.abstractmethod
  def keras(self, shape: parameters.Shape) -> tuple[Any, Mapping[str, Any]]:
    """Returns a standard Keras layer that computes the same: its class and options.

    Args:
      shape: the first input's.
    """

  def keras_weights(self, *values: Any) -> list[Any]:
    """Returns the Keras layer's weights; the values by default."""
    return list(values)

  def call_keras(self, layer: Any, *inputs: Any) -> Any:
    """Calls the Keras layer with Keras tensors."""
    return layer(*inputs)

  def emit_keras(
    self,
    make: Callable[..., Any],
    shape: parameters.Shape,
    values: Sequence[Any],
    *inputs: Any,
  ) -> Any:
    """Emits Keras layers that hold given values; the layer of `keras` by default.

    Args:
      make: (class, **options) -> layer. If there are several layers, `part` among the
        options is the name of one.
      shape: the first input's.
      values: NumPy arrays in the order of `specs`.
      *inputs: Keras tensors.

    Returns:
      The result, a Keras tensor.
    """
    kind, options = self.keras(shape)
    layer = make(kind, **options)
    # The call creates the weights.
    y = self.call_keras(layer, *inputs)
    layer.set_weights(self.keras_weights(*values))
    return y


def wide(x: tf.Tensor) -> tf.Tensor:
  """Returns `x` in a type that can be summed: bfloat16 as float32, else unchanged."""
  return tf.cast(x, tf.float32) if x.dtype == tf.bfloat16 else x


def strided_sides(
  shape: parameters.Shape, strides: int, size: int, padding: str = SAME
) -> tuple[int, int]:
  """Returns the sides of maps behind windows with strides.

  Args:
    shape: (height, width, channels) before them.
    strides: step, in both directions.
    size: side of a window.
    padding: 'same' or 'valid'.

  Raises:
    ValueError: without padding, no window fits in.
  """
  height, width = (
    math.ceil((side if padding == SAME else side - size + 1) / strides)
    for side in shape[:2]
  )
  if min(height, width) < 1:
    raise ValueError(
      f'the sides are {shape[:2]}; they must be at least the {size} of a window'
    )
  return height, width
