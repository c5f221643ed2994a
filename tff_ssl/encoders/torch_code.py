"""A network's definition as readable Python for PyTorch.

The interpreter `ToTorch` runs a network's `forward`. Each scope of operations becomes a
class of PyTorch, and equal scopes, such as the blocks of a transformer, become one
class. Values are those of the Keras model of the same network, so that both compute
with the same numbers.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import string
from typing import Any

import numpy as np

from tff_ssl.encoders import network_ops
from tff_ssl.encoders.operations import operation as operation_lib

# Names of values in the code, beginning with that of an input.
_LETTERS = 'xyz' + string.ascii_lowercase[:23]


@dataclasses.dataclass(frozen=True)
class TorchClass:
  """A class of PyTorch's modules.

  Attributes:
    name: Its name.
    modules: Lines that make its modules and parameters.
    inputs: Names of the inputs.
    lines: Lines that compute the result.
    result: Name of the result.
    paths: The modules of this class, from the network's on.
  """

  name: str
  modules: tuple[str, ...]
  inputs: tuple[str, ...]
  lines: tuple[str, ...]
  result: str
  paths: list[str]


@dataclasses.dataclass(frozen=True, eq=False)
class _Value:
  """A value of the code; `shape` is that of one example, (height, width, channels)."""

  shape: tuple[int, ...]


class _Body:
  """The code of an open scope: what it takes, its lines, and its modules."""

  def __init__(self) -> None:
    self.inputs: list[_Value] = []
    self.modules: list[str] = []
    self._known: set[_Value] = set()
    # (result, call with places for the inputs, inputs).
    self._lines: list[tuple[_Value, str, tuple[_Value, ...]]] = []

  @property
  def result(self) -> _Value:
    """The value of the last line."""
    return self._lines[-1][0]

  def add(self, result: _Value, call: str, inputs: tuple[_Value, ...]) -> None:
    """Adds a line; what no earlier line has made is an input of the scope."""
    for each in inputs:
      if each not in self._known:
        self.inputs.append(each)
    self._known.update(inputs, [result])
    self._lines.append((result, call, inputs))

  def code(self) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Returns the names of the inputs, the lines, and the name of the result."""
    last = {value: index for index, line in enumerate(self._lines) for value in line[2]}
    names = dict(zip(self.inputs, _LETTERS, strict=False))
    inputs = tuple(names.values())
    lines = []
    for index, (result, call, values) in enumerate(self._lines):
      right = call.format(*(names[value] for value in values))
      # The name of a value that no later line needs.
      for value in values:
        if last[value] == index:
          names[result] = names.pop(value)
          break
      else:
        taken = names.values()
        names[result] = next(letter for letter in _LETTERS if letter not in taken)
      lines.append(f'{names[result]} = {right}')
    return inputs, tuple(lines), names[self.result]


class ToTorch(network_ops.Operations):
  """Writes code for PyTorch. A value is a `_Value`.

  Attributes:
    classes: Classes in an order in which each comes after those it uses.
    state: Name -> array, as in the `state_dict` of the network's module.
  """

  def __init__(self, weights: Callable[[str], list[np.ndarray]]) -> None:
    """Builds the interpreter.

    Args:
      weights: The weights of a Keras layer of the network by the layer's name.
    """
    super().__init__()
    self.classes: list[TorchClass] = []
    self.state: dict[str, np.ndarray] = {}
    self._weights = weights
    self._bodies: list[_Body] = []

  def network(self, forward: Callable[[Any, Any], Any], shape: Any, name: str) -> None:
    """Writes a whole network, whose class is the last.

    Args:
      forward: See `network.Network`.
      shape: Shape of one example.
      name: Name of its class.

    Raises:
      ValueError: The network cannot be written.
    """
    x = _Value(tuple(shape))
    self._bodies.append(_Body())
    y = forward(self, x)
    body = self._bodies.pop()
    if body.inputs != [x] or y is not body.result:
      raise ValueError(
        f'A scope of {name} has more than one result; it must have one, which is that '
        'of its last operation.'
      )
    self._close(body, name, '')

  @contextlib.contextmanager
  def scope(self, name: str) -> Iterator[None]:
    """Writes the block's operations as a class, and a call of it."""
    with super().scope(name):
      self._bodies.append(_Body())
      yield
      body = self._bodies.pop()
      path = self._path('')
    called = self._close(body, path.title().replace('.', ''), path)
    places = ', '.join(f'{{{index}}}' for index in range(len(body.inputs)))
    outer = self._bodies[-1]
    outer.modules.append(f'self.{name} = {called}()')
    outer.add(body.result, f'self.{name}({places})', tuple(body.inputs))

  def shape(self, x: _Value) -> tuple[int, ...]:
    """Returns the shape of one example, with the channels behind."""
    return x.shape

  def tap(self, x: _Value, name: str) -> _Value:
    """Returns `x`: it is the result of the module of its scope."""
    del name
    return x

  def apply(
    self, operation: operation_lib.Operation, name: str, *inputs: _Value
  ) -> _Value:
    """Writes the operation."""
    shapes = [each.shape for each in inputs]

    def weights(part: str) -> list[np.ndarray]:
      layer = self.path(f'{name}/{part}' if part else name)
      return self._weights(layer.replace('/', '_'))

    code = operation.torch(shapes[0], weights)
    places = [f'{{{index}}}' for index in range(len(inputs))]
    body = self._bodies[-1]
    if code.module:
      body.modules.append(f'self.{name} = {code.module}')
    result = _Value(operation.output_shape(*shapes))
    body.add(result, code.call.format(*places, module=f'self.{name}'), inputs)
    for key, value in code.state.items():
      self.state[self._path(f'{name}.{key}' if key else name)] = value
    return result

  def _path(self, name: str) -> str:
    return self.path(name).replace('/', '.')

  def _close(self, body: _Body, name: str, path: str) -> str:
    """Returns the name of the class of a scope; an equal one is used again."""
    inputs, lines, result = body.code()
    modules = tuple(body.modules)
    for each in self.classes:
      if (each.modules, each.inputs, each.lines) == (modules, inputs, lines):
        each.paths.append(path)
        return each.name
    self.classes.append(TorchClass(name, modules, inputs, lines, result, [path]))
    return name
