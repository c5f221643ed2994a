"""CIFAR and STL-10 through TFDS, prepared in miniature; no network."""

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tasks import labels_at_server
from tasks import tfds_images
from tests.tasks import fabricate

_TRAIN, _TEST = 12, 5
_COUNTS = {'train': 6, 'unlabelled': 9, 'test': 4}


@pytest.fixture(name='data_dir', scope='module')
def _data_dir(tmp_path_factory):
  root = tmp_path_factory.mktemp('tfds')

  def examples(split, count, level):
    for k in range(count):
      image = np.full([32, 32, 3], level + k, np.uint8)
      example = {'id': f'{split}_{k:05d}', 'image': image, 'label': k % 10}
      yield f'{split}{k}', example

  tfds.dataset_builders.store_as_tfds_dataset(
    name='cifar10',
    version=str(tfds.builder_cls('cifar10').VERSION),
    data_dir=str(root),
    features=tfds.features.FeaturesDict(
      {
        'id': tfds.features.Text(),
        'image': tfds.features.Image(shape=(32, 32, 3)),
        'label': tfds.features.ClassLabel(names=[f'class{k}' for k in range(10)]),
      }
    ),
    split_datasets={
      'train': list(examples('train', _TRAIN, 0)),
      'test': list(examples('test', _TEST, 100)),
    },
  )
  return root


def _check(task):
  # Level, label and id of every image say the same.
  np.testing.assert_array_equal(task.train.image[:, 0, 0, 0], np.arange(_TRAIN))
  np.testing.assert_array_equal(task.train.label, np.arange(_TRAIN) % 10)
  np.testing.assert_array_equal(task.train.example_id, np.arange(_TRAIN))
  np.testing.assert_array_equal(task.test.image[:, 0, 0, 0], 100 + np.arange(_TEST))
  np.testing.assert_array_equal(task.test.example_id, _TRAIN + np.arange(_TEST))
  assert task.label_names == tuple(f'class{k}' for k in range(10))
  assert fabricate.is_mapped(task.train.image)
  assert fabricate.is_mapped(task.test.image)


def test_prepared_data_are_used_and_cached(data_dir, monkeypatch):
  _check(tfds_images.load('cifar10', data_dir, download=False))
  # The second time TFDS is not asked.
  monkeypatch.setattr(tfds, 'builder', None)
  _check(tfds_images.load('cifar10', data_dir, download=False))


def test_image_size(data_dir):
  task = tfds_images.load('cifar10', data_dir, image_size=8, download=False)
  assert task.image_shape == (8, 8, 3)
  _check(task)


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


@pytest.fixture(name='stl10_dir', scope='module')
def _stl10_dir(tmp_path_factory):
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
  assert task.num_classes == 10
  assert fabricate.is_mapped(task.train.image)


def test_prepared_stl10_is_used_and_cached(stl10_dir, monkeypatch):
  first = tfds_images.load('stl10', stl10_dir, image_size=8, download=False)
  _check_stl10(first)
  # The second time TFDS is not asked.
  monkeypatch.setattr(tfds, 'builder', None)
  second = tfds_images.load('stl10', stl10_dir, image_size=8, download=False)
  np.testing.assert_array_equal(first.train.image, second.train.image)
  assert first.image_shape == (8, 8, 3)


def test_its_own_unlabelled_split_is_the_clients(stl10_dir):
  task = tfds_images.load('stl10', stl10_dir, image_size=8, download=False)
  split = labels_at_server.by_share(task, 1.0, seed=0)
  assert (len(split.server.train), len(split.clients.train)) == (6, 9)


def test_the_published_size_is_the_default(stl10_dir):
  assert tfds_images.load('stl10', stl10_dir, download=False).image_shape == (96, 96, 3)


def test_stl10_neither_prepared_nor_to_be_downloaded(tmp_path):
  with pytest.raises(ValueError, match=r'stl10 is not prepared in .* may not be down'):
    tfds_images.load('stl10', tmp_path, download=False)
