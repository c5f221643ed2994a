"""Specifications of parameters: shapes and initializers, before there are values."""

import collections
from collections.abc import Callable, Mapping
import dataclasses
import math
from typing import Any, TypeAlias
import zlib

import numpy as np
import tensorflow as tf

# (seed int32[2], None for a `Constant`, shape, dtype) -> tensor.
Initializer: TypeAlias = Callable[[Any, tuple[int, ...], tf.DType], tf.Tensor]

# From the value that is stored to the value that is computed with.
Transform: TypeAlias = Callable[[Any], Any]


# The shape of one example, or of a parameter.
Shape: TypeAlias = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class ParameterSpec:
  """What a parameter is, before it has a value.

  Attributes:
    shape: its shape.
    initializer: how it is drawn.
    transform: applied to the value before an operation has it.
    trained: False for a population statistic, which no optimizer moves.
  """

  shape: tuple[int, ...]
  initializer: Initializer
  transform: Transform | None = None
  trained: bool = True


# Specs by name.
Specs: TypeAlias = dict[str, ParameterSpec]


def scaled_normal(fan_in: int, gain: float) -> Initializer:
  """Returns an initializer drawing from a normal of variance gain / fan_in."""

  def initialize(seed: tf.Tensor, shape: tuple[int, ...], dtype: tf.DType) -> tf.Tensor:
    # Drawn in float32 for any dtype: float64 then starts at the same point. Philox
    # draws them whatever the device: this operation always uses it.
    # `tf.random.stateless_normal` with alg='philox' gives the same numbers with twenty
    # operations.
    values = tf.raw_ops.StatelessRandomNormal(shape=shape, seed=seed)
    return tf.cast(values * math.sqrt(gain / fan_in), dtype)

  return initialize


def of_value(value: np.ndarray) -> Initializer:
  """Returns an initializer that draws nothing: the parameter begins as `value`."""

  def initialize(seed: Any, shape: tuple[int, ...], dtype: tf.DType) -> tf.Tensor:
    del seed
    return tf.constant(value, dtype, shape)

  return initialize


@dataclasses.dataclass(frozen=True)
class Constant:
  """An initializer that draws nothing, and so needs no seed.

  Attributes:
    value: Value of each entry.
  """

  value: float

  def __call__(
    self, seed: tf.Tensor | None, shape: tuple[int, ...], dtype: tf.DType
  ) -> tf.Tensor:
    """Returns a tensor of `shape`, filled with the value."""
    del seed
    return tf.fill(shape, tf.constant(self.value, dtype))


def draw(
  specs: Mapping[str, ParameterSpec], seed: tf.Tensor, dtype: tf.DType
) -> 'collections.OrderedDict[str, tf.Tensor]':
  """Draws parameters, each with a seed folded from `seed` and its own name.

  Args:
    specs: Their specs by name.
    seed: int32 [2].
    dtype: A floating type.
  """
  # As in `tf.random.experimental.stateless_fold_in` with alg='philox': the first
  # number depends only on the seed and is the same for all names, the second is the
  # name's.
  (first,) = tf.unstack(
    tf.raw_ops.StatelessRandomUniformFullInt(shape=[1], seed=seed, dtype=tf.int32)
  )
  params = collections.OrderedDict()
  for name, spec in specs.items():
    own_seed = None
    # A constant needs no seed.
    if not isinstance(spec.initializer, Constant):
      own_seed = tf.stack([first, zlib.crc32(name.encode()) & 0x7FFFFFFF])
    params[name] = spec.initializer(own_seed, spec.shape, dtype)
  return params
