"""What a network's operations do: describe, compute, or emit Keras layers.

In computing, the maps have the type of the input. If that is bfloat16, which has 8
significant bits, TensorFlow's sums have 8 bits too: the mean of 65,536 numbers of 1.2
is 0.008, and the gradient of a bias over 16,384 rows is 256. Only kernels are therefore
cast to bfloat16, for convolutions and matrix products, which sum in float32. Everything
else that sums is computed in float32 (`operation.wide`): norms, biases (for their
gradients), softmax, means over positions. With other types nothing is cast.

A norm of maps in bfloat16 waits for the sum and the relu behind it (`Waiting`), which
are then computed in the same passes over the maps (`half_maps`).
"""

import collections
from collections.abc import Callable, Mapping, MutableMapping
import dataclasses
import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import network_ops
from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import elementwise
from tff_ssl.encoders.operations import operation as operation_lib


class Describe(network_ops.Operations):
  """Collects the parameters' specs. A value is the shape of one example.

  Attributes:
    specs: name -> spec of what is trained, in the order of use.
    statistics: name -> spec of population statistics.
    taps: name -> shape of one example.
    largest: scalars in the largest result of an operation, for one example.
  """

  def __init__(self) -> None:
    super().__init__()
    self.specs: parameters.Specs = {}
    self.statistics: parameters.Specs = {}
    self.taps: dict[str, tuple[int, ...]] = {}
    self.largest = 0

  def shape(self, x: tuple[int, ...]) -> tuple[int, ...]:
    """Returns `x`."""
    return x

  def tap(self, x: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Records the shape."""
    self.taps[self.path(name)] = x
    return x

  def apply(
    self, operation: operation_lib.Operation, name: str, *inputs: Any
  ) -> tuple[int, ...]:
    """Records the parameters' specs.

    Raises:
      ValueError: the operation cannot be built for such inputs, or its name is taken.
    """
    try:
      specs = operation.specs(inputs[0])
      result = operation.output_shape(*inputs)
    except ValueError as error:
      where = self.path(name or type(operation).__name__.lower())
      raise ValueError(f'{where}: {error}') from error
    for key, spec in specs.items():
      path = self.path(f'{name}/{key}')
      if path in self.specs:
        raise ValueError(
          f'The parameter {path!r} is there twice; names must be unique.'
        )
      (self.specs if spec.trained else self.statistics)[path] = spec
    self.largest = max(self.largest, math.prod(result))
    return result


class Waiting:
  """The result of a norm of maps in bfloat16, which is computed when it is needed.

  Attributes:
    shape: Its shape.
  """

  def __init__(
    self,
    compute: Callable[..., tf.Tensor],
    shape: tf.TensorShape,
    other: tf.Tensor | None = None,
  ) -> None:
    """Keeps what is to be done.

    Args:
      compute: (other, rectified) -> the result with `other` added, or its relu.
      shape: of the result.
      other: What is added; None: nothing.
    """
    self.shape = shape
    self._compute = compute
    self._other = other
    self._values: dict[bool, tf.Tensor] = {}

  def value(self, rectified: bool = False) -> tf.Tensor:
    """Returns the result, or its relu."""
    if rectified not in self._values:
      self._values[rectified] = self._compute(other=self._other, rectified=rectified)
    return self._values[rectified]

  def plus(self, other: tf.Tensor) -> 'tf.Tensor | Waiting':
    """Returns the sum with `other`, which waits too if it is the first."""
    if self._other is not None:
      return self.value() + other
    return Waiting(self._compute, self.shape, other)


def known(x: tf.Tensor | Waiting) -> tf.Tensor:
  """Returns a result, computed now if it waits."""
  return x.value() if isinstance(x, Waiting) else x


class Apply(network_ops.Operations):
  """Computes with given parameters. A value is a tensor.

  Attributes:
    moments: in training, the batch's own, by the names of the population statistics.
  """

  def __init__(
    self,
    params: Mapping[str, Any],
    taps: MutableMapping[str, tf.Tensor],
    *,
    training: bool = True,
    batches: int = 1,
  ) -> None:
    """Builds the interpreter.

    Args:
      params: name -> value, including population statistics unless in training.
      taps: receives the tapped tensors by name.
      training: whether batch norm normalizes by the batch, not by the population.
      batches: how many batches the input holds, one after another, in training.
    """
    super().__init__()
    self.moments: collections.OrderedDict[str, tf.Tensor] = collections.OrderedDict()
    self._params = params
    self._taps = taps
    self._training = training
    self._batches = batches

  def shape(self, x: tf.Tensor) -> tuple[int, ...]:
    """Returns the static shape after the batch axis."""
    return tuple(x.shape[1:])

  def tap(self, x: tf.Tensor, name: str) -> tf.Tensor:
    """Hands `x` to the caller."""
    self._taps[self.path(name)] = x = known(x)
    return x

  def apply(
    self, operation: operation_lib.Operation, name: str, *inputs: Any
  ) -> tf.Tensor | Waiting:
    """Computes the result, or lets it wait for what is behind it."""
    first, *others = inputs
    if isinstance(first, Waiting) and isinstance(operation, elementwise.Relu):
      return first.value(rectified=True)
    others = [known(other) for other in others]
    if isinstance(first, Waiting) and isinstance(operation, elementwise.Add):
      return first.plus(*others)
    inputs = (known(first), *others)
    specs = operation.specs(self.shape(inputs[0]))
    values = []
    statistics = []
    for key, spec in specs.items():
      path = self.path(f'{name}/{key}')
      if self._training and not spec.trained:
        statistics.append(path)
      else:
        values.append(self._value(self._params[path], spec.transform))

    def compute(**behind: Any) -> tf.Tensor:
      if not self._training:
        return operation.compute(*inputs, *values, **behind)
      y, moments = self._train(operation, (*inputs, *values), **behind)
      self.moments.update(zip(statistics, moments, strict=True))
      return y

    x = inputs[0]
    if operation.waits and x.dtype == tf.bfloat16 and x.shape.rank == 4:
      return Waiting(compute, x.shape)
    return compute()

  def _value(self, value: Any, transform: parameters.Transform | None) -> Any:
    return value if transform is None else transform(value)

  def _train(
    self, operation: operation_lib.Operation, args: tuple[Any, ...], **behind: Any
  ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    return operation.train(*args, batches=self._batches, **behind)


class ApplyPerClient(Apply):
  """Computes with a `per_client_gradients.Parameter` for each parameter, in training.

  In networks with batch norm, a client has no gradient of its own.
  """

  def apply(
    self, operation: operation_lib.Operation, name: str, *inputs: tf.Tensor
  ) -> tf.Tensor:
    """Computes the result.

    Raises:
      ValueError: the operation is batch norm.
    """
    specs = operation.specs(self.shape(inputs[0]))
    if not all(spec.trained for spec in specs.values()):
      raise ValueError(
        f'{self.path(name)} is batch norm; for each client to have a gradient of its '
        'own, the norms of a network must not depend on the batch.'
      )
    return super().apply(operation, name, *inputs)

  def _value(
    self,
    value: per_client_gradients.Parameter,
    transform: parameters.Transform | None,
  ) -> per_client_gradients.Parameter:
    value = dataclasses.replace(value, batches=self._batches)
    return value if transform is None else value.transformed(transform)

  def _train(
    self, operation: operation_lib.Operation, args: tuple[Any, ...], **behind: Any
  ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    return operation.per_client(*args, **behind), ()


class ToKeras(network_ops.Operations):
  """Emits standard Keras layers that hold given values. A value is a Keras tensor.

  Transforms are applied once: the layers hold standardized kernels, and training them
  further means training without weight standardization.
  """

  def __init__(self, params: Mapping[str, Any], dtype: tf.DType) -> None:
    """Builds the interpreter.

    Args:
      params: name -> value, with concrete values (not symbolic).
      dtype: of the layers.
    """
    super().__init__()
    self._params = params
    self._dtype = dtype
    self._num_unnamed = 0

  def shape(self, x: Any) -> tuple[int, ...]:
    """Returns the static shape after the batch axis."""
    return tuple(x.shape[1:])

  def tap(self, x: Any, name: str) -> Any:
    """Emits an identity with the tap's name, so that `get_layer` finds it."""
    return self._layer(name, tf.keras.layers.Activation, activation='linear')(x)

  def apply(self, operation: operation_lib.Operation, name: str, *inputs: Any) -> Any:
    """Emits the operation's layers."""
    values = []
    for key, spec in operation.specs(self.shape(inputs[0])).items():
      value = self._params[self.path(f'{name}/{key}')]
      values.append(np.asarray(spec.transform(value) if spec.transform else value))
    make = functools.partial(self._layer, name)
    return operation.emit_keras(make, self.shape(inputs[0]), values, *inputs)

  def _layer(self, name: str, kind: Any, part: str = '', **options: Any) -> Any:
    if not name:
      # Counted here: Keras counts over the whole process, so that two exports of one
      # network would differ.
      self._num_unnamed += 1
      name = f'{kind.__name__.lower()}_{self._num_unnamed}'
    else:
      name = self.path(f'{name}/{part}' if part else name).replace('/', '_')
    return kind(name=name, dtype=self._dtype.name, **options)
