"""A network: one definition, and the parameters it is computed with.

Parameters live in one flat `Params` mapping with names like
'stage1/block0/conv1/kernel', which an objective that holds several networks nests by
prefixes ('encoder/stage1/...', 'projector/...'): what is averaged, kept on a client or
exported is then a choice of names.
"""

import collections
from collections.abc import Callable, Mapping, MutableMapping
import dataclasses
import functools
import math
from typing import Any, TypeAlias
import zlib

import tensorflow as tf

from tff_ssl.encoders import interpreters
from tff_ssl.encoders import keras_export
from tff_ssl.encoders import ops
from tff_ssl.encoders import parameters

Params: TypeAlias = 'collections.OrderedDict[str, tf.Tensor]'


@dataclasses.dataclass(frozen=True)
class Network:
  """A pure function of parameters and a batch.

  Attributes:
    name: what the network is called in messages and exports.
    input_shape: shape of one example, (height, width, channels) or (units,).
    forward: the definition, a function of `Operations` and an input.
  """

  name: str
  input_shape: tuple[int, ...]
  forward: Callable[[ops.Operations, Any], Any]

  @functools.cached_property
  def _description(self) -> tuple[interpreters.Describe, tuple[int, ...]]:
    describe = interpreters.Describe()
    return describe, self.forward(describe, self.input_shape)

  @property
  def specs(self) -> Mapping[str, parameters.ParameterSpec]:
    """The parameters' shapes and initializers by name."""
    return self._description[0].specs

  @property
  def tap_shapes(self) -> Mapping[str, tuple[int, ...]]:
    """The shape of one example of each tapped intermediate result, by name."""
    return self._description[0].taps

  @property
  def output_dim(self) -> int:
    """The last axis of the output."""
    return self._description[1][-1]

  @property
  def num_parameters(self) -> int:
    """The number of scalars in the parameters."""
    return sum(math.prod(spec.shape) for spec in self.specs.values())

  def init(self, seed: Any, dtype: tf.DType = tf.float32) -> Params:
    """Draws parameters.

    Each is drawn with a seed folded from `seed` and its own name, so a layer that is
    added leaves the others as they were. Two networks with equal names, as the two
    towers of a dual encoder, need different seeds to differ.

    Args:
      seed: int32[2]; may be a tensor of a graph.
      dtype: a floating type. float64 values are the float32 ones, widened.

    Returns:
      name -> tensor.

    Raises:
      ValueError: `seed` is not of shape [2].
    """
    seed = tf.convert_to_tensor(seed, tf.int32)
    if seed.shape != (2,):
      raise ValueError(f'seed of {self.name} must have shape [2], got {seed.shape}')
    params = collections.OrderedDict()
    for name, spec in self.specs.items():
      own_seed = tf.random.experimental.stateless_fold_in(
        seed, zlib.crc32(name.encode()) & 0x7FFFFFFF, alg='philox'
      )
      params[name] = spec.initializer(own_seed, spec.shape, dtype)
    return params

  def apply(
    self,
    params: Mapping[str, Any],
    x: Any,
    taps: MutableMapping[str, tf.Tensor] | None = None,
  ) -> tf.Tensor:
    """Computes the output of a batch in the parameters' dtype.

    Args:
      params: exactly the parameters of this network.
      x: [n, *input_shape] of a floating type; n may be 0.
      taps: receives the intermediate results by name ('stage1', ...), if given.

    Returns:
      [n, output_dim].

    Raises:
      ValueError: a parameter is missing, unknown or misshapen, or `x` does not fit.
    """
    self._check_params(params)
    x = self._check_input(x)
    values = {name: tf.convert_to_tensor(value) for name, value in params.items()}
    if values:
      x = tf.cast(x, next(iter(values.values())).dtype)
    tapped: dict[str, tf.Tensor] = {}
    compute = interpreters.Apply(values, tapped)
    if x.shape[0]:
      y = self.forward(compute, x)
    else:
      y = self.forward(compute, _at_least_one(x))[: tf.shape(x)[0]]
      tapped = {name: tap[: tf.shape(x)[0]] for name, tap in tapped.items()}
    if taps is not None:
      taps.update(tapped)
    return y

  def to_keras(
    self, params: Mapping[str, Any], name: str | None = None
  ) -> tf.keras.Model:
    """Returns a Keras model of standard layers alone.

    It is saved and loaded with TensorFlow only, and computes what `apply` computes.
    Weight standardization is folded into its kernels. The tapped layers bear the taps'
    names.

    Args:
      params: exactly the parameters of this network, with values at hand.
      name: name of the model, by default the network's.

    Returns:
      A functional model from [n, *input_shape] to [n, output_dim].

    Raises:
      ValueError: a parameter is missing, unknown or misshapen.
    """
    self._check_params(params)
    values = {key: tf.convert_to_tensor(value) for key, value in params.items()}
    dtype = next(iter(values.values())).dtype if values else tf.float32
    inputs = tf.keras.Input(self.input_shape, name='input', dtype=dtype)
    outputs = self.forward(keras_export.ToKeras(values, dtype), inputs)
    return tf.keras.Model(inputs, outputs, name=name or self.name)

  def _check_params(self, params: Mapping[str, Any]) -> None:
    missing = [name for name in self.specs if name not in params]
    if missing:
      raise ValueError(
        f'params of {self.name} must hold all {len(self.specs)} parameters, '
        f'got none for {_listed(missing)}'
      )
    unknown = [name for name in params if name not in self.specs]
    if unknown:
      raise ValueError(
        f'params of {self.name} must hold its {len(self.specs)} parameters only, '
        f'got also {_listed(unknown)}'
      )
    for name, spec in self.specs.items():
      shape = tf.TensorShape(params[name].shape)
      if not shape.is_compatible_with(spec.shape):
        raise ValueError(
          f'parameter {name} of {self.name} must have shape {spec.shape}, got {shape}'
        )

  def _check_input(self, x: Any) -> tf.Tensor:
    x = tf.convert_to_tensor(x)
    expected = tf.TensorShape([None, *self.input_shape])
    if not x.dtype.is_floating:
      raise ValueError(
        f'input of {self.name} must be floating, got {x.dtype.name} (images are scaled '
        'by augmentation)'
      )
    if not x.shape.is_compatible_with(expected):
      raise ValueError(f'input of {self.name} must be {expected}, got {x.shape}')
    return tf.ensure_shape(x, expected) if not x.shape[1:].is_fully_defined() else x


