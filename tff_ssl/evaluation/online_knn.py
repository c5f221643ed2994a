"""A cheap kNN among a few examples, to watch an encoder while it is trained.

Its numbers are for curves: with so few examples they are lower than those of
`suite.evaluate`, and vary by some per cent. The examples are drawn once, so that rounds
are comparable, and so are runs of the same task and seed.
"""

from collections.abc import Callable
import dataclasses

import numpy as np

from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import label_fractions

# Labelled training examples that vote, and examples that are classified.
BANK, QUERIES = 256, 256
NAME = 'online_knn'
# Cost of training on an example, in forward passes: two views, each with a backward
# pass that costs as much as two forward passes.
_PASSES = 6


@dataclasses.dataclass(frozen=True, eq=False)
class OnlineKnn:
  """The examples of the kNN, each classified by itself.

  Attributes:
    inputs: What the encoder reads, [N, ...]: the bank, which votes, then the examples
      that are classified.
    bank_labels: int [B].
    labels: int labels of the examples that are classified, by the prefix of their
      numbers' names ('', 'validation/').
    num_classes: Number of classes.
    config: Hyperparameters of the vote.
  """

  inputs: np.ndarray
  bank_labels: np.ndarray
  labels: dict[str, np.ndarray]
  num_classes: int
  config: knn.KnnConfig

  def evaluate(self, encode: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
    """Returns the accuracy of each set, as `online_knn/accuracy`.

    Args:
      encode: Maps inputs to features [N, d].

    Returns:
      Accuracies by name; NaN if encodings are not finite.
    """
    features = encode(self.inputs)
    if not np.all(np.isfinite(features)):
      return {f'{start}{NAME}/accuracy': np.nan for start in self.labels}
    bank = len(self.bank_labels)
    predictions = knn.predict(
      features[:bank],
      self.bank_labels,
      features[bank:],
      self.num_classes,
      self.config,
    )
    numbers, begin = {}, 0
    for start, labels in self.labels.items():
      right = predictions[begin : begin + len(labels)] == labels
      numbers[f'{start}{NAME}/accuracy'] = float(np.mean(right))
      begin += len(labels)
    return numbers

  def rounds_between(self, examples: float, share: float) -> int:
    """Returns how many rounds apart kNNs cost this share of training.

    It does not depend on the total number of rounds: a run that is continued for more
    rounds has the kNN in the same rounds.

    Args:
      examples: Examples that clients train on in a round, above 0.
      share: Share of the operations of training, in (0, 1).
    """
    return max(1, int(np.ceil(len(self.inputs) / (share * _PASSES * examples))))


def choose(
  train: encoded.Examples,
  queried: dict[str, encoded.Examples],
  num_classes: int,
  seed: int,
  field: str = encoded.IMAGE,
  config: knn.KnnConfig | None = None,
) -> OnlineKnn:
  """Draws the examples, in proportion to the classes.

  Args:
    train: The set whose labelled examples vote; at least one is labelled.
    queried: The sets that are classified, by the prefix of their numbers' names; each
      has a labelled example.
    num_classes: Number of classes.
    seed: Seed of the draws.
    field: The field that the encoder reads.
    config: Hyperparameters of the vote; None: the defaults.
  """
  bank = _drawn(train.label, BANK, seed)
  chosen = {
    start: _drawn(examples.label, QUERIES, seed) for start, examples in queried.items()
  }
  inputs = [train[field][bank]]
  inputs += [queried[start][field][positions] for start, positions in chosen.items()]
  return OnlineKnn(
    np.concatenate(inputs),
    np.asarray(train.label)[bank],
    {start: np.asarray(queried[start].label)[p] for start, p in chosen.items()},
    num_classes,
    config or knn.KnnConfig(),
  )


def _drawn(labels: np.ndarray, most: int, seed: int) -> np.ndarray:
  """Returns increasing positions of at most `most` labelled examples."""
  labelled = np.flatnonzero(np.asarray(labels) >= 0)
  share = min(1.0, most / max(1, labelled.size))
  positions = label_fractions.label_fraction(labels, share, seed)
  # There is at least one of each class: with many classes that may be too many.
  if positions.size > most:
    positions = np.sort(np.random.default_rng(seed).permutation(positions)[:most])
  return positions
