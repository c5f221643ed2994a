"""The interpreter that lists a network's parameters."""

import collections
import math
from typing import Any

import numpy as np

from tff_ssl.encoders import ops
from tff_ssl.encoders import parameters


class Describe(ops.Operations):
  """Collects the parameters' specs. A value is the shape of one example.

  Attributes:
    specs: name -> spec of what is trained, in the order of use.
    statistics: name -> spec of population statistics.
    taps: name -> shape of one example.
    largest: scalars in the largest result of a layer with weights, for one example.
  """

  def __init__(self) -> None:
    super().__init__()
    self.specs: collections.OrderedDict[str, parameters.ParameterSpec] = (
      collections.OrderedDict()
    )
    self.statistics: collections.OrderedDict[str, parameters.ParameterSpec] = (
      collections.OrderedDict()
    )
    self.taps: dict[str, tuple[int, ...]] = {}
    self.largest = 0

  def shape(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Returns `x`."""
    return x

  def parameter(
    self,
    name: str,
    shape: tuple[int, ...],
    initializer: parameters.Initializer,
    transform: parameters.Transform | None = None,
  ) -> None:
    """Records the spec."""
    del transform
    path = self.path(name)
    if path in self.specs:
      raise ValueError(f'parameter names must be unique, got {path!r} twice')
    self.specs[path] = parameters.ParameterSpec(shape, initializer)

  def statistic(
    self, name: str, shape: tuple[int, ...], initializer: parameters.Initializer
  ) -> None:
    """Records the spec."""
    # No check is needed: the same scope has parameters, whose names are unique.
    self.statistics[self.path(name)] = parameters.ParameterSpec(shape, initializer)

  def relu(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the shape."""
    return x

  def gelu(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the shape."""
    return x

  def add(self, x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the shape, which must be the same for both."""
    if x != y:
      raise ValueError(f'add in {self.path()!r} needs equal shapes, got {x} and {y}')
    return x

  def offset(
    self, x: tuple[int, ...], name: str, values: np.ndarray
  ) -> tuple[int, ...]:
    """Keeps the shape, which must equal the shape of the values."""
    if x != values.shape:
      raise ValueError(
        f'offset {self.path(name)!r} needs values of shape {x}, got {values.shape}'
      )
    return x

  def tokens(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Multiplies height and width."""
    height, width, channels = x
    return (height * width, channels)

  def max_pool(self, x: tuple[int, ...], *, size: int, strides: int) -> tuple[int, ...]:
    """Divides height and width by the strides, rounding up."""
    del size
    height, width, channels = x
    return (math.ceil(height / strides), math.ceil(width / strides), channels)

  def global_average_pool(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Keeps the channels."""
    return x[-1:]

  def tap(self, x: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Records the shape."""
    self.taps[self.path(name)] = x
    return x

  def _conv2d(
    self, x: tuple[int, ...], kernel: Any, bias: Any, strides: int
  ) -> tuple[int, ...]:
    # The result has as many channels as the kernel just recorded.
    del kernel, bias
    filters = self.specs[self.path('kernel')].shape[-1]
    return self._result((math.ceil(x[0] / strides), math.ceil(x[1] / strides), filters))

  def _dense(self, x: tuple[int, ...], kernel: Any, bias: Any) -> tuple[int, ...]:
    del kernel, bias
    return self._result((*x[:-1], self.specs[self.path('kernel')].shape[-1]))

  def _group_norm(
    self, x: tuple[int, ...], gamma: Any, beta: Any, groups: int
  ) -> tuple[int, ...]:
    del gamma, beta, groups
    return x

  def _batch_norm(
    self, x: tuple[int, ...], gamma: Any, beta: Any, mean: Any, square: Any
  ) -> tuple[int, ...]:
    del gamma, beta, mean, square
    return x

  def _layer_norm(self, x: tuple[int, ...], gamma: Any, beta: Any) -> tuple[int, ...]:
    del gamma, beta
    return x

  def _attention(
    self, x: tuple[int, ...], qkv: Any, output: Any, heads: int
  ) -> tuple[int, ...]:
    del qkv, output, heads
    return x

  def _result(self, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Records the size of a layer's result."""
    self.largest = max(self.largest, math.prod(shape))
    return shape
