import numpy as np
import pytest
from sklearn import linear_model
import threadpoolctl

from tests.evaluation import blobs
from tff_ssl.evaluation import linear_probe


def test_equals_scikit_learn_on_standardised_features():
  features, labels = blobs.blobs(noise=4.0)
  classifier = linear_probe.fit_logistic(features, labels, 3)
  exact = features[:, :4].astype(np.float64)  # The fifth feature is constant.
  exact = (exact - exact.mean(axis=0)) / exact.std(axis=0)
  want = linear_model.LogisticRegression(max_iter=1000).fit(exact, labels)
  np.testing.assert_allclose(classifier.kernel[:4], want.coef_.T, atol=2e-3)
  np.testing.assert_array_equal(classifier.predict(features), want.predict(exact))
  assert classifier.converged


def test_a_fit_has_one_thread(monkeypatch):
  found = []
  fit = linear_model.LogisticRegression.fit

  def watched(*arguments):
    found.extend(each['num_threads'] for each in threadpoolctl.threadpool_info())
    return fit(*arguments)

  monkeypatch.setattr(linear_model.LogisticRegression, 'fit', watched)
  # As of a machine of many cores, also where the test has one.
  with threadpoolctl.threadpool_limits(2):
    linear_probe.fit_logistic(*blobs.blobs(noise=4.0), 3)
  assert found and set(found) == {1}


def test_fit_that_is_cut_short_says_so(monkeypatch):
  monkeypatch.setattr(linear_probe, '_MAX_ITERATIONS', 1)
  assert not linear_probe.fit_logistic(*blobs.blobs(noise=3.0), 3).converged


@pytest.mark.parametrize(
  'features, labels, message',
  [
    (np.ones([0, 3]), [], '0 examples and 0 labels'),
    (np.full([2, 3], np.nan), [0, 1], 'not finite'),
  ],
)
def test_refuses_bad_input(features, labels, message):
  with pytest.raises(ValueError, match=message):
    linear_probe.fit_logistic(features, np.array(labels, int), 3)
