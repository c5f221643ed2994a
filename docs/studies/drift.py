"""How far two models are apart: in their weights, and in their features.

Distances as in Dec-SSL ("Does Learning from Decentralized Non-IID Unlabeled Data
Benefit from Self Supervision?", Wang et al., ICLR 2023, Appendix B.3): d_w is the sum
over layers of the l2 norm of the difference of their weights. Similarity of features by
linear CKA (Simon Kornblith, Mohammad Norouzi, Honglak Lee, Geoffrey Hinton. Similarity
of Neural Network Representations Revisited. ICML 2019, Section 3).
"""

import collections
from collections.abc import Mapping

import numpy as np

from tff_ssl.evaluation import linear_probe


def distances(
  one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]
) -> collections.OrderedDict[str, float]:
  """Measures how far weights are apart, layer by layer.

  Args:
    one: Parameters by name, 'stage1/block0/conv1/kernel'; everything before the last
      part names the layer.
    other: The parameters of another model of the same network.

  Returns:
    The l2 norm of the difference over all parameters of each layer, in their order;
    d_w is the sum.

  Raises:
    ValueError: The models have different parameters.
  """
  if one.keys() != other.keys():
    name = sorted(one.keys() ^ other.keys())[0]
    raise ValueError(
      f'{name!r} is a parameter of only one of the models; both must have it.'
    )
  squares: collections.OrderedDict[str, float] = collections.OrderedDict()
  for name, value in one.items():
    difference = np.asarray(value, np.float64) - np.asarray(other[name], np.float64)
    layer = name.rpartition('/')[0] or name
    squares[layer] = squares.get(layer, 0.0) + float(np.sum(difference**2))
  return collections.OrderedDict(
    (layer, float(np.sqrt(square))) for layer, square in squares.items()
  )


def linear_cka(one: np.ndarray, other: np.ndarray) -> float:
  """Compares features of the same examples, whatever their rotation and scale.

  Args:
    one: [n, ...], n >= 2; the axes after the first are flattened to one vector.
    other: [n, ...], features of another model, or of another layer.

  Returns:
    |Y^T X|^2 / (|X^T X| |Y^T Y|) of the centred features, in [0, 1]; NaN if a model has
    the same features for all examples, up to rounding.

  Raises:
    ValueError: Numbers of examples differ, or are below 2.
  """
  if len(one) != len(other) or len(one) < 2:
    raise ValueError(
      f'There are features of {len(one)} and of {len(other)} examples; both must be '
      'of the same examples, at least 2.'
    )
  # |Y^T X|^2 is the inner product of the Gram matrices: n x n however wide X is.
  grams = [_centred_gram(features) for features in (one, other)]
  norms = [float(np.linalg.norm(gram)) for gram in grams]
  if not all(norms):
    return float('nan')
  return float(np.sum(grams[0] * grams[1]) / (norms[0] * norms[1]))


def shared_projection(features: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Projects several models' features on the same two directions.

  Args:
    features: By the name of the model, [n, d] with the same d.

  Returns:
    By the same names, [n, 2]: the two principal components of all features together.
  """
  together = np.concatenate(list(features.values())).astype(np.float64)
  mean = np.mean(together, axis=0)
  directions = np.linalg.svd(together - mean, full_matrices=False)[2][:2]
  # The solver chooses any sign: here the largest entry of a direction is positive.
  largest = np.argmax(np.abs(directions), axis=1)
  directions *= np.sign(directions[np.arange(len(directions)), largest])[:, np.newaxis]
  return {name: (value - mean) @ directions.T for name, value in features.items()}


def _centred_gram(features: np.ndarray) -> np.ndarray:
  """Returns [n, n] inner products of centred features; 0 where all have the same."""
  flat = np.asarray(features, np.float64).reshape(len(features), -1)
  mean = np.mean(flat, axis=0)
  centred = flat - mean
  # Rounding makes even equal features vary.
  if np.all(np.std(flat, axis=0) <= linear_probe.constant_below(mean)):
    centred = np.zeros_like(flat)
  return centred @ centred.T
