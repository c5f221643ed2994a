"""scikit-learn's digits."""

import numpy as np
import pytest
from sklearn import datasets

from tasks import digits


def test_digits_are_all_there_once():
  task = digits.load()
  assert task.image_shape == (8, 8, 1)
  assert task.num_classes == 10
  ids = np.concatenate([task.train.example_id, task.test.example_id])
  np.testing.assert_array_equal(np.sort(ids), np.arange(1797))
  source = datasets.load_digits()
  position = task.test.example_id[7]
  np.testing.assert_allclose(
    task.test.image[7, :, :, 0], source.images[position] * 255 / 16, atol=0.5
  )
  assert task.test.label[7] == source.target[position]


def test_halves_are_the_digits_in_two():
  whole, halves = digits.load(), digits.load_halves()
  assert halves.shapes == {'left': (4, 8, 1), 'right': (4, 8, 1)}
  assert halves.field == 'left'
  both = np.concatenate([halves.test['left'], halves.test['right']], axis=1)
  np.testing.assert_array_equal(both, whole.test.image)
  np.testing.assert_array_equal(halves.test.label, whole.test.label)
  assert digits.load_halves(6).shapes['right'] == (3, 6, 1)
  with pytest.raises(ValueError, match='image_size is 7; it must be even'):
    digits.load_halves(7)
