"""CIFAR and STL-10 through TFDS, prepared in miniature; no network."""

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tasks import labels_at_server
from tasks import tfds_images
from tests.worlds import pictures

_CLASSES = [f'class{k}' for k in range(10)]


def _stored(folder, name, size, has_ids=False, **splits):
  """Prepares a data set: of each split the first level, and the number of images.

  Image k of a split is a level more than the one before it, and of class k, or of none
  in a split of unlabelled images.
  """

  def examples(split, first, count):
    for k in range(count):
      image = np.full([size, size, 3], first + k, np.uint8)
      label = -1 if split == 'unlabelled' else k % 10
      known = {'id': f'{split}_{k:05d}'} if has_ids else {}
      yield f'{split}{k}', {'image': image, 'label': label, **known}

  features = {
    'image': tfds.features.Image(shape=(size, size, 3)),
    'label': tfds.features.ClassLabel(names=_CLASSES),
    **({'id': tfds.features.Text()} if has_ids else {}),
  }
  tfds.dataset_builders.store_as_tfds_dataset(
    name=name,
    version=str(tfds.builder_cls(name).VERSION),
    data_dir=str(folder),
    features=tfds.features.FeaturesDict(features),
    split_datasets={
      split: list(examples(split, *levels)) for split, levels in splits.items()
    },
  )
  return folder


@pytest.fixture(name='data_dir', scope='module')
def _data_dir(tmp_path_factory):
  folder = tmp_path_factory.mktemp('tfds')
  _stored(folder, 'cifar10', 32, has_ids=True, train=(0, 12), test=(100, 5))
  return _stored(folder, 'stl10', 96, train=(0, 6), unlabelled=(50, 9), test=(100, 4))


def _check_cifar10(task):
  # Level, label and id of every image say the same.
  np.testing.assert_array_equal(task.train.image[:, 0, 0, 0], np.arange(12))
  np.testing.assert_array_equal(task.train.label, np.arange(12) % 10)
  np.testing.assert_array_equal(task.train.example_id, np.arange(12))
  np.testing.assert_array_equal(task.test.image[:, 0, 0, 0], 100 + np.arange(5))
  np.testing.assert_array_equal(task.test.example_id, 12 + np.arange(5))


def _check_stl10(task):
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
  # Its own unlabelled split is the clients'.
  split = labels_at_server.by_share(task, 1.0, seed=0)
  assert (len(split.server.train), len(split.clients.train)) == (6, 9)


@pytest.mark.parametrize(
  ('name', 'size', 'check'),
  [('cifar10', 32, _check_cifar10), ('stl10', 96, _check_stl10)],
)
def test_prepared_data_are_used_and_cached(data_dir, monkeypatch, name, size, check):
  first = tfds_images.load(name, data_dir, image_size=8, download=False)
  assert tfds_images.load(name, data_dir, download=False).image_shape == (size, size, 3)
  # The second time TFDS is not asked.
  monkeypatch.setattr(tfds, 'builder', None)
  second = tfds_images.load(name, data_dir, image_size=8, download=False)
  np.testing.assert_array_equal(first.train.image, second.train.image)
  for task in (first, second):
    check(task)
    assert task.image_shape == (8, 8, 3)
    assert task.label_names == (*_CLASSES,)
    assert pictures.is_mapped(task.train.image)
    assert pictures.is_mapped(task.test.image)


def test_neither_prepared_nor_to_be_downloaded(tmp_path, monkeypatch):
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path))
  with pytest.raises(ValueError, match='may not be downloaded; on a') as caught:
    tfds_images.load('cifar100', download=False)
  assert f"tfds.load('cifar100', data_dir='{tmp_path}')" in str(caught.value)


def test_download_fails(tmp_path, monkeypatch):
  class Builder:
    version = '3.0.2'

    def is_prepared(self):
      return False

    def download_and_prepare(self):
      raise ConnectionError('no route to host\nmore')

  monkeypatch.setattr(tfds, 'builder', lambda *_, **__: Builder())
  with pytest.raises(
    ValueError, match=r'cannot be downloaded \(ConnectionError: no route to host\)'
  ):
    tfds_images.load('cifar10', tmp_path)
