"""A network: one definition, and the parameters it is computed with.

Parameters are in one flat `Params` mapping with names like
'stage1/block0/conv1/kernel'. An objective that holds several networks adds prefixes
('encoder/stage1/...', 'projector/...'). What is averaged, kept on a client or exported
is then a choice of names.

A network with batch norm has parameters and population statistics, which no optimizer
moves. `apply` (training) does not take the statistics; `infer` and `to_keras` need them
among the parameters. Without batch norm `infer` is `apply`.

`apply` can compute convolutions, products and maps in bfloat16 (`Network.precision`).
Parameters, norms, sums over positions and the output keep the parameters' type. `infer`
does so only where it is asked to: what is evaluated is what is exported. `moments` and
`to_keras` never use bfloat16.
"""

import collections
from collections.abc import Callable, Mapping, MutableMapping, Sequence
import dataclasses
import functools
import math
from typing import Any, Self, TypeAlias

import tensorflow as tf

from tff_ssl.encoders import checks
from tff_ssl.encoders import frozen_layers
from tff_ssl.encoders import interpreters
from tff_ssl.encoders import lora
from tff_ssl.encoders import network_ops
from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import convolution

Params: TypeAlias = 'collections.OrderedDict[str, tf.Tensor]'

# Bytes of one layer's maps that stay in a core's cache: one operation writes them, and
# the next reads them.
_CACHE_BYTES = 4 * 2**20
# As many of float32 fit in 2 GB.
_MOST_PARAMETERS = 500_000_000
# The precisions in which `apply` can compute.
FLOAT32, BFLOAT16 = 'float32', 'bfloat16'
PRECISIONS = (FLOAT32, BFLOAT16)
# The least and the greatest result of `batch_in_cache`. Standardizing and casting the
# weights, once for each batch, takes a larger part where convolutions are faster:
# ResNet-18 in bfloat16 takes 5 % less time for 32 images than for 16 and 16.
_BATCHES = {FLOAT32: (16, 256), BFLOAT16: (32, 256)}
# The field that an encoder usually reads.
IMAGE = 'image'


