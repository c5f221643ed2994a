"""Retrieval across two modalities by cosine of projections, and zero-shot classes.

In n pairs, each element of one modality looks for its partner among the n elements of
the other. Recall at k is the share of elements whose partner is among the k elements of
largest cosine.

Ties: elements with equal cosines (within 1e-6, because encodings are float32) are in
random order, and recall is its expectation over that order. If t elements tie with the
partner, itself included, and a are better, recall is min(max(k - a, 0), t) / t. Two
identical records are then each right half of the time, and an encoder that gives all
the same encoding has exactly the recall of chance, k / n.

Correlations and covariances do not fix the mean of a projection's numbers (nor, for
CCO, their scale), so CCO and VICReg leave them free; but cosines depend on them.
`standardise` removes both, by mean and deviation over the training examples.

Source: Radford et al., 2021 (CLIP), section 3.1, for zero-shot classification; recall
at k both ways is that of image-text retrieval (Karpathy and Fei-Fei, 2015).
"""

import collections
from collections.abc import Sequence

import numpy as np

KS = (1, 5, 10)
# The two ways, named by the field that searches and the field that is searched.
LEFT_TO_RIGHT = 'left_to_right'
RIGHT_TO_LEFT = 'right_to_left'
PAIRS = 'pairs'
# Prefix of the names of scores of the nearest described class.
ZERO_SHOT = 'zero_shot/'
_TIE = 1e-6
# Rows of similarities computed at a time: all of 10,000 pairs would take 800 MB.
_ROWS = 1024


def evaluate(
  left: np.ndarray, right: np.ndarray, ks: Sequence[int] = KS
) -> collections.OrderedDict[str, float]:
  """Measures recall at k both ways.

  Args:
    left: [n, d] projections; n at least 1.
    right: [n, d] projections of the partners, in the same order.
    ks: How many of the best count, each at least 1.

  Returns:
    `pairs`, n, then `left_to_right/recall_at_1` and so on, in [0, 1], and
    `right_to_left/...`.

  Raises:
    ValueError: As in `recalls`.
  """
  numbers = collections.OrderedDict([(PAIRS, float(len(left)))])
  for way, queries, keys in (
    (LEFT_TO_RIGHT, left, right),
    (RIGHT_TO_LEFT, right, left),
  ):
    for k, recall in zip(ks, recalls(queries, keys, ks), strict=True):
      numbers[f'{way}/{recall_name(k)}'] = float(recall)
  return numbers


def recall_name(k: int) -> str:
  """Returns the last part of the name of recall at k."""
  return f'recall_at_{k}'


def chance(pairs: float, k: int) -> float:
  """Returns the recall at k of a random order of n pairs: k / n, at most 1."""
  return min(k / pairs, 1.0)


def recalls(
  queries: np.ndarray, keys: np.ndarray, ks: Sequence[int] = KS
) -> np.ndarray:
  """Measures recall at k one way, in expectation over the order of ties.

  Args:
    queries: [n, d] projections; n at least 1.
    keys: [n, d] projections that are searched; the i-th is the partner of the i-th
      query.
    ks: How many of the best count, each at least 1.

  Returns:
    float64 [len(ks)] in [0, 1].

  Raises:
    ValueError: Shapes differ, there are no pairs, a k is below 1, or projections are
      not finite.
  """
  if queries.shape != keys.shape or queries.ndim != 2 or not len(queries):
    raise ValueError(
      f'The projections have shapes {queries.shape} and {keys.shape}; both must be '
      '[n, d] of the same n pairs, at least one.'
    )
  if any(k < 1 for k in ks):
    raise ValueError(f'ks is {tuple(ks)}; each must be at least 1.')
  queries, keys = _unit(queries), _unit(keys)
  at = np.asarray(ks, np.float64)
  total = np.zeros(len(ks))
  for start in range(0, len(queries), _ROWS):
    rows = np.arange(start, min(start + _ROWS, len(queries)))
    cosines = queries[rows] @ keys.T
    above = cosines - cosines[np.arange(len(rows)), rows][:, np.newaxis]
    better = np.sum(above > _TIE, axis=1)[:, np.newaxis]
    tied = np.sum(np.abs(above) <= _TIE, axis=1)[:, np.newaxis]
    total += np.sum(np.clip(at - better, 0, tied) / tied, axis=0)
  return total / len(queries)


def standardise(projections: np.ndarray, training: np.ndarray) -> np.ndarray:
  """Standardises projections by mean and deviation of training examples.

  Args:
    projections: [n, d].
    training: [m, d] projections by the same tower; m at least 1.

  Returns:
    float64 [n, d]; dimensions that are constant over the training examples are 0.
  """
  known = np.asarray(training, np.float64)
  deviation = known.std(axis=0)
  # Float32 numbers that differ only in their last digits carry no information.
  constant = deviation <= _TIE * np.abs(known).max(axis=0)
  return (projections - known.mean(axis=0)) / np.where(constant, np.inf, deviation)


def class_prototypes(
  encodings: np.ndarray, classes: np.ndarray, num_classes: int
) -> np.ndarray:
  """Returns one direction per class: the mean of its encodings, each of length 1.

  Args:
    encodings: [m, d] projections, by one tower, of descriptions of classes: their
      names, several phrases for each, or records.
    classes: int [m], the class of each.
    num_classes: Number of classes.

  Returns:
    float64 [num_classes, d], of length 1.

  Raises:
    ValueError: A class has no encoding or is out of range, or encodings are not finite.
  """
  if len(classes) != len(encodings):
    raise ValueError(
      f'There are {len(encodings)} encodings and {len(classes)} classes; each '
      'encoding needs one class.'
    )
  present = np.unique(classes)
  if not np.array_equal(present, np.arange(num_classes)):
    raise ValueError(
      f'classes holds {present.tolist()}; it must hold each of the {num_classes} '
      'classes, counted from 0, and no other.'
    )
  sums = np.zeros([num_classes, encodings.shape[1]])
  np.add.at(sums, classes, _unit(encodings))
  return _unit(sums)


def zero_shot(encodings: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
  """Classifies by the class prototype of largest cosine, without learning from labels.

  Args:
    encodings: [n, d] projections of examples by one tower.
    prototypes: [num_classes, d] of classes by the other tower (`class_prototypes`).

  Returns:
    int64 [n], the class of each; the first on a tie.

  Raises:
    ValueError: Dimensions differ, or numbers are not finite.
  """
  if encodings.ndim != 2 or encodings.shape[1:] != prototypes.shape[1:]:
    raise ValueError(
      f'encodings have shape {encodings.shape} and prototypes {prototypes.shape}; they '
      'must be [n, d] and [num_classes, d].'
    )
  return np.argmax(_unit(encodings) @ _unit(prototypes).T, axis=1)


def _unit(vectors: np.ndarray) -> np.ndarray:
  """Returns vectors of length 1 in float64; a zero vector stays, with cosines of 0."""
  vectors = np.asarray(vectors, np.float64)
  if not np.all(np.isfinite(vectors)):
    raise ValueError('The projections are not finite; the encoders have diverged.')
  lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
  return vectors / np.where(lengths > 0, lengths, 1.0)
