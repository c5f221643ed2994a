"""Predictions of a test set as named numbers, over all of it and over clients."""

import collections
from collections.abc import Callable, Mapping

import numpy as np

from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import fairness
from tff_ssl.evaluation import metrics

# (labels, cases) of test examples -> client id -> positions into them.
Deal = Callable[[np.ndarray, np.ndarray], Mapping[str, np.ndarray]]


class Scorer:
  """Turns predictions of the test images (or cases) into numbers."""

  def __init__(self, test_set: encoded.EncodedSet, num_classes: int, deal: Deal | None):
    """Sets what predictions are compared with.

    Args:
      test_set: The test images (or cases); those without a label are left out.
      num_classes: Number of classes.
      deal: Deals the labelled ones to clients; None: there is no fairness over them.

    Raises:
      ValueError: None has a label.
    """
    self._tested = np.flatnonzero(test_set.labels >= 0)
    if not self._tested.size:
      raise ValueError('None of the test examples has a label; evaluation needs one.')
    self._labels = test_set.labels[self._tested]
    self._num_classes = num_classes
    self._clients = deal and deal(self._labels, test_set.cases[self._tested])

  def about_clients(self) -> collections.OrderedDict[str, float]:
    """Returns how many clients have test examples, if they are dealt to clients."""
    if self._clients is None:
      return collections.OrderedDict()
    count = sum(len(positions) > 0 for positions in self._clients.values())
    return collections.OrderedDict([('fairness/clients', float(count))])

  def __call__(
    self, prefix: str, predictions: np.ndarray
  ) -> collections.OrderedDict[str, float]:
    """Returns every metric by name; an absent class has no recall."""
    labels, predictions = self._labels, predictions[self._tested]
    recalls = metrics.per_class_recall(labels, predictions, self._num_classes)
    scores = collections.OrderedDict(
      accuracy=metrics.accuracy(labels, predictions),
      balanced_accuracy=metrics.balanced_accuracy(
        labels, predictions, self._num_classes
      ),
    )
    for c in np.flatnonzero(~np.isnan(recalls)):
      scores[f'recall/{c}'] = float(recalls[c])
    found = collections.OrderedDict((f'{prefix}/{k}', v) for k, v in scores.items())
    if self._clients is not None:
      of_clients = fairness.client_accuracies(labels, predictions, self._clients)
      for name, value in fairness.summarize(of_clients).items():
        found[f'fairness/{prefix}/accuracy/{name}'] = value
    return found
