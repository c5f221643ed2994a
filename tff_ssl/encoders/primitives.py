"""The primitives that each interpreter of networks gives a meaning (see `ops`)."""

import abc
from collections.abc import Iterator
import contextlib
from typing import Any

import numpy as np

from tff_ssl.encoders import parameters


class Primitives(abc.ABC):
  """Primitives on values whose nature only the interpreter knows.

  Values stand for [n, height, width, channels], [n, tokens, units] or [n, units].
  Parameter names are paths: those of the open scopes, the operation, the parameter.
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
      initializer: what it is before there is a population.
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
