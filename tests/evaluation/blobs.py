"""Features in clusters, one for each class."""

import numpy as np


def blobs(num_classes=3, count=300, noise=1.0, seed=0):
  random = np.random.default_rng(seed)
  labels = random.integers(0, num_classes, [count])
  centres = 6.0 * np.eye(num_classes, 5)[labels]
  # Far from zero and of very different scales, as raw encodings may be.
  features = (centres + noise * random.normal(size=[count, 5])) * [1, 10, 1e-3, 1, 0]
  return (features + 100.0).astype(np.float32), labels
