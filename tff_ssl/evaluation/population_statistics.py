"""Population statistics of an encoder that was trained outside of a run.

The encoder of a run has its own statistics, which its algorithm has kept. For a random
or a fine-tuned encoder they are computed from the images that it may see.
"""

import collections
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders import population
from tff_ssl.evaluation import feature_sets

# (trained params, images uint8 [N, H, W, C]) -> params with statistics.
Complete: TypeAlias = Callable[[network_lib.Params, np.ndarray], network_lib.Params]

# Wu and Johnson find no gain beyond 1,000 to 10,000 (see `encoders.population`).
_MOST_IMAGES = 4096


def build_complete(network: network_lib.Network) -> Complete:
  """Compiles the completion of parameters by population statistics.

  Args:
    network: With or without batch norm.

  Returns:
    A function of trained parameters and of N >= 1 images, of which at most 4096 are
    used, evenly spaced. It returns what `Network.infer` takes: the parameters with
    statistics, or without batch norm the parameters alone.
  """

  @tf.function(reduce_retracing=True, autograph=False)
  def statistics(params: network_lib.Params, images: tf.Tensor) -> network_lib.Params:
    return population.statistics(network, params, images, feature_sets.scale)

  def complete(params: network_lib.Params, images: np.ndarray) -> network_lib.Params:
    completed = trained(network, params)
    if network.mixes_examples:
      chosen = np.linspace(0, len(images) - 1, min(len(images), _MOST_IMAGES))
      rows = images[chosen.astype(np.int64)]
      seen = tf.constant(rows, feature_sets.input_type(images))
      completed.update(statistics(completed, seen))
    return completed

  return complete


def trained(
  network: network_lib.Network, params: network_lib.Params
) -> network_lib.Params:
  """Returns the parameters that are trained: without population statistics.

  Args:
    network: The network of these parameters.
    params: As `Network.apply` or as `Network.infer` takes them.
  """
  return collections.OrderedDict(
    (name, tf.convert_to_tensor(params[name])) for name in network.specs
  )
