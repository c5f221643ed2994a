"""GLD-23k in miniature, in the files that TFF writes."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import gld
from tasks import registry
from tests.worlds import pictures

# What TFF's loader reads and writes records with.
_TFF = tff.simulation.datasets.gldv2.vision_datasets_utils
# Classes of the images of each user, and of the test images.
_USERS = {'11': [0, 2], '7': [1], '300': [2, 1, 0]}
_TEST = [2, 0]


def _folder(path):
  """What `gldv2.load_data(cache_dir=path, gld23k=True)` leaves."""
  (path / 'gld23k' / 'train').mkdir(parents=True)
  level = 0
  for user, labels in _USERS.items():
    level = _write(path / 'gld23k' / 'train' / user, labels, level)
  _write(path / 'gld23k' / 'test.tfRecord', _TEST, level)
  return path


def _write(path, labels, level):
  with tf.io.TFRecordWriter(str(path)) as writer:
    for label in labels:
      level += 20
      content = pictures.jpeg(level, (16, 16))
      example = _TFF.create_example(content, label)
      writer.write(example.SerializeToString())
  return level


def _read_by_tff(path):
  return list(_TFF.load_tfrecord(str(path), 'gldv2').as_numpy_iterator())


def test_users_are_clients_with_the_images_and_classes_that_tff_reads(tmp_path):
  folder = _folder(tmp_path / 'cache')
  task = registry.load('gld23k', data_dir=str(folder), image_size=16)
  assert len(task.train) == 6
  assert task.label_names == ('0', '1', '2')
  assert not task.case_level
  for user in _USERS:
    held = task.client_names.index(user)
    own = task.train.take(np.flatnonzero(task.train.client == held))
    read = _read_by_tff(folder / 'gld23k' / 'train' / user)
    assert own.label.tolist() == [int(each['class'][0]) for each in read]
    for image, each in zip(own.image, read, strict=True):
      # Two decoders of JPEG.
      np.testing.assert_allclose(image.astype(int), each['image/decoded'], atol=4)
  read = _read_by_tff(folder / 'gld23k' / 'test.tfRecord')
  assert task.test.label.tolist() == [int(each['class'][0]) for each in read]
  assert registry.outline('gld23k').has_clients
  # The folder in the cache folder, from the index of before.
  again = gld.load(folder / 'gld23k', 16)
  assert again.fingerprint() == task.fingerprint()


def test_files_not_written_by_tff_are_named(tmp_path):
  folder = _folder(tmp_path / 'cache') / 'gld23k'
  file = folder / 'train' / '7'
  whole = file.read_bytes()
  file.write_bytes(whole[:-7])
  with pytest.raises(ValueError, match='train/7 is not a complete TFRecord file'):
    gld.load(folder)
  with tf.io.TFRecordWriter(str(file)) as writer:
    writer.write(tf.train.Example().SerializeToString())
  with pytest.raises(ValueError, match='record 7/0000000 of gld23k was not written'):
    gld.load(folder)
  # A damaged number must not become as many names of classes.
  _write(file, [2**40], 3)
  with pytest.raises(ValueError, match=f'class {2**40}; classes must be below'):
    gld.load(folder)
