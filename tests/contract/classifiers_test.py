"""What holds for every classifier of features: one row each.

References in NumPy and scikit-learn: beside each, in tests/evaluation.
"""

import numpy as np
import pytest

from tests.evaluation import blobs
from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import linear_lars
from tff_ssl.evaluation import linear_probe


def _of_moments(fit):
  return lambda features, labels, classes: (
    fit(closed_form.moments(features, labels, classes)).classifier.predict
  )


def _knn(features, labels, classes):
  return lambda test: knn.predict(features, labels, test, classes)


# name -> (features, labels, number of classes) -> what predicts labels.
_ROWS = {
  'knn': _knn,
  'linear': lambda *given: linear_probe.fit_logistic(*given).predict,
  'lars': lambda *given: linear_lars.fit(*given, seed=0).predict,
  'lda': _of_moments(closed_form.fit_lda),
  'ridge': _of_moments(closed_form.fit_ridge),
}
every_classifier = pytest.mark.parametrize('name', _ROWS)


def _data(name, classes=3):
  """Clusters; but for kNN, which sees directions, of other means and scales."""
  features, labels = blobs.blobs(num_classes=classes, noise=0.5)
  if name == 'knn':
    return (features[:, :3] - 100.0) / [1, 10, 1e-3], labels
  return features[:, [0, 1, 3, 4]], labels


@every_classifier
def test_separable_features_are_learnt_and_shuffled_labels_are_not(name):
  features, labels = _data(name)
  train, test = slice(0, 200), slice(200, 300)
  predict = _ROWS[name](features[train], labels[train], 3)
  np.testing.assert_array_equal(predict(features[test]), labels[test])
  assert predict(features[:0]).shape == (0,)
  shuffled = np.random.default_rng(1).permutation(labels)
  predict = _ROWS[name](features[train], shuffled[train], 3)
  # 100 draws at 1/3: three standard deviations either way.
  assert 0.19 < np.mean(predict(features[test]) == shuffled[test]) < 0.48


@every_classifier
@pytest.mark.parametrize('present', [[1], [1, 4], [0, 2, 5]])
def test_a_class_that_nobody_has_is_never_predicted(name, present):
  features, labels = _data(name, len(present))
  labels = np.array(present)[labels]
  predict = _ROWS[name](features, labels, 6)
  np.testing.assert_array_equal(predict(features), labels)


@every_classifier
@pytest.mark.parametrize(
  ('labels', 'message'),
  [
    ([0], '2 (examples|features) and 1 labels'),
    ([0, 3], 'labels (are )?0 to 3'),
    ([0, -1], 'labels (are )?-1 to 0'),
  ],
)
def test_bad_labels_are_named(name, labels, message):
  with pytest.raises(ValueError, match=message):
    _ROWS[name](np.ones([2, 3]), np.array(labels), 3)(np.ones([1, 3]))
