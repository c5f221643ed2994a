"""Weighted k-nearest-neighbour classification of frozen features.

Wu, Xiong, Yu and Lin, "Unsupervised Feature Learning via Non-Parametric Instance
Discrimination", CVPR 2018 (arXiv:1805.01978), Section 3.4: the k nearest training
examples by cosine similarity s vote for their labels with weight exp(s / temperature).

Deviations: k is at most the number of training examples, and 20 by default instead of
200. If labels are few, 200 neighbours are most or all of them, so that far examples
outvote near ones, and accuracy falls as labels are added.
"""

from collections.abc import Iterator
import dataclasses

import numpy as np
import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.evaluation import label_fractions
from tff_ssl.losses import lengths

# Similarities held at a time: 32 MiB, whatever the number of examples.
_BLOCK_ELEMENTS = 2**23


@dataclasses.dataclass(frozen=True)
class KnnConfig(kinds.Kind):
  """Hyperparameters of the vote.

  Attributes:
    k: Number of neighbours that vote, at least 1; all examples if there are fewer.
    temperature: tau of the paper, above 0. Towards 0 only the nearest neighbour
      counts; towards infinity all k count equally.
  """

  k: kinds.Count = 20
  temperature: kinds.Positive = 0.1


def predict(
  train_features: np.ndarray,
  train_labels: np.ndarray,
  features: np.ndarray,
  num_classes: int,
  config: KnnConfig | None = None,
) -> np.ndarray:
  """Predicts the class of each row of `features`.

  Args:
    train_features: [N, d], N at least 1.
    train_labels: int [N] in [0, num_classes).
    features: [M, d].
    num_classes: Number of classes.
    config: Hyperparameters of the vote; None for the defaults.

  Returns:
    Predicted classes, int32 [M]; the lowest class on a tie.

  Raises:
    ValueError: There are no training examples, or a label is out of range.
  """
  predictions = [np.zeros([0], np.int32)]
  for own in _votes(train_features, train_labels, features, num_classes, config):
    predictions.append(tf.argmax(own, axis=1, output_type=tf.int32).numpy())
  return np.concatenate(predictions)


def votes(
  train_features: np.ndarray,
  train_labels: np.ndarray,
  features: np.ndarray,
  num_classes: int,
  config: KnnConfig | None = None,
) -> np.ndarray:
  """Returns the share of the votes for each class, float64 [M, num_classes].

  Args and Raises are those of `predict`.
  """
  shares = [np.zeros([0, num_classes])]
  for own in _votes(train_features, train_labels, features, num_classes, config):
    # In float64, where no two numbers of votes become the same share.
    exact = own.numpy().astype(np.float64)
    shares.append(exact / np.sum(exact, axis=1, keepdims=True))
  return np.concatenate(shares)


def _votes(
  train_features: np.ndarray,
  train_labels: np.ndarray,
  features: np.ndarray,
  num_classes: int,
  config: KnnConfig | None,
) -> Iterator[tf.Tensor]:
  """Yields the votes of `_scores` for all rows, a block at a time."""
  config = config or KnnConfig()
  label_fractions.check('kNN', train_labels, num_classes, len(train_features))
  keys = _normalized(train_features)
  labels = tf.constant(train_labels, tf.int32)
  k = min(config.k, len(train_labels))
  rows = max(1, _BLOCK_ELEMENTS // len(train_labels))
  for start in range(0, len(features), rows):
    queries = _normalized(features[start : start + rows])
    yield _scores(queries, keys, labels, k, config.temperature, num_classes)


def _scores(
  queries: tf.Tensor,
  keys: tf.Tensor,
  labels: tf.Tensor,
  k: int,
  temperature: float,
  num_classes: int,
) -> tf.Tensor:
  """Returns the votes for each class, [m, num_classes], up to a factor per row."""
  similarity = tf.matmul(queries, keys, transpose_b=True)
  nearest, neighbours = tf.math.top_k(similarity, k)
  # Relative to the nearest, so that no small temperature overflows.
  weights = tf.exp((nearest - nearest[:, :1]) / temperature)
  row_offsets = num_classes * tf.range(tf.shape(queries)[0])[:, tf.newaxis]
  cells = row_offsets + tf.gather(labels, neighbours)
  num_cells = num_classes * tf.shape(queries)[0]
  votes = tf.math.unsorted_segment_sum(weights, cells, num_cells)
  return tf.reshape(votes, [-1, num_classes])


def _normalized(features: np.ndarray) -> tf.Tensor:
  """Returns rows of unit length; a zero row stays zero, similar to nothing."""
  return lengths.unit(tf.constant(features, tf.float32), axis=1, epsilon=1e-24)
