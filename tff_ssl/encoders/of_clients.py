"""The interpreter that computes a gradient for each client of a joint batch.

The examples of K clients go through a network together, with the same parameters. The
gradient that TensorFlow derives is the sum over the clients. To clip each client's
gradient, one needs it separately. Here every parameter comes with K slots of its shape,
on which no output depends: wherever a parameter is used, each client's part of the
gradient flows into the client's own slot. Everything else is computed as by
`compute.Apply`, once for all clients, forwards and backwards.
"""

from collections.abc import Callable
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import compute
from tff_ssl.encoders import normalization
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
      after another, as `batches` says.
  """

  value: Any
  slots: Any
  examples: Any

  @property
  def shape(self) -> tf.TensorShape:
    """The value's shape."""
    return self.value.shape

  @property
  def dtype(self) -> tf.DType:
    """The value's dtype."""
    return self.value.dtype


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


class Apply(compute.Apply):
  """Computes with a `Parameter` in place of each parameter, in training.

  In networks with batch norm, a client has no gradient of its own.
  """

  def parameter(
    self,
    name: str,
    shape: tuple[int, ...],
    initializer: parameters.Initializer,
    transform: parameters.Transform | None = None,
  ) -> Any:
    """Looks the parameter up."""
    found = super().parameter(name, shape, initializer)
    return found if transform is None else _transformed(found, transform)

  def _conv2d(self, x: tf.Tensor, kernel: Any, bias: Any, strides: int) -> tf.Tensor:
    size = kernel.shape[0]

    def of_clients(x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
      found = _products(
        _patches(self._by_client(x, kernel), size, strides, dy.shape[1:3]),
        self._by_client(dy, kernel),
      )
      return tf.reshape(found, tf.shape(kernel.slots))

    def forward(x: tf.Tensor) -> tf.Tensor:
      return tf.nn.conv2d(x, kernel.value, strides, 'SAME')

    return self._with_bias(_routed(forward, x, kernel.slots, of_clients), bias)

  def _dense(self, x: tf.Tensor, kernel: Any, bias: Any) -> tf.Tensor:
    def of_clients(x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
      return _products([self._by_client(x, kernel)], self._by_client(dy, kernel))

    def forward(x: tf.Tensor) -> tf.Tensor:
      return compute.dense(x, kernel.value, None)

    return self._with_bias(_routed(forward, x, kernel.slots, of_clients), bias)

  def _with_bias(self, x: tf.Tensor, bias: Any | None) -> tf.Tensor:
    if bias is None:
      return x

    def of_clients(x: tf.Tensor, dy: tf.Tensor) -> tf.Tensor:
      del x
      return _sums(self._by_client(dy, bias))

    def forward(x: tf.Tensor) -> tf.Tensor:
      return tf.nn.bias_add(x, bias.value)

    return _routed(forward, x, bias.slots, of_clients)

  def _group_norm(self, x: tf.Tensor, gamma: Any, beta: Any, groups: int) -> tf.Tensor:
    return normalization.group_norm(
      x, self._rows(gamma, x), self._rows(beta, x), groups
    )

  def _batch_norm(
    self, x: tf.Tensor, gamma: Any, beta: Any, mean: Any, square: Any
  ) -> tf.Tensor:
    del x, gamma, beta, mean, square
    raise ValueError(
      f'{self.path()} is batch norm; for each client to have a gradient of its own, '
      'the norms of a network must not depend on the batch.'
    )

  def _layer_norm(self, x: tf.Tensor, gamma: Any, beta: Any) -> tf.Tensor:
    # Each token is a row with a scale and a shift of its own.
    rows = tf.reshape(x, [-1, x.shape[-1]])
    y = normalization.group_norm(rows, self._rows(gamma, x), self._rows(beta, x), 1)
    return tf.reshape(y, [-1, *x.shape[1:]])

  def _attention(
    self, x: tf.Tensor, qkv: tuple[Any, Any], output: tuple[Any, Any], heads: int
  ) -> tf.Tensor:
    return compute.self_attention(x, qkv, output, heads, self._dense)

  def _by_client(self, x: tf.Tensor, parameter: Parameter) -> tf.Tensor:
    """Returns [K, rows, ...] of [batches K n, ...], for any `batches` of the input."""
    # Every size is given, so that a wrong number of rows is an error.
    clients = tf.shape(parameter.slots)[0]
    sizes = [self._batches, clients, parameter.examples]
    apart = tf.reshape(x, [*sizes, *x.shape[1:]])
    if self._batches > 1:
      apart = tf.transpose(apart, [1, 0, 2, *range(3, apart.shape.rank)])
    rows = [clients, self._batches * parameter.examples]
    return tf.ensure_shape(
      tf.reshape(apart, [*rows, *x.shape[1:]]), [None, None, *x.shape[1:]]
    )

  def _rows(self, parameter: Parameter, x: tf.Tensor) -> tf.Tensor:
    """Returns a row of a parameter [units] for each row of `x`, or for each token."""
    tokens = x.shape[1] if x.shape.rank == 3 else 1
    count = tf.shape(x)[0] * tokens

    @tf.custom_gradient
    def rows(slots: tf.Tensor) -> Any:
      def gradient(dy: tf.Tensor) -> tf.Tensor:
        of_examples = tf.reshape(dy, [-1, tokens, dy.shape[-1]])
        return _sums(self._by_client(of_examples, parameter))

      del slots
      units = parameter.value.shape[0]
      return tf.broadcast_to(parameter.value, [count, units]), gradient

    return rows(parameter.slots)


def _routed(
  forward: Callable[[tf.Tensor], tf.Tensor],
  x: tf.Tensor,
  slots: tf.Tensor,
  of_clients: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
  """Returns forward(x), whose gradient flows into `x` and into slots.

  Args:
    forward: Tensor -> tensor, with parameters of its own.
    x: Its argument.
    slots: A parameter's slots.
    of_clients: (x, gradient with respect to the result) -> the slots' gradient.
  """

  @tf.custom_gradient
  def run(x: tf.Tensor, slots: tf.Tensor) -> Any:
    del slots
    with tf.GradientTape() as tape:
      tape.watch(x)
      y = forward(x)

    def gradient(dy: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
      return tape.gradient(y, x, output_gradients=dy), of_clients(x, dy)

    return y, gradient

  return run(x, slots)


def _transformed(found: Parameter, transform: parameters.Transform) -> Parameter:
  """Returns a transformed parameter, whose slots lead to the given one's slots."""

  @tf.custom_gradient
  def through(slots: tf.Tensor) -> Any:
    def gradient(dslots: tf.Tensor) -> tf.Tensor:
      @tf.autograph.experimental.do_not_convert
      def of_client(dy: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
          tape.watch(found.value)
          y = transform(found.value)
        return tape.gradient(y, found.value, output_gradients=dy)

      return tf.vectorized_map(of_client, dslots, fallback_to_while_loop=False)

    return tf.identity(slots), gradient

  value = transform(found.value)
  return Parameter(value, through(found.slots), found.examples)


def _patches(
  x: tf.Tensor, size: int, strides: int, positions: tf.TensorShape
) -> list[tf.Tensor]:
  """Returns what a kernel sees at each position, with padding 'same'.

  Args:
    x: [K, rows, height, width, channels].
    size: Of the kernel.
    strides: Of the convolution.
    positions: Height and width of its result.

  Returns:
    Tensors [K, rows, *positions, inputs] whose inputs, one after another, are the
    kernel's inputs, row by row. With strides of 1 there is one tensor for each place of
    the kernel: slices cost less than patches. With larger strides there is one tensor
    for all places: slices would have gaps and cost more.
  """
  if strides > 1:
    flat = tf.reshape(x, [-1, *x.shape[2:]])
    window, step = [1, size, size, 1], [1, strides, strides, 1]
    found = tf.image.extract_patches(flat, window, step, [1] * 4, 'SAME')
    return [tf.reshape(found, [*tf.unstack(tf.shape(x)[:2]), *found.shape[1:]])]
  before = (size - 1) // 2
  around = [before, size - 1 - before]
  padded = tf.pad(x, [[0, 0], [0, 0], around, around, [0, 0]])
  height, width = positions
  return [
    padded[:, :, top : top + height, left : left + width]
    for top in range(size)
    for left in range(size)
  ]


def _products(inputs: list[tf.Tensor], outputs: tf.Tensor) -> tf.Tensor:
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

  of_outputs = matrix(outputs)
  found = [tf.linalg.matmul(matrix(x), of_outputs, transpose_a=True) for x in inputs]
  return tf.concat(found, axis=1)


def _sums(x: tf.Tensor) -> tf.Tensor:
  """Returns the sums over all axes but the first and the last, [K, units]."""
  return tf.reduce_sum(x, list(range(1, x.shape.rank - 1)))
