import numpy as np

from tests.evaluation import blobs
from tff_ssl.evaluation import batches
from tff_ssl.evaluation import linear_lars


def _reference(features, labels, num_classes, positions, rate):
  """The protocol in NumPy float64: softmax regression, LARS, cosine decay."""
  x = (features - features.mean(axis=0)) / features.std(axis=0)
  kernel, bias = np.zeros([x.shape[1], num_classes]), np.zeros([num_classes])
  kernel_velocity, bias_velocity = 0.0, 0.0
  for step, batch in enumerate(positions):
    logits = x[batch] @ kernel + bias
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    error = (softmax - np.eye(num_classes)[labels[batch]]) / len(batch)
    grad = x[batch].T @ error
    norms = np.linalg.norm(kernel), np.linalg.norm(grad)
    ratio = 0.001 * norms[0] / norms[1] if norms[0] > 0 else 1.0
    now = rate * (1 + np.cos(np.pi * step / len(positions))) / 2
    kernel_velocity = 0.9 * kernel_velocity + now * ratio * grad
    bias_velocity = 0.9 * bias_velocity + now * error.sum(axis=0)
    kernel, bias = kernel - kernel_velocity, bias - bias_velocity
  return kernel, bias


def test_equals_reference():
  features, labels = blobs.blobs(noise=3.0, count=40)
  features = features[:, [0, 1, 3]].astype(np.float64)
  config = linear_lars.LarsConfig(learning_rate=1.5, batch_size=16, num_steps=12)
  got = linear_lars.fit(features, labels, 3, seed=5, config=config)
  positions = batches.batch_positions(40, 16, 12, seed=5)
  kernel, bias = _reference(features, labels, 3, positions, 1.5)
  np.testing.assert_allclose(got.kernel, kernel, atol=1e-4)
  np.testing.assert_allclose(got.bias, bias, atol=1e-4)


def test_paper_config_has_both_settings():
  assert linear_lars.paper_config(5000) == linear_lars.LarsConfig(2.0, 512, 1000, 0.9)
  assert linear_lars.paper_config(500) == linear_lars.LarsConfig(2.5, 128, 400, 0.9)