@dataclasses.dataclass(frozen=True)
class Network:
  """A pure function of parameters and a batch.

  Attributes:
    name: what the network is called in messages and exports.
    input_shape: shape of one example, (height, width, channels) or (units,).
    forward: the definition, a function of `Operations` and an input.
    config: the configuration of an encoder that `registry.rebuild` can build again.
    field: the field of an example that an encoder reads: 'image', or 'left', 'features'
      and so on. Networks behind an encoder read no field.
    precision: one of `PRECISIONS`; 'float32' means the parameters' own type.
    adapters: the trained part, beside a frozen base; None: all parameters are trained.
  """

  name: str
  input_shape: tuple[int, ...]
  forward: Callable[[network_ops.Operations, Any], Any]
  config: Any = None
  _: dataclasses.KW_ONLY
  field: str = IMAGE
  precision: str = FLOAT32
  adapters: lora.Adapters | frozen_layers.FrozenLayers | None = None

  def __post_init__(self) -> None:
    """Checks the precision, and that every layer can be built."""
    checks.one_of(f'precision of {self.name}', self.precision, PRECISIONS)
    self.specs  # noqa: B018

  @functools.cached_property
  def _description(self) -> tuple[interpreters.Describe, tuple[int, ...]]:
    description = interpreters.Describe()
    output_shape = self.forward(description, self.input_shape)
    # Checked before any of them is drawn.
    count = sum(math.prod(spec.shape) for spec in description.specs.values())
    if count > _MOST_PARAMETERS:
      raise ValueError(
        f'{self.name} would have {count:,} parameters; it can have at most '
        f'{_MOST_PARAMETERS:,}, because a message to a worker holds no more'
      )
    if self.adapters is not None:
      description.specs = self.adapters.specs(self.name, description.specs)
    return description, output_shape

  @property
  def plain(self) -> Self:
    """The same network without adapters, whose parameters `merged` returns."""
    return dataclasses.replace(self, adapters=None)

  def merged(self, params: Mapping[str, Any]) -> Params:
    """Returns the parameters of the network without adapters; see `lora.merge`."""
    base = {} if self.adapters is None else self.adapters.base
    return lora.merge(base, params)

  @property
  def specs(self) -> Mapping[str, parameters.ParameterSpec]:
    """The parameters' shapes and initializers by name."""
    return self._description[0].specs

  @property
  def statistics(self) -> Mapping[str, parameters.ParameterSpec]:
    """The specs of the population statistics; empty without batch norm."""
    return self._description[0].statistics

  @property
  def mixes_examples(self) -> bool:
    """Whether `apply` lets an example's output depend on the rest of the batch."""
    return bool(self.statistics)

  @property
  def tap_shapes(self) -> Mapping[str, tuple[int, ...]]:
    """The shape of one example of each tapped intermediate result, by name."""
    return self._description[0].taps

  @property
  def output_dim(self) -> int:
    """The size of the output's last axis."""
    return self._description[1][-1]

  @property
  def num_parameters(self) -> int:
    """The number of scalars in the parameters."""
    return sum(math.prod(spec.shape) for spec in self.specs.values())

  def batch_in_cache(self, views: int = 1) -> int:
    """Returns how many examples to compute at a time, for speed.

    More examples share the cost of an operation; fewer keep a layer's maps in the
    cache.

    Args:
      views: inputs of each example, such as the two augmented views of an image.

    Returns:
      Between 16, in bfloat16 32, and 256: 32 for two views of 32 x 32 pixels through a
      ResNet-8.
    """
    example = views * 4 * max(self._description[0].largest, 1)
    least, most = _BATCHES[self.precision]
    return min(max(_CACHE_BYTES // example, least), most)

  def chunk_in_cache(self) -> int | None:
    """Returns `batch_in_cache`; None if training must not split a batch."""
    return None if self.mixes_examples else self.batch_in_cache()

  def reading(self, field: str) -> Self:
    """Returns the same network as an encoder of another field of an example."""
    return dataclasses.replace(self, field=field)

  def with_precision(self, precision: str) -> Self:
    """Returns the same network, whose `apply` computes in another precision."""
    return dataclasses.replace(self, precision=precision)

  def for_inputs(self, shape: Sequence[int]) -> Self:
    """Returns the same network, with the same parameters, for inputs of another shape.

    A multi-crop objective encodes small crops with the encoder of large ones. A group
    norm may have fewer groups for small crops (see `group_normalization.num_groups`).

    Args:
      shape: of one example, such as (16, 16, 3).

    Returns:
      The network itself, if `shape` is its own.

    Raises:
      ValueError: the network cannot take such inputs with its parameters.
    """
    if tuple(shape) == self.input_shape:
      return self
    refusal = (
      f'{self.name} for inputs of shape {self.input_shape} cannot take inputs of '
      f'shape {tuple(shape)}'
    )
    try:
      other = dataclasses.replace(self, input_shape=tuple(shape))
      specs = {name: spec.shape for name, spec in other.specs.items()}
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
      raise ValueError(f'{refusal}: {error}') from error
    if specs != {name: spec.shape for name, spec in self.specs.items()}:
      raise ValueError(f'{refusal}: its parameters would have different shapes')
    return other

  def init(self, seed: Any, dtype: tf.DType = tf.float32) -> Params:
    """Draws parameters.

    Each parameter is drawn with a seed folded from `seed` and its own name, so adding a
    layer leaves the others unchanged. Two networks with equal names, such as the two
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
      raise ValueError(
        f'The shape of the seed of {self.name} is {seed.shape}; it must be [2].'
      )
    return parameters.draw(self.specs, seed, dtype)

  def init_statistics(self, dtype: tf.DType = tf.float32) -> Params:
    """Returns the population statistics before any example: mean 0, variance 1."""
    return collections.OrderedDict(
      (name, spec.initializer(None, spec.shape, dtype))
      for name, spec in self.statistics.items()
    )

  def apply(
    self,
    params: Mapping[str, Any],
    x: Any,
    taps: MutableMapping[str, tf.Tensor] | None = None,
    batches: int = 1,
  ) -> tf.Tensor:
    """Computes the output of a batch, as in training.

    Args:
      params: exactly the parameters of this network; if each client's gradient is
        wanted, all of them are `per_client_gradients.Parameter`.
      x: [n, *input_shape] of a floating type; n may be 0.
      taps: receives the intermediate results by name ('stage1', ...), if given.
      batches: how many batches of equal size `x` holds, one after another. Batch norm
        normalizes each by itself. The number also determines which rows are a client's.

    Returns:
      [n, output_dim], in the parameters' dtype, like the taps.

    Raises:
      ValueError: a parameter is missing, unknown or misshapen, or `x` does not fit.
    """
    checks.params(self.name, self.specs, params)
    maps = _maps(self.precision)
    return self._compute(params, x, taps, batches=batches, maps=maps)[0]

  def infer(
    self,
    params: Mapping[str, Any],
    x: Any,
    taps: MutableMapping[str, tf.Tensor] | None = None,
    precision: str = FLOAT32,
  ) -> tf.Tensor:
    """Computes the output of each example by itself, as in inference.

    Args:
      params: the parameters of this network and its population statistics.
      x: as in `apply`, like the rest.
      taps: receives the intermediate results.
      precision: one of `PRECISIONS`, whatever the network is trained in.

    Returns:
      [n, output_dim].

    Raises:
      ValueError: as `apply` does.
    """
    checks.params(self.name, {**self.specs, **self.statistics}, params)
    maps = _maps(precision)
    return self._compute(params, x, taps, training=False, maps=maps)[0]

  def moments(self, params: Mapping[str, Any], x: Any) -> Params:
    """Returns a batch's own moments by the names of the population statistics.

    Args:
      params: as in `apply`.
      x: as in `apply`, with n >= 1.
    """
    checks.params(self.name, self.specs, params)
    return self._compute(params, x, None)[1]

  def _compute(
    self,
    params: Mapping[str, Any],
    x: Any,
    taps: MutableMapping[str, tf.Tensor] | None,
    training: bool = True,
    batches: int = 1,
    maps: tf.DType | None = None,
  ) -> tuple[tf.Tensor, Params]:
    """Returns the output and the moments that normalized it in training.

    Args:
      params: as in `apply`, with statistics unless in training.
      x: as in `apply`, like the rest.
      taps: receives the intermediate results.
      training: whether batch norm normalizes by the batch.
      batches: how many batches `x` holds.
      maps: type of the maps; None: the parameters'.
    """
    x = checks.batch(self.name, self.input_shape, x)
    interpreter, values, cast = interpreters.Apply, dict(self.merged(params)), tf.cast
    if any(
      isinstance(value, per_client_gradients.Parameter) for value in values.values()
    ):
      interpreter = interpreters.ApplyPerClient
      cast = per_client_gradients.Parameter.cast
    else:
      values = {name: tf.convert_to_tensor(value) for name, value in values.items()}
    dtype = next(iter(values.values())).dtype if values else x.dtype
    x = tf.cast(x, maps or dtype)
    if maps is not None:
      # Parameters enter sums, which are computed in float32.
      values = {name: cast(value, tf.float32) for name, value in values.items()}
    tapped: dict[str, tf.Tensor] = {}
    apply = interpreter(values, tapped, training=training, batches=batches)
    if x.shape[0]:
      y = interpreters.known(self.forward(apply, x))
    else:
      padded = convolution.not_empty(x, batches if self.mixes_examples else 1)
      y = interpreters.known(self.forward(apply, padded))[: tf.shape(x)[0]]
      tapped = {name: tap[: tf.shape(x)[0]] for name, tap in tapped.items()}
    if taps is not None:
      taps.update({name: tf.cast(tap, dtype) for name, tap in tapped.items()})
    # A cast to a tensor's own type adds no operation.
    return tf.cast(y, dtype), apply.moments

  def to_keras(
    self, params: Mapping[str, Any], name: str | None = None
  ) -> tf.keras.Model:
    """Returns a Keras model made only of standard layers.

    `keras_archive.save` writes it for Keras 2 and 3. It computes what `infer` computes.
    Weight standardization is folded into its kernels. The tapped layers have the taps'
    names.

    Args:
      params: as in `infer`, with concrete values.
      name: name of the model, by default the network's.

    Returns:
      A functional model from [n, *input_shape] to [n, output_dim].

    Raises:
      ValueError: a parameter is missing, unknown or misshapen.
    """
    checks.params(self.name, {**self.specs, **self.statistics}, params)
    values = {
      key: tf.convert_to_tensor(value) for key, value in self.merged(params).items()
    }
    dtype = next(iter(values.values())).dtype if values else tf.float32
    inputs = tf.keras.Input(self.input_shape, name='input', dtype=dtype)
    outputs = self.forward(interpreters.ToKeras(values, dtype), inputs)
    return tf.keras.Model(inputs, outputs, name=name or self.name)


def _maps(precision: str) -> tf.DType | None:
  """Returns the type of maps in a precision; None: the parameters'."""
  return tf.bfloat16 if precision == BFLOAT16 else None
