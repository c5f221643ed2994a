"""The data set that all tests share: two clients, nine greyscale images of 8 x 8.

Small enough that a round of any algorithm takes milliseconds, and irregular on purpose:
the clients differ in size, and neither has both labels in equal parts.
"""

import collections

import numpy as np

from tff_ssl.simulation import client_data

IMAGE_SHAPE = (8, 8, 1)
NUM_CLASSES = 2
CLIENT_SIZES = collections.OrderedDict(alice=4, bob=5)


def arrays() -> collections.OrderedDict[str, np.ndarray]:
  """Returns image uint8 [9, 8, 8, 1], example_id int64 [9] and label int32 [9].

  The label is visible: images of class 1 are brighter.
  """
  generator = np.random.default_rng(0)
  label = np.array([0, 1, 0, 0, 1, 1, 0, 1, 1], np.int32)
  image = generator.integers(0, 128, (len(label), *IMAGE_SHAPE))
  image = (image + 100 * label[:, None, None, None]).astype(np.uint8)
  example_id = np.arange(10, 10 + len(label), dtype=np.int64)
  return collections.OrderedDict(image=image, example_id=example_id, label=label)


def floats() -> collections.OrderedDict[str, np.ndarray]:
  """Returns `arrays` with the bytes of images as floats in [0, 1]."""
  data = arrays()
  data['image'] = (data['image'] / 255).astype(np.float32)
  return data


def partition() -> collections.OrderedDict[str, np.ndarray]:
  """Returns the positions of each client's examples."""
  positions, start = collections.OrderedDict(), 0
  for client_id, size in CLIENT_SIZES.items():
    positions[client_id] = np.arange(start, start + size, dtype=np.int64)
    start += size
  return positions


def clients(labelled: bool = False) -> client_data.ArrayClientData:
  """Returns the two clients as client data.

  Args:
    labelled: Whether elements have a label.
  """
  data = arrays()
  return client_data.ArrayClientData(
    data['image'],
    data['example_id'],
    partition(),
    label=data['label'] if labelled else None,
  )
