"""LDA and ridge of sums, against scikit-learn's on the examples in float64."""

import numpy as np
import pytest
from sklearn import covariance
from sklearn import discriminant_analysis
from sklearn import linear_model

from tests.evaluation import blobs
from tff_ssl.evaluation import closed_form

_CLASSES = 3


def _data(noise=4.0):
  features, labels = blobs.blobs(noise=noise)
  return features, labels, closed_form.moments(features, labels, _CLASSES)


def _standardised(features):
  """The features but for the fifth, which is constant."""
  exact = features[:, :4].astype(np.float64)
  return (exact - exact.mean(axis=0)) / exact.std(axis=0)


def _logits(head, standardised):
  return standardised @ head.classifier.kernel[:4] + head.classifier.bias


@pytest.mark.parametrize('shrinkage', [0.0, 0.3, 1.0])
def test_lda_is_that_of_the_examples(shrinkage):
  features, labels, _ = _data()
  z = _standardised(features)
  want = discriminant_analysis.LinearDiscriminantAnalysis(
    solver='lsqr', shrinkage=shrinkage
  ).fit(z, labels)
  # The nothing that a constant feature adds to the trace is not in `want`.
  head = closed_form.fit_lda(
    closed_form.moments(features[:, :4], labels, _CLASSES), shrinkage
  )
  # But for what is the same for all classes.
  got, expected = _logits(head, z), want.decision_function(z)
  np.testing.assert_allclose(got - got[:, :1], expected - expected[:, :1], atol=1e-4)
  assert head.strength == shrinkage
  assert np.mean(head.classifier.predict(features[:, :4]) == want.predict(z)) > 0.99


def test_lda_shrinks_by_oas_of_what_is_within_classes():
  features, labels, _ = _data()
  z = _standardised(features)
  means = np.stack([z[labels == c].mean(axis=0) for c in range(_CLASSES)])
  _, want = covariance.oas(z - means[labels], assume_centered=True)
  head = closed_form.fit_lda(closed_form.moments(features[:, :4], labels, _CLASSES))
  assert head.strength == pytest.approx(want, rel=1e-5)
  assert 0.01 < want < 0.99


@pytest.mark.parametrize('penalty', [1e-4, 0.5])
def test_ridge_is_that_of_the_examples(penalty):
  features, labels, found = _data()
  z = _standardised(features)
  want = linear_model.Ridge(alpha=penalty * len(z)).fit(z, np.eye(_CLASSES)[labels])
  head = closed_form.fit_ridge(found, penalty)
  np.testing.assert_allclose(_logits(head, z), want.predict(z), atol=1e-5)
  # The constant feature decides nothing.
  np.testing.assert_array_equal(head.classifier.kernel[4], 0)


def test_ridge_has_the_penalty_of_least_generalised_cross_validation():
  # Few examples of many features: the least is neither end of the grid.
  random = np.random.default_rng(0)
  features, labels = random.normal(size=[40, 30]), random.integers(0, _CLASSES, 40)
  features[:, 0] += 2 * labels
  z = (features - features.mean(axis=0)) / features.std(axis=0)
  targets, scores = np.eye(_CLASSES)[labels], []
  for penalty in closed_form.PENALTIES:
    to_fit = z @ np.linalg.inv(z.T @ z + 40 * penalty * np.eye(30)) @ z.T + 1 / 40
    error = np.mean(np.sum((targets - to_fit @ targets) ** 2, axis=1))
    scores.append(error / (1 - np.trace(to_fit) / 40) ** 2)
  found = closed_form.moments(features, labels, _CLASSES)
  best = int(np.argmin(scores))
  assert closed_form.fit_ridge(found).strength == closed_form.PENALTIES[best]
  assert 0 < best < len(scores) - 1


@pytest.mark.parametrize('shrinkage', [None, 0.0])
def test_without_variance_within_classes_the_nearest_mean_decides(shrinkage):
  points = np.array([[0.0, 0.0], [4.0, 1.0], [0.0, 6.0]])
  found = closed_form.moments(points, np.arange(3), 3)
  predict = closed_form.fit_lda(found, shrinkage).classifier.predict
  np.testing.assert_array_equal(predict(points + [0.5, -0.4]), np.arange(3))


def test_noise_on_the_sums_leaves_a_classifier():
  features, labels, found = _data(noise=0.5)
  keep = [0, 1, 3]
  found = closed_form.moments(features[:, keep] - 100, labels, 4)
  random = np.random.default_rng(0)
  # The class without examples may have a count below 0, the second moment may have
  # lost its symmetry and negative eigenvalues.
  noised = closed_form.Moments(
    *(x + random.normal(scale=0.3, size=x.shape) for x in found)
  )
  noised.counts[3] = -0.3
  noised.second[2, 2] = -1.0
  for fit in (closed_form.fit_lda, closed_form.fit_ridge):
    predicted = fit(noised).classifier.predict(features[:, keep] - 100)
    assert np.mean(predicted == labels) > 0.5


def test_refuses_bad_input():
  _, _, found = _data()
  with pytest.raises(ValueError, match=r'shrinkage is 1\.5; it must be in'):
    closed_form.fit_lda(found, 1.5)
  with pytest.raises(ValueError, match=r'penalty is 0\.0; it must be positive'):
    closed_form.fit_ridge(found, 0.0)
  with pytest.raises(ValueError, match='hold no labelled example'):
    closed_form.fit_lda(found._replace(counts=np.zeros(3)))
  with pytest.raises(ValueError, match='are not finite'):
    closed_form.fit_ridge(found._replace(second=np.full([5, 5], np.nan)))
  with pytest.raises(ValueError, match=r'shapes \[2\], \[3, 5\] and \[5, 5\]'):
    closed_form.fit_lda(found._replace(counts=np.ones(2)))
