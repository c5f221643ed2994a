"""Reads a network's parameters back from the Keras model that it was exported to.

Kernels that the export standardized stay standardized: standardizing them again changes
them by less than its epsilon (1e-5).
"""

import collections

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders.operations import batch_normalization

# Batch norm keeps a mean square where Keras has a variance.
_MOVING_MEAN, _MOVING_VARIANCE = 'moving_mean', 'moving_variance'


def params(
  network: network_lib.Network, model: tf.keras.Model
) -> collections.OrderedDict[str, np.ndarray]:
  """Returns the parameters, and the population statistics of batch norm, by name.

  Args:
    network: The network.
    model: What `network.to_keras` returned, with any weights.

  Raises:
    ValueError: If Keras keeps a layer's weights in another form, as for the attention
      of transformers.
  """
  values = {weight.name.partition(':')[0]: weight.numpy() for weight in model.weights}
  result = collections.OrderedDict()
  for name in (*network.specs, *network.statistics):
    layer, _, last = name.rpartition('/')
    layer = layer.replace('/', '_')
    try:
      if last == batch_normalization.POPULATION_SQUARE:
        mean = values[f'{layer}/{_MOVING_MEAN}']
        result[name] = values[f'{layer}/{_MOVING_VARIANCE}'] + np.square(mean)
      elif last == batch_normalization.POPULATION_MEAN:
        result[name] = values[f'{layer}/{_MOVING_MEAN}']
      else:
        result[name] = values[f'{layer}/{last}']
    except KeyError:
      raise ValueError(
        f'{network.name} cannot be rebuilt from its Keras model: the model has '
        f'{name} in a different form.'
      ) from None
  return result