def with_prefix(params: Mapping[str, Any], prefix: str) -> Params:
  """Returns the parameters under the names 'prefix/name'."""
  return collections.OrderedDict(
    (f'{prefix}/{name}', value) for name, value in params.items()
  )


def select(params: Mapping[str, Any], prefix: str) -> Params:
  """Returns the parameters named 'prefix/name' under 'name': undoes `with_prefix`.

  None is a valid answer (the identity has no parameters); where some were expected,
  `Network.apply` names the missing ones.
  """
  start = f'{prefix}/'
  return collections.OrderedDict(
    (name.removeprefix(start), value)
    for name, value in params.items()
    if name.startswith(start)
  )


def _at_least_one(x: tf.Tensor) -> tf.Tensor:
  """Returns `x`, with one example of zeros if it has none.

  oneDNN's convolution (TensorFlow 2.14) gives an empty batch the shape of the input
  instead of the output, on which the next layer fails: a client without examples would
  end the round. Batches of a size known when the graph is made do not come here.
  """
  missing = tf.cast(tf.equal(tf.shape(x)[0], 0), tf.int32)
  padded = tf.pad(x, [[0, missing]] + [[0, 0]] * (x.shape.rank - 1))
  return tf.ensure_shape(padded, [None, *x.shape[1:]])


def _listed(names: list[str], limit: int = 3) -> str:
  """Returns the first names and how many more there are."""
  more = len(names) - limit
  return ', '.join(names[:limit]) + (f' and {more} more' if more > 0 else '')
