"""Made photographs of lesions, whose masks are known: dark ellipses on noisy skin."""

import numpy as np


def make(count, size=16, seed=0):
  """Returns images uint8 [count, size, size, 3] and masks bool [count, size, size]."""
  random = np.random.default_rng(seed)
  rows, columns = np.indices((size, size)) + 0.5
  images = np.empty([count, size, size, 3], np.uint8)
  masks = np.empty([count, size, size], bool)
  for k in range(count):
    middle = random.uniform(0.3, 0.7, 2) * size
    axes = random.uniform(0.15, 0.3, 2) * size
    distance = ((rows - middle[0]) / axes[0]) ** 2 + (
      (columns - middle[1]) / axes[1]
    ) ** 2
    masks[k] = distance <= 1
    skin, lesion = random.uniform(150, 220, 3), random.uniform(30, 100, 3)
    picture = np.where(masks[k][..., np.newaxis], lesion, skin)
    noisy = picture + random.normal(0, 12, picture.shape)
    images[k] = np.clip(noisy, 0, 255)
  return images, masks
