"""Reads a network's parameters back from the Keras model that it was exported to.

Kernels that the export standardized stay standardized: standardizing them again changes
them by less than its epsilon (1e-5).
"""

import collections
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders.operations import batch_normalization
from tff_ssl.encoders.operations import linear

# Batch norm keeps a mean square where Keras has a variance.
_MOVING_MEAN, _MOVING_VARIANCE = 'moving_mean', 'moving_variance'
# Attention has one matrix where Keras has layers of each head.
_JOINED = '_qkv'
# A class token.
_TOKENS = 'tokens'


def params(
  network: network_lib.Network, model: tf.keras.Model
) -> collections.OrderedDict[str, np.ndarray]:
  """Returns the parameters, and the population statistics of batch norm, by name.

  Args:
    network: The network.
    model: What `network.to_keras` returned, with any weights.

  Raises:
    ValueError: If Keras keeps a layer's weights in another form.
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
      elif last == _TOKENS:
        # Keras adds them, and zeros to the other tokens.
        result[name] = values[f'{layer}/bias'][: network.specs[name].shape[0]]
      elif layer.endswith(_JOINED):
        result[name] = _joined(values, layer.removesuffix(_JOINED))[last]
      else:
        result[name] = values[f'{layer}/{last}']
    except KeyError:
      raise ValueError(
        f'{network.name} cannot be rebuilt from its Keras model: the model has '
        f'{name} in a different form.'
      ) from None
  return result


def _joined(values: Mapping[str, np.ndarray], layer: str) -> dict[str, np.ndarray]:
  """Returns the kernel and the bias of an attention's queries, keys and values."""

  def weights(part: str) -> list[np.ndarray]:
    return [values[f'{layer}_{part}/{last}'] for last in ('kernel', 'bias')]

  heads = sum(f'{layer}_query{head}/kernel' in values for head in range(len(values)))
  kernel, bias, *_ = linear.Attention(heads=heads).join(weights)
  return {'kernel': kernel, 'bias': bias}
