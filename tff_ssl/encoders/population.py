"""Population statistics of batch norm, by which inference normalizes.

Yuxin Wu, Justin Johnson. Rethinking "Batch" in BatchNorm. arXiv:2105.07576, 2021.
Section 3: after training, one pass over many examples with fixed weights ("precise
batch norm"), in place of a moving average over the weights of training.

Deviation: batches are aggregated as means of their moments, weighted by examples. This
is exact for any sizes and extends over clients: the mean of clients' moments is the
union's, exactly so for the first layer. Behind the first layer each batch is normalized
by its own moments, as in training.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_ssl.encoders import network as network_lib

# The paper finds batches of 32 and more, and 1,000 to 10,000 examples, to be enough.
_BATCH = 256


def statistics(
  network: network_lib.Network,
  params: network_lib.Params,
  inputs: tf.Tensor,
  prepare: Callable[[tf.Tensor], tf.Tensor] | None = None,
  batch_size: int = _BATCH,
) -> network_lib.Params:
  """Computes a network's population statistics.

  Args:
    network: With or without batch norm.
    params: The trained parameters.
    inputs: n >= 0 examples.
    prepare: Turns a batch of examples into the network's input, for example from bytes;
      None: the examples are the input.
    batch_size: Examples that go through the network together; the last batch may be
      smaller.

  Returns:
    The statistics by name, means over the examples, 0 if there is none; empty without
    batch norm.
  """
  if not network.mixes_examples:
    return collections.OrderedDict()
  total = tf.nest.map_structure(
    tf.zeros_like, network.init_statistics(next(iter(params.values())).dtype)
  )
  count = tf.shape(inputs)[0]

  def body(start: tf.Tensor, total: Any) -> tuple[tf.Tensor, Any]:
    batch = inputs[start : start + batch_size]
    size = tf.shape(batch)[0]
    moments = network.moments(params, batch if prepare is None else prepare(batch))
    added = collections.OrderedDict(
      (name, value + moments[name] * tf.cast(size, value.dtype))
      for name, value in total.items()
    )
    return start + size, added

  _, total = tf.while_loop(
    lambda start, _: start < count,
    body,
    (tf.constant(0), total),
    # One batch after another: in parallel they would need the memory of all.
    parallel_iterations=1,
  )
  return tf.nest.map_structure(
    lambda value: tf.math.divide_no_nan(value, tf.cast(count, value.dtype)), total
  )


def batch_norm_names(network: network_lib.Network) -> tuple[str, ...]:
  """Returns the names of scales, shifts and population statistics of batch norm."""
  layers = {name.rpartition('/')[0] for name in network.statistics}
  every = (*network.specs, *network.statistics)
  return tuple(name for name in every if name.rpartition('/')[0] in layers)
