"""The operations that networks are written in; interpreters define what they do.

A network is one function `forward(ops, x)`. It never touches a tensor: it calls methods
of an `Operations`. Each interpreter gives these methods one meaning:
`describe.Describe` lists the parameters, `compute.Apply` computes with parameters given
from outside, `keras_export.ToKeras` emits Keras layers. A layer and its parameters'
names are thus defined once.

To add an operation with parameters: write its public method here, which names the
parameters, and an abstract primitive in `Primitives`. Then write the primitive in each
of the three interpreters, and in `of_clients.Apply`. An operation without parameters is
only an abstract method.
"""

import abc
from collections.abc import Iterator
import contextlib
import math
from typing import Any

import numpy as np

from tff_ssl.encoders import normalization
from tff_ssl.encoders import parameters

# The gain of a layer followed by relu, which halves the mean square (He et al., 2015).
RELU_GAIN = 2.0


class Primitives(abc.ABC):
  """Primitives on values whose nature only the interpreter knows.

  Values stand for [n, height, width, channels], [n, tokens, units] or [n, units].
  Parameter names are paths of the open scopes, the operation and the parameter.
  """

  def __init__(self) -> None:
    self._scopes: list[str] = []

  @contextlib.contextmanager
  def scope(self, name: str) -> Iterator[None]:
    """Puts `name` before all parameter and tap names of the block."""
    self._scopes.append(name)
    try:
      yield
    finally:
      self._scopes.pop()

  def path(self, name: str = '') -> str:
    """Returns `name` under the open scopes, joined by slashes."""
    return '/'.join([*self._scopes, name] if name else self._scopes)

  @abc.abstractmethod
  def shape(self, x: Any) -> tuple[int, ...]:
    """Returns the static shape of one example of `x`, without the batch axis."""

  @abc.abstractmethod
  def parameter(
    self,
    name: str,
    shape: tuple[int, ...],
    initializer: parameters.Initializer,
    transform: parameters.Transform | None = None,
  ) -> Any:
    """Returns the parameter's value, or nothing where there are no values.

    Args:
      name: its name under the open scopes.
      shape: its shape.
      initializer: how it is drawn.
      transform: applied to the value before it is returned.
    """

  @abc.abstractmethod
  def statistic(
    self, name: str, shape: tuple[int, ...], initializer: parameters.Initializer
  ) -> Any:
    """Returns a population statistic's value, or nothing where there is none.

    Args:
      name: its name under the open scopes.
      shape: its shape.
      initializer: gives its value before there is a population.
    """

  @abc.abstractmethod
  def relu(self, x: Any) -> Any:
    """Returns max(x, 0)."""

  @abc.abstractmethod
  def gelu(self, x: Any) -> Any:
    """Returns x times the standard normal distribution function of x."""

  @abc.abstractmethod
  def add(self, x: Any, y: Any) -> Any:
    """Returns the sum of two values of one shape."""

  @abc.abstractmethod
  def offset(self, x: Any, name: str, values: np.ndarray) -> Any:
    """Adds an array to every example.

    Args:
      x: [n, tokens, units].
      name: name of the operation; it has no parameters.
      values: [tokens, units].
    """

  @abc.abstractmethod
  def tokens(self, x: Any) -> Any:
    """Lists positions, row by row: [n, h, w, channels] -> [n, h * w, channels]."""

  @abc.abstractmethod
  def max_pool(self, x: Any, *, size: int, strides: int) -> Any:
    """Returns the maxima of square windows, with padding 'same'."""

  @abc.abstractmethod
  def global_average_pool(self, x: Any) -> Any:
    """Averages over positions: [n, height, width, channels] -> [n, channels].

    Tokens are positions too: [n, tokens, units] -> [n, units].
    """

  @abc.abstractmethod
  def tap(self, x: Any, name: str) -> Any:
    """Returns `x`, made available as an intermediate result called `name`."""

  @abc.abstractmethod
  def _conv2d(self, x: Any, kernel: Any, bias: Any, strides: int) -> Any:
    """The primitive of `conv2d`."""

  @abc.abstractmethod
  def _dense(self, x: Any, kernel: Any, bias: Any) -> Any:
    """The primitive of `dense`."""

  @abc.abstractmethod
  def _group_norm(self, x: Any, gamma: Any, beta: Any, groups: int) -> Any:
    """The primitive of `group_norm`."""

  @abc.abstractmethod
  def _batch_norm(self, x: Any, gamma: Any, beta: Any, mean: Any, square: Any) -> Any:
    """The primitive of `batch_norm`: mean and mean square are the population's."""

  @abc.abstractmethod
  def _layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
    """The primitive of `layer_norm`."""

  @abc.abstractmethod
  def _attention(
    self, x: Any, qkv: tuple[Any, Any], output: tuple[Any, Any], heads: int
  ) -> Any:
    """The primitive of `attention`: queries, keys, values side by side in `qkv`."""


