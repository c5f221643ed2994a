"""A network with two stages that NumPy can compute, and its heads."""

import numpy as np

from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.objectives import dual_encoder

SHAPE = (2, 2, 3)
FEATURES = 4


def _forward(ops, x):
  x = ops.tap(ops.relu(ops.conv2d(x, 'conv1', filters=5, kernel_size=1)), 'stage1')
  x = ops.conv2d(x, 'conv2', filters=FEATURES, kernel_size=1)
  return ops.global_average_pool(ops.tap(x, 'stage2'))


def encoder() -> network.Network:
  return network.Network('encoder', SHAPE, _forward)


def siamese(augmentation: str = 'mild') -> dual_encoder.Siamese:
  return dual_encoder.Siamese(
    encoder(), projector.build_linear(FEATURES, 3), byol.by_name(augmentation)
  )


def numpy_maps(params, image: np.ndarray) -> list[np.ndarray]:
  """Returns the feature maps of both stages in float64."""
  first, second = (
    np.asarray(params[f'encoder/conv{k}/kernel'], np.float64)[0, 0] for k in (1, 2)
  )
  maps = [np.maximum(image @ first, 0)]
  return [*maps, maps[0] @ second]


def numpy_features(params, image: np.ndarray) -> np.ndarray:
  return numpy_maps(params, image)[-1].mean(axis=(1, 2))
