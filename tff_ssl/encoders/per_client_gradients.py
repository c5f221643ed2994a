"""A gradient for each client of a joint batch.

The examples of K clients go through a network together, with the same parameters. The
gradient that TensorFlow derives is the sum over the clients. To clip each client's
gradient, one needs it separately. Here every parameter comes with K slots of its shape,
on which no output depends: wherever a parameter is used, each client's part of the
gradient flows into the client's own slot. Everything else is computed once for all
clients, forwards and backwards.
"""

from collections.abc import Callable
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import parameters


@dataclasses.dataclass(frozen=True)
class Parameter:
  """A parameter that K clients share, with a gradient for each client.

  Attributes:
    value: The value for all clients. No gradient flows into it.
    slots: [K, ...], zeros; the gradient of a sum of the clients' losses with respect to
      row k is the gradient of the loss of client k.
    examples: int32 scalar, n, the examples of each client. A network receives K n
      examples, client after client; with several views, K n of each view, one view
      after another.
    batches: The number of views.
  """

  value: Any
  slots: Any
  examples: Any
  batches: int = 1

  @property
  def shape(self) -> tf.TensorShape:
    """The value's shape."""
    return self.value.shape

  @property
  def dtype(self) -> tf.DType:
    """The value's dtype."""
    return self.value.dtype

  def cast(self, dtype: tf.DType) -> 'Parameter':
    """Returns the parameter in another type; the slots' gradients keep theirs."""
    value, slots = tf.cast(self.value, dtype), tf.cast(self.slots, dtype)
    return dataclasses.replace(self, value=value, slots=slots)

  def by_client(self, x: tf.Tensor) -> tf.Tensor:
    """Returns [K, batches n, ...] of [batches K n, ...]."""
    # Every size is given, so that a wrong number of rows is an error.
    clients = tf.shape(self.slots)[0]
    sizes = [self.batches, clients, self.examples]
    apart = tf.reshape(x, [*sizes, *x.shape[1:]])
    if self.batches > 1:
      apart = tf.transpose(apart, [1, 0, 2, *range(3, apart.shape.rank)])
    rows = [clients, self.batches * self.examples]
    return tf.ensure_shape(
      tf.reshape(apart, [*rows, *x.shape[1:]]), [None, None, *x.shape[1:]]
    )

  def rows(self, x: tf.Tensor, positions: int = 1) -> tf.Tensor:
    """Returns this parameter [units] once for each of `positions` of each example.

    Args:
      x: The examples, [batches K n, ...].
      positions: How many rows an example has, one after another.
    """
    count = tf.shape(x)[0] * positions

    @tf.custom_gradient
    def rows(slots: tf.Tensor) -> Any:
      def gradient(dy: tf.Tensor) -> tf.Tensor:
        of_examples = tf.reshape(dy, [-1, positions, dy.shape[-1]])
        return sums(self.by_client(of_examples))

      del slots
      units = self.value.shape[0]
      return tf.broadcast_to(self.value, [count, units]), gradient

    return rows(self.slots)

  def transformed(self, transform: parameters.Transform) -> 'Parameter':
    """Returns the transformed parameter, whose slots lead to this one's slots."""

    @tf.custom_gradient
    def through(slots: tf.Tensor) -> Any:
      def gradient(dslots: tf.Tensor) -> tf.Tensor:
        @tf.autograph.experimental.do_not_convert
        def of_client(dy: tf.Tensor) -> tf.Tensor:
          with tf.GradientTape() as tape:
            tape.watch(self.value)
            y = transform(self.value)
          return tape.gradient(y, self.value, output_gradients=dy)

        return tf.vectorized_map(of_client, dslots, fallback_to_while_loop=False)

      return tf.identity(slots), gradient

    value = transform(self.value)
    return dataclasses.replace(self, value=value, slots=through(self.slots))


def parameter(
  value: tf.Tensor, num_clients: tf.Tensor, examples: tf.Tensor
) -> Parameter:
  """Returns a parameter with slots.

  Args:
    value: Its value.
    num_clients: K, int32 scalar.
    examples: n of each client, int32 scalar.
  """
  shape = tf.concat([[num_clients], tf.shape(value)], axis=0)
  slots = tf.ensure_shape(tf.zeros(shape, value.dtype), [None, *value.shape])
  return Parameter(value, slots, examples)


def routed(
  forward: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
  x: tf.Tensor,
  parameter: Parameter,
  gradient_by_client: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
  """Returns an operation's result, whose gradient flows into `x` and into slots.

  Args:
    forward: (x, the parameter's value) -> the result.
    x: [batches K n, ...].
    parameter: The parameter.
    gradient_by_client: (x, gradient with respect to the result), each
      [K, batches n, ...] -> the slots' gradient [K, ...].
  """

  @tf.custom_gradient
  def run(x: tf.Tensor, slots: tf.Tensor) -> Any:
    with tf.GradientTape() as tape:
      tape.watch(x)
      y = forward(x, parameter.value)

    def gradient(dy: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      own = gradient_by_client(parameter.by_client(x), parameter.by_client(dy))
      # Where maps are bfloat16, so are products of matrices.
      return tape.gradient(y, x, output_gradients=dy), tf.cast(own, slots.dtype)

    return y, gradient

  return run(x, parameter.slots)


def products(inputs: list[tf.Tensor], outputs: tf.Tensor) -> tf.Tensor:
  """Returns each client's sums of products of inputs and outputs.

  Args:
    inputs: Each [K, rows, ..., a].
    outputs: [K, rows, ..., b].

  Returns:
    [K, sum of a, b].
  """
  clients = tf.shape(outputs)[0]

  def matrix(x: tf.Tensor) -> tf.Tensor:
    return tf.reshape(x, [clients, -1, x.shape[-1]])

  by_output = matrix(outputs)
  parts = [tf.linalg.matmul(matrix(x), by_output, transpose_a=True) for x in inputs]
  return tf.concat(parts, axis=1)


def sums(x: tf.Tensor) -> tf.Tensor:
  """Returns the sums over all axes but the first and the last, [K, units]."""
  return tf.reduce_sum(x, list(range(1, x.shape.rank - 1)))