class Operations(Primitives):
  """The operations that a network calls, made of primitives."""

  def conv2d(
    self,
    x: Any,
    name: str,
    *,
    filters: int,
    kernel_size: int,
    strides: int = 1,
    use_bias: bool = False,
    standardize: bool = False,
    gain: float = RELU_GAIN,
  ) -> Any:
    """Convolves with zero padding 'same'.

    Args:
      x: [n, height, width, channels].
      name: name of the operation.
      filters: output channels.
      kernel_size: height and width of the kernel.
      strides: step, in both directions.
      use_bias: whether a bias is added; a norm behind it makes it useless.
      standardize: whether the kernel is weight standardized before use.
      gain: the kernel is drawn with variance gain / fan_in.

    Returns:
      [n, ceil(height / strides), ceil(width / strides), filters].
    """
    shape = (kernel_size, kernel_size, self.shape(x)[-1], filters)
    with self.scope(name):
      kernel, bias = self._kernel_and_bias(shape, use_bias, standardize, gain)
      return self._conv2d(x, kernel, bias, strides)

  def dense(
    self,
    x: Any,
    name: str,
    *,
    units: int,
    use_bias: bool = True,
    standardize: bool = False,
    gain: float = RELU_GAIN,
  ) -> Any:
    """Multiplies the last axis by a matrix: [n, inputs] -> [n, units].

    Args:
      x: [n, inputs] or [n, tokens, inputs].
      name: name of the operation.
      units: outputs.
      use_bias: whether a bias is added.
      standardize: whether the kernel is weight standardized before use.
      gain: the kernel is drawn with variance gain / inputs.

    Returns:
      [n, units] or [n, tokens, units].
    """
    shape = (self.shape(x)[-1], units)
    with self.scope(name):
      kernel, bias = self._kernel_and_bias(shape, use_bias, standardize, gain)
      return self._dense(x, kernel, bias)

  def group_norm(self, x: Any, name: str, *, groups: int) -> Any:
    """Normalizes in `normalization.num_groups` groups, at most `groups`."""
    *positions, channels = self.shape(x)
    with self.scope(name):
      used = normalization.num_groups(
        channels, math.prod(positions), groups, self.path()
      )
      gamma = self.parameter('gamma', (channels,), parameters.Constant(1.0))
      beta = self.parameter('beta', (channels,), parameters.Constant(0.0))
      return self._group_norm(x, gamma, beta, used)

  def norm(self, x: Any, name: str, kind: str, groups: int) -> Any:
    """Applies 'group' norm with at most `groups` groups, 'batch' norm, or 'none'."""
    if kind == 'group':
      return self.group_norm(x, name, groups=groups)
    return self.batch_norm(x, name) if kind == 'batch' else x

  def batch_norm(self, x: Any, name: str) -> Any:
    """Normalizes each channel over the examples, with a scale and a shift.

    In training it uses the batch's own moments. In inference and in exports it uses
    population statistics, which no optimizer moves.
    """
    channels = self.shape(x)[-1]
    with self.scope(name):
      gamma = self.parameter('gamma', (channels,), parameters.Constant(1.0))
      beta = self.parameter('beta', (channels,), parameters.Constant(0.0))
      mean = self.statistic(
        normalization.POPULATION_MEAN, (channels,), parameters.Constant(0.0)
      )
      square = self.statistic(
        normalization.POPULATION_SQUARE, (channels,), parameters.Constant(1.0)
      )
      return self._batch_norm(x, gamma, beta, mean, square)

  def layer_norm(self, x: Any, name: str) -> Any:
    """Normalizes the last axis by itself, with a scale and a shift."""
    units = self.shape(x)[-1]
    with self.scope(name):
      normalization.num_groups(units, 1, 1, self.path())
      gamma = self.parameter('gamma', (units,), parameters.Constant(1.0))
      beta = self.parameter('beta', (units,), parameters.Constant(0.0))
      return self._layer_norm(x, gamma, beta)

  def attention(self, x: Any, name: str, *, heads: int) -> Any:
    """Multi-head self-attention: [n, tokens, units] -> [n, tokens, units].

    Args:
      x: [n, tokens, units].
      name: name of the operation.
      heads: number of heads, a divisor of units.

    Returns:
      The heads' softmax(q k^T / sqrt(units / heads)) v, side by side, times a matrix.
    """
    units = self.shape(x)[-1]
    if units % heads:
      raise ValueError(f'heads of {self.path(name)} must divide {units}, got {heads}')
    with self.scope(name):
      with self.scope('qkv'):
        qkv = self._kernel_and_bias((units, 3 * units), True, False, 1.0)
      with self.scope('output'):
        output = self._kernel_and_bias((units, units), True, False, 1.0)
      return self._attention(x, qkv, output, heads)

  def _kernel_and_bias(
    self, shape: tuple[int, ...], use_bias: bool, standardize: bool, gain: float
  ) -> tuple[Any, Any]:
    fan_in = math.prod(shape[:-1])
    if standardize and fan_in < 2:
      raise ValueError(
        f'weight standardization of {self.path()} needs at least 2 inputs per '
        f'output, got kernel shape {shape}'
      )
    transform = normalization.standardize if standardize else None
    kernel = self.parameter(
      'kernel', shape, parameters.scaled_normal(fan_in, gain), transform
    )
    bias = (
      self.parameter('bias', shape[-1:], parameters.Constant(0.0)) if use_bias else None
    )
    return kernel, bias
