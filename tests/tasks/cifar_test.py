"""CIFAR through TFDS, prepared in miniature; no network."""

import numpy as np
import pytest
import tensorflow_datasets as tfds

from tasks import cifar
from tests.tasks import fabricate

_TRAIN, _TEST = 12, 5


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
  _check(cifar.load('cifar10', data_dir, download=False))
  # The second time TFDS is not asked.
  monkeypatch.setattr(tfds, 'builder', None)
  _check(cifar.load('cifar10', data_dir, download=False))


def test_image_size(data_dir):
  task = cifar.load('cifar10', data_dir, image_size=8, download=False)
  assert task.image_shape == (8, 8, 3)
  _check(task)


def test_neither_prepared_nor_to_be_downloaded(tmp_path, monkeypatch):
  monkeypatch.setenv('TFDS_DATA_DIR', str(tmp_path))
  with pytest.raises(ValueError, match='may not be downloaded; on a') as caught:
    cifar.load('cifar100', download=False)
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
    cifar.load('cifar10', tmp_path)
