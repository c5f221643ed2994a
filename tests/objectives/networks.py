"""Linear models whose encodings NumPy can compute."""

import collections

import numpy as np
import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import two_towers

SHAPE = (2, 2, 3)


def encoder(channels: int = 3) -> network.Network:
  """Returns the mean of each channel, without parameters."""
  shape = (*SHAPE[:2], channels)
  return network.Network('encoder', shape, lambda ops, x: ops.global_average_pool(x))


def siamese(augmentation: str = 'none') -> dual_encoder.Siamese:
  return dual_encoder.Siamese(
    encoder(), projector.build_linear(3, 2, 'projector'), byol.by_name(augmentation)
  )


def towers() -> two_towers.TwoTower:
  return two_towers.TwoTower(
    projector.build_linear(3, 2, 'left'), projector.build_linear(4, 2, 'right')
  )


def examples(n: int) -> collections.OrderedDict[str, np.ndarray]:
  """Returns n examples that fit every model here."""
  generator = np.random.default_rng(n)
  return collections.OrderedDict(
    image=generator.integers(0, 256, (n, *SHAPE)).astype(np.uint8),
    left=generator.normal(size=(n, 3)),
    right=generator.normal(size=(n, 4)),
    example_id=np.arange(n, dtype=np.int64),
    label=np.arange(n, dtype=np.int32) % 2,
  )


def tensors(
  batch: collections.OrderedDict[str, np.ndarray],
) -> collections.OrderedDict[str, tf.Tensor]:
  return collections.OrderedDict((name, tf.constant(x)) for name, x in batch.items())


def predictor() -> network.Network:
  return projector.build_linear(2, 2, 'predictor')


def numpy_views(
  model: dual_encoder.Siamese, batch: collections.OrderedDict[str, np.ndarray], seed
) -> list[np.ndarray]:
  """Returns the two views' mean channels in float64: what `encoder` makes of them."""
  return [
    np.mean(view.numpy().astype(np.float64), axis=(1, 2))
    for view in model.views(tensors(batch), seed)
  ]


def numpy_linear(params, name: str, x: np.ndarray) -> np.ndarray:
  """Returns the output of the linear network of that name."""
  kernel, bias = (np.asarray(params[f'{name}/dense0/{p}']) for p in ('kernel', 'bias'))
  return x @ kernel + bias


def cosine(a: np.ndarray, b: np.ndarray) -> float:
  """Returns the mean cosine similarity of rows."""
  norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
  return float(((a * b).sum(axis=1) / norms).mean())


def gradient(loss, params):
  """Returns what a loss returns, itself first, and then its gradient.

  Args:
    loss: Maps `params` to the loss and what is beside it.
    params: A structure of tensors.
  """
  with tf.GradientTape() as tape:
    tape.watch(params)
    returned = loss(params)
  return *returned, tape.gradient(returned[0], params)


def assert_zero(loss, *named) -> None:
  """Checks that a loss is 0, and all values by name: gradients and metrics."""
  assert float(loss) == 0
  for value in (value for values in named for value in values.values()):
    assert value is None or not np.any(value)


def stepped(params, rate: float):
  """Returns parameters as an optimizer might leave them: each moved by its own."""
  return collections.OrderedDict(
    (name, value + rate * (i + 1)) for i, (name, value) in enumerate(params.items())
  )
