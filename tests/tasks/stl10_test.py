"""STL-10 through TFDS, prepared in miniature; no network."""

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tasks import labels_at_server
from tasks import stl10
from tests.tasks import fabricate

_COUNTS = {'train': 6, 'unlabelled': 9, 'test': 4}


@pytest.fixture(name='data_dir', scope='module')
def _data_dir(tmp_path_factory):
  root = tmp_path_factory.mktemp('tfds')

  def examples(split, first):
    for k in range(_COUNTS[split]):
      image = np.full([96, 96, 3], first + k, np.uint8)
      label = -1 if split == 'unlabelled' else k % 10
      yield f'{split}{k}', {'image': image, 'label': label}

  tfds.dataset_builders.store_as_tfds_dataset(
    name='stl10',
    version=str(tfds.builder_cls('stl10').VERSION),
    data_dir=str(root),
    features=tfds.features.FeaturesDict(
      {
        'image': tfds.features.Image(shape=(96, 96, 3)),
        'label': tfds.features.ClassLabel(names=[f'class{k}' for k in range(10)]),
      }
    ),
    split_datasets={
      split: list(examples(split, first))
      for split, first in (('train', 0), ('unlabelled', 50), ('test', 100))
    },
  )
  return root


def _check(task):
  # In whatever order TFDS stores them, level and label of an image say the same.
  level = task.train.image[:, 0, 0, 0].astype(int)
  assert sorted(level) == [*range(6), *range(50, 59)]
  np.testing.assert_array_equal(
    task.train.label, [k % 10 if k < 50 else -1 for k in level]
  )
  assert (level[:6] < 50).all()
  np.testing.assert_array_equal(task.train.example_id, np.arange(15))
  assert sorted(task.test.image[:, 0, 0, 0]) == [*range(100, 104)]
  np.testing.assert_array_equal(task.test.example_id, 15 + np.arange(4))
  assert task.num_classes == 10
  assert fabricate.is_mapped(task.train.image)


def test_prepared_data_are_used_and_cached(data_dir, monkeypatch):
  first = stl10.load(data_dir, image_size=8, download=False)
  _check(first)
  # The second time TFDS is not asked.
  monkeypatch.setattr(tfds, 'builder', None)
  second = stl10.load(data_dir, image_size=8, download=False)
  np.testing.assert_array_equal(first.train.image, second.train.image)
  assert first.image_shape == (8, 8, 3)


def test_its_own_unlabelled_split_is_the_clients(data_dir):
  task = stl10.load(data_dir, image_size=8, download=False)
  split = labels_at_server.by_share(task, 1.0, seed=0)
  assert (len(split.server.train), len(split.clients.train)) == (6, 9)


def test_the_published_size_is_the_default(data_dir):
  assert stl10.load(data_dir, download=False).image_shape == (96, 96, 3)


def test_neither_prepared_nor_to_be_downloaded(tmp_path):
  with pytest.raises(ValueError, match=r'stl10 is not prepared in .* may not be down'):
    stl10.load(tmp_path, download=False)
