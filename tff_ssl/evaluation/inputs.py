"""Features that learn nothing: the inputs themselves, and their principal components.

An encoder is worth having if the same classifier does better on its features than on
the pixels that it reads. Of features of a table, the inputs are these.
"""

from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import method_names
from tff_ssl.settings import parts

# Of the checkout's methods, those of which nothing is trained but a classifier, at a
# cost that hardly depends on the number of clients.
_METHODS = ('knn', 'linear')
# Larger images are reduced to it: a classifier of more numbers than it has labels is
# no better for them, and takes minutes.
LONGEST_SIDE = 16
# Examples that principal components are estimated from, at most.
_MOST_ESTIMATED = 10_000
# Images that are reduced at a time.
_BATCH = 512


def methods(names: Iterable[str]) -> list[str]:
  """Returns those methods by which inputs are evaluated too: own metrics are.

  Args:
    names: Of methods.
  """
  return [name for name in names if name in _METHODS or parts.METRICS[name].is_own]


def name_of(inputs: np.ndarray) -> str:
  """Returns what an encoder's inputs are called: pixels, or features.

  Args:
    inputs: [N, H, W, C] or [N, d].
  """
  return method_names.PIXELS if inputs.ndim == 4 else method_names.FEATURES


def note(inputs: np.ndarray) -> str:
  """Returns a line on how images are reduced by `flat`; '' if they are not.

  Args:
    inputs: [N, H, W, C] or [N, d].
  """
  if inputs.ndim != 4 or _reduced(inputs) == inputs.shape[1:3]:
    return ''
  sizes = (
    ' x '.join(map(str, inputs.shape[1:3])),
    ' x '.join(map(str, _reduced(inputs))),
  )
  return f'pixels: images of {sizes[0]} reduced to {sizes[1]} by areas'


def flat(inputs: np.ndarray) -> np.ndarray:
  """Returns inputs as features, float32 [N, d].

  Args:
    inputs: Images uint8 [N, H, W, C], of which large ones are reduced by the means of
      areas to at most `LONGEST_SIDE` pixels a side; or vectors, floating [N, d].
  """
  if inputs.ndim != 4 or not len(inputs):
    return inputs.reshape(len(inputs), -1).astype(np.float32)
  size, rows = _reduced(inputs), []
  for start in range(0, len(inputs), _BATCH):
    images = feature_sets.scale(tf.constant(inputs[start : start + _BATCH]))
    if size != inputs.shape[1:3]:
      images = tf.image.resize(images, size, method='area')
    rows.append(np.reshape(images.numpy(), [len(images), -1]))
  return np.concatenate(rows)


def encodings(
  known: np.ndarray, width: int
) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
  """Returns what takes the place of an encoder, by its name in tables.

  Args:
    known: Inputs that components are estimated from.
    width: Number of the encoder's features, and of components.
  """
  name = name_of(known)
  return {
    name: flat,
    name + method_names.COMPONENTS: principal_components(known, width),
  }


def principal_components(
  inputs: np.ndarray, width: int
) -> Callable[[np.ndarray], np.ndarray]:
  """Returns a function to the principal components of inputs.

  Args:
    inputs: Those that the components are estimated from, [N, ...] as in `flat`, N at
      least 1; of more than 10,000, evenly spaced ones are taken.
    width: The number of components; inputs of fewer numbers have as many as numbers.

  Returns:
    Maps inputs [M, ...] to float32 [M, min(width, d)], in the order of their variances.
  """
  step = -(-len(inputs) // _MOST_ESTIMATED)
  known = flat(inputs[::step]).astype(np.float64)
  mean = np.mean(known, axis=0)
  _, vectors = np.linalg.eigh((known - mean).T @ (known - mean))
  basis = vectors[:, ::-1][:, :width]

  def components(rows: np.ndarray) -> np.ndarray:
    return ((flat(rows) - mean) @ basis).astype(np.float32)

  return components


def _reduced(images: np.ndarray) -> tuple[int, ...]:
  """Returns height and width of images [N, H, W, C] after `flat`."""
  factor = min(1.0, LONGEST_SIDE / max(images.shape[1:3]))
  return tuple(max(1, round(factor * side)) for side in images.shape[1:3])
