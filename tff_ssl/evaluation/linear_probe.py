"""Linear probe: a linear classifier on frozen features, by logistic regression.

scikit-learn's multinomial logistic regression, run to convergence.

Deviations:
  The features are standardised by the mean and standard deviation of the training
  features (constant features stay 0). The same classifiers can be expressed, but the
  penalty means the same for encoders of any scale, and L-BFGS converges.
"""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any
import warnings

import numpy as np
from scipy import special
from sklearn import exceptions
from sklearn import linear_model
import threadpoolctl

from tff_ssl.evaluation import label_fractions

# Iterations of L-BFGS after which a fit stops, converged or not.
_MAX_ITERATIONS = 1000


@dataclasses.dataclass(frozen=True)
class LinearClassifier:
  """A linear classifier of standardised features.

  Attributes:
    mean: float32 [d], subtracted from the features.
    scale: float32 [d], by which they are then divided.
    kernel: float32 [d, num_classes].
    bias: float32 [num_classes]; in regression and closed forms minus infinity for a
      class without examples.
    converged: Whether the fit reached its optimum; true if the steps are fixed.
  """

  mean: np.ndarray
  scale: np.ndarray
  kernel: np.ndarray
  bias: np.ndarray
  converged: bool = True

  def predict(self, features: np.ndarray) -> np.ndarray:
    """Returns the predicted classes, int32 [N], of features [N, d]."""
    return np.argmax(self.logits(features), axis=1).astype(np.int32)

  def probabilities(self, features: np.ndarray) -> np.ndarray:
    """Returns the probability of each class, [N, num_classes], of features [N, d]."""
    return special.softmax(self.logits(features), axis=1)

  def logits(self, features: np.ndarray) -> np.ndarray:
    """Returns the logit of each class, [N, num_classes], of features [N, d]."""
    return (features - self.mean) / self.scale @ self.kernel + self.bias


def of_head(head: Mapping[str, Any]) -> LinearClassifier:
  """Returns a head that was trained on features as they are.

  Args:
    head: `kernel` [d, num_classes] and `bias` [num_classes].
  """
  kernel, bias = (np.asarray(head[name]) for name in ('kernel', 'bias'))
  width = len(kernel)
  return LinearClassifier(
    np.zeros([width], np.float32), np.ones([width], np.float32), kernel, bias
  )


def fit_logistic(
  features: np.ndarray, labels: np.ndarray, num_classes: int
) -> LinearClassifier:
  """Fits logistic regression, with scikit-learn's penalty, C = 1.

  An absent class is never predicted.

  Args:
    features: [N, d] training features, N at least 1.
    labels: int [N] in [0, num_classes).
    num_classes: Number of classes.

  Returns:
    The classifier; `converged` is false if its iterations ended before the fit did.

  Raises:
    ValueError: Lengths differ or are 0, a label is out of range, or a feature is not
      finite.
  """
  mean, scale = standardization(features, labels, num_classes)
  kernel = np.zeros([features.shape[1], num_classes], np.float32)
  bias = np.full([num_classes], -np.inf, np.float32)
  present = np.unique(labels)
  if present.size == 1:  # Nothing to separate, and scikit-learn refuses.
    bias[present] = 0.0
    return LinearClassifier(mean, scale, kernel, bias)
  model = linear_model.LogisticRegression(max_iter=_MAX_ITERATIONS)
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    # In float64: L-BFGS stops short of the optimum on float32 gradients. In one thread:
    # if other programs run at the same time, several threads wait for each other at
    # every product, ten times as long as they compute.
    with _thread_pools().limit(limits=1):
      model.fit(((features - mean) / scale).astype(np.float64), labels)
  stopped = any(issubclass(w.category, exceptions.ConvergenceWarning) for w in caught)
  if present.size == 2:  # One row stands for the second class against the first.
    kernel[:, present[1]], bias[present] = model.coef_[0], [0.0, model.intercept_[0]]
  else:
    kernel[:, present], bias[present] = model.coef_.T, model.intercept_
  return LinearClassifier(mean, scale, kernel, bias, converged=not stopped)


@functools.cache
def _thread_pools() -> threadpoolctl.ThreadpoolController:
  """Returns the thread pools of this process, which take longer to find than a fit."""
  return threadpoolctl.ThreadpoolController()


def standardization(
  features: np.ndarray, labels: np.ndarray, num_classes: int
) -> tuple[np.ndarray, np.ndarray]:
  """Checks the training data of a probe; returns its features' standardisation.

  Args and Raises are those of `fit_logistic`.

  Returns:
    Mean and scale of each feature, float32 [d]; a constant feature has scale 1.
  """
  label_fractions.check('The linear probe', labels, num_classes, len(features))
  if not np.all(np.isfinite(features)):
    raise ValueError('The linear probe got features that are not finite.')
  mean = np.mean(features, axis=0, dtype=np.float64)
  std = np.std(features, axis=0, dtype=np.float64)
  varies = std > constant_below(mean)
  return mean.astype(np.float32), np.where(varies, std, 1.0).astype(np.float32)


def constant_below(mean: np.ndarray) -> np.ndarray:
  """Returns the deviation up to which a feature of this mean counts as constant.

  Rounding makes even a constant feature vary; this must not be scaled up to 1.
  """
  return 1e-6 * np.maximum(np.abs(mean), 1e-6)
