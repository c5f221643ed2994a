"""Tiny-ImageNet in miniature, laid out as it is published."""

import pytest

from tasks import registry
from tasks import tiny_imagenet
from tests.worlds import data_sets

_CLASSES = ('n01443537', 'n02124075')


def _folder(path):
  train = [f'train/{c}/images/{c}_{n}.JPEG' for c in _CLASSES for n in range(3)]
  data_sets.fill(path, [*train, *(f'val/images/val_{n}.JPEG' for n in range(4))])
  data_sets.fill(path, ['test/images/test_0.JPEG'])
  for name in _CLASSES:
    (path / 'train' / name / f'{name}_boxes.txt').write_text('0\t0\t9\t9\n')
  rows = [f'val_{n}.JPEG\t{_CLASSES[n in (1, 2)]}\t0\t0\t9\t9\n' for n in range(4)]
  (path / 'val' / 'val_annotations.txt').write_text(''.join(rows))
  return path


@pytest.mark.parametrize('around', ['', 'tiny-imagenet-200'])
def test_its_validation_images_are_tested_on_with_the_classes_of_the_list(
  tmp_path, around
):
  _folder(tmp_path / around)
  task = registry.load('tiny_imagenet', data_dir=str(tmp_path), image_size=8)
  assert task.label_names == _CLASSES
  assert task.train.label.tolist() == [0, 0, 0, 1, 1, 1]
  assert task.test.label.tolist() == [0, 1, 1, 0]
  assert task.train.client is None
  assert 'left out 1 image file ' in task.report[1]


def test_folders_other_than_tiny_imagenet_are_named(tmp_path):
  path = _folder(tmp_path / 'a')
  (path / 'val' / 'val_annotations.txt').write_text('val_0.JPEG n01443537\n')
  with pytest.raises(ValueError, match=r'line 1, is .*; it must be the name of a file'):
    tiny_imagenet.load(path)
  (path / 'val' / 'val_annotations.txt').write_text('val_9.JPEG\tn01443537\n')
  with pytest.raises(ValueError, match=r'cannot be found: val/images/val_9\.JPEG'):
    tiny_imagenet.load(path)
