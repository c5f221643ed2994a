"""Tiny-ImageNet in miniature, laid out as it is published."""

import pytest

from tasks import registry
from tasks import tiny_imagenet
from tests.tasks import fabricate

_CLASSES = ('n01443537', 'n02124075')


def _folder(path):
  for k, name in enumerate(_CLASSES):
    images = path / 'train' / name / 'images'
    images.mkdir(parents=True)
    for n in range(3):
      (images / f'{name}_{n}.JPEG').write_bytes(fabricate.jpeg(60 * n + 20 * k))
    (path / 'train' / name / f'{name}_boxes.txt').write_text('0\t0\t9\t9\n')
  lines = []
  for n in range(4):
    images = path / 'val' / 'images'
    images.mkdir(parents=True, exist_ok=True)
    (images / f'val_{n}.JPEG').write_bytes(fabricate.jpeg(50 * n))
    lines.append(f'val_{n}.JPEG\t{_CLASSES[n in (1, 2)]}\t0\t0\t9\t9')
  (path / 'val' / 'val_annotations.txt').write_text('\n'.join(lines) + '\n')
  (path / 'test' / 'images').mkdir(parents=True)
  (path / 'test' / 'images' / 'test_0.JPEG').write_bytes(fabricate.jpeg(0))
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
  with pytest.raises(ValueError, match='needs data_dir: the folder tiny-imagenet-200'):
    tiny_imagenet.load(None)
  with pytest.raises(ValueError, match=r'holds no val/val_annotations\.txt'):
    tiny_imagenet.load(tmp_path)
  path = _folder(tmp_path / 'a')
  (path / 'val' / 'val_annotations.txt').write_text('val_0.JPEG n01443537\n')
  with pytest.raises(ValueError, match=r'line 1, is .*; it must be the name of a file'):
    tiny_imagenet.load(path)
  (path / 'val' / 'val_annotations.txt').write_text('val_9.JPEG\tn01443537\n')
  with pytest.raises(ValueError, match=r'cannot be found: val/images/val_9\.JPEG'):
    tiny_imagenet.load(path)
