"""What TFLite needs of a model of Keras: other operations in some of its layers."""

from collections.abc import Callable, Iterator
import contextlib

import tensorflow as tf

from tff_ssl.encoders.operations import tokens

# The equation of the layer that a layer scale of tokens is.
_SCALE = 'nad,d->nad'


@contextlib.contextmanager
def simplified(model: tf.keras.Model) -> Iterator[None]:
  """Makes a model's layers compute the same in operations that TFLite takes, meanwhile.

  From Keras's own layers TFLite's converter makes operations that TFLite refuses: from
  an offset or a layer scale of tokens a product of matrices, and from group norm, which
  has a mask of ones, means that do not broadcast.
  """
  simpler = [
    (layer, call) for layer in model.submodules if (call := _simpler_call(layer))
  ]
  for layer, call in simpler:
    layer.call = call
  try:
    yield
  finally:
    # Later exports use the layers' own calls again, those of their class.
    for layer, _ in simpler:
      del layer.call


def _simpler_call(layer: tf.Module) -> Callable[[tf.Tensor], tf.Tensor] | None:
  """Returns a layer's computation in TFLite operations; None: it can stay as it is."""
  if isinstance(layer, tf.keras.layers.GroupNormalization):
    return lambda x: _group_norm(
      x, layer.gamma, layer.beta, layer.groups, layer.epsilon
    )
  if getattr(layer, 'equation', None) == tokens.ADDITION:
    return lambda x: x * layer.kernel + layer.bias
  if getattr(layer, 'equation', None) == _SCALE:
    return lambda x: x * layer.kernel
  return None


def _group_norm(
  x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, groups: int, epsilon: float
) -> tf.Tensor:
  """Computes group norm in operations of TFLite, summing one axis at a time.

  TFLite reduces by adding values one by one to a single number, in float32. Over all
  positions of a 64 x 64 map this rounds 4,096 times. If the values hardly differ, as on
  an image of one colour, the roundings go the same way and are a good part of the
  variance: features of a black image were 8e-5 from those in float64, where
  TensorFlow's are 1e-5 from them. Summing one axis after the other rounds 64 and 64
  times, and the features are 2e-6 from those in float64.

  Args:
    x: [n, ..., channels].
    gamma: [channels].
    beta: [channels].
    groups: A divisor of channels.
    epsilon: Added to the variance.

  Returns:
    [n, ..., channels], (x - mean) / sqrt(variance + epsilon) * gamma + beta.
  """
  channels = x.shape[-1]
  grouped = [groups, channels // groups]

  def of_groups(values: tf.Tensor) -> tf.Tensor:
    """Returns, for each channel, the mean over positions and its group's channels."""
    for _ in range(x.shape.rank - 2):
      values = tf.reduce_mean(values, 1)
    means = tf.reduce_mean(tf.reshape(values, [-1, *grouped]), 2, keepdims=True)
    each = means * tf.ones(grouped, x.dtype)
    return tf.reshape(each, [-1, *[1] * (x.shape.rank - 2), channels])

  centred = x - of_groups(x)
  variance = of_groups(tf.square(centred))
  return centred * (tf.math.rsqrt(variance + epsilon) * gamma) + beta
