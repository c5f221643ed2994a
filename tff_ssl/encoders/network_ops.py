"""The operations that a network calls; interpreters define what these do.

A network is one function `forward(ops, x)`. It never touches a tensor: it calls methods
of an `Operations`, such as `ops.conv2d(x, 'conv1', filters=16, kernel_size=3)`. An
operation is one class in `operations/` with all its meanings, and one line here. Each
interpreter (`interpreters`) uses one of the meanings: to list the parameters, to
compute, to compute with a gradient for each client, to emit Keras layers.
"""

import abc
from collections.abc import Callable, Iterator
import contextlib
from typing import Any, Concatenate, ParamSpec

from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.encoders.operations import convolution
from tff_ssl.encoders.operations import elementwise
from tff_ssl.encoders.operations import group_normalization
from tff_ssl.encoders.operations import linear
from tff_ssl.encoders.operations import operation as operation_lib
from tff_ssl.encoders.operations import pooling
from tff_ssl.encoders.operations import tokens as tokens_lib

_Options = ParamSpec('_Options')


def _named(
  build: Callable[_Options, operation_lib.Operation],
) -> Callable[Concatenate['Operations', Any, str, _Options], Any]:
  """Returns the method (x, name, **options) that applies an operation."""

  def method(ops: 'Operations', x: Any, name: str, *args: Any, **options: Any) -> Any:
    return ops.apply(build(*args, **options), name, x)

  return method


def _unnamed(
  build: Callable[_Options, operation_lib.Operation],
) -> Callable[Concatenate['Operations', Any, _Options], Any]:
  """Returns the method (x, **options) that applies an operation without parameters."""

  def method(ops: 'Operations', x: Any, *args: Any, **options: Any) -> Any:
    return ops.apply(build(*args, **options), '', x)

  return method


class Operations(abc.ABC):
  """Operations on values whose nature only the interpreter knows.

  Values stand for [n, height, width, channels], [n, tokens, units] or [n, units].
  Parameter names are paths of the open scopes, the operation and the parameter.
  """

  def __init__(self) -> None:
    self._scopes: list[str] = []

  # The classes say what the methods do, and which options they have.
  conv2d = _named(convolution.Conv2d)
  depthwise_conv2d = _named(convolution.DepthwiseConv2d)
  dense = _named(linear.Dense)
  attention = _named(linear.Attention)
  group_norm = _named(group_normalization.GroupNorm)
  layer_norm = _named(group_normalization.LayerNorm)
  batch_norm = _named(batch_normalization.BatchNorm)
  layer_scale = _named(elementwise.LayerScale)
  offset = _named(tokens_lib.Offset)
  positions = _named(tokens_lib.Positions)
  prefix = _named(tokens_lib.Prefix)
  relu = _unnamed(elementwise.Relu)
  relu6 = _unnamed(elementwise.Relu6)
  gelu = _unnamed(elementwise.Gelu)
  rescale = _unnamed(elementwise.Rescale)
  repeat_channels = _unnamed(elementwise.RepeatChannels)
  tokens = _unnamed(tokens_lib.Tokens)
  crop_tokens = _unnamed(tokens_lib.CropTokens)
  zero_pad = _unnamed(convolution.ZeroPad)
  max_pool = _unnamed(pooling.MaxPool)
  average_pool = _unnamed(pooling.AveragePool)
  global_average_pool = _unnamed(pooling.GlobalAveragePool)

  def add(self, x: Any, y: Any) -> Any:
    """Returns the sum of two values of one shape."""
    return self.apply(elementwise.Add(), '', x, y)

  def norm(
    self, x: Any, name: str, kind: str, groups: int | None, **of_batch: float
  ) -> Any:
    """Applies 'group' norm of groups as in `num_groups`, 'batch' norm, or 'none'."""
    if kind == 'group':
      return self.group_norm(x, name, groups=groups)
    return self.batch_norm(x, name, **of_batch) if kind == 'batch' else x

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
    return '/'.join(part for part in (*self._scopes, name) if part)

  @abc.abstractmethod
  def shape(self, x: Any) -> tuple[int, ...]:
    """Returns the static shape of one example of `x`, without the batch axis."""

  @abc.abstractmethod
  def tap(self, x: Any, name: str) -> Any:
    """Returns `x`, made available as an intermediate result called `name`."""

  @abc.abstractmethod
  def apply(self, operation: operation_lib.Operation, name: str, *inputs: Any) -> Any:
    """Returns an operation's result.

    Args:
      operation: the operation with its options.
      name: its name under the open scopes; '' for one without parameters.
      *inputs: its inputs.
    """
