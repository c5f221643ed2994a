"""Tasks by name."""

import pytest

from tasks import images
from tasks import registry
from tests.tasks import fabricate


def test_arguments_reach_the_task(tmp_path):
  assert registry.load('digits', image_size=12).image_shape == (12, 12, 1)
  folder = fabricate.ham_folder(tmp_path)
  task = registry.load('ham10000', data_dir=str(folder), image_size=8, seed=3)
  assert task.name == 'ham10000'
  assert task.image_shape == (8, 8, 3)
  with pytest.raises(ValueError, match=r'holds no manifest\.csv'):
    registry.load('cases', data_dir=folder)
  with pytest.raises(ValueError, match='cifar100 is not prepared'):
    registry.load('cifar100', data_dir=folder, download=False)


def test_tasks_of_pairs_have_two_modalities(tmp_path):
  folders = {}
  for name, make in (
    ('ham10000_records', fabricate.ham_records),
    ('emoji', fabricate.emoji_package),
  ):
    folders[name] = tmp_path / name
    folders[name].mkdir()
    make(folders[name])
  for name in registry.PAIRS:
    task = registry.load(name, data_dir=folders.get(name), image_size=8)
    assert task.name == name
    assert list(task.shapes) == ['left', 'right']


def test_errors():
  with pytest.raises(
    ValueError, match="The task is 'mnist'; it must be one of digits, di"
  ):
    registry.load('mnist')
  with pytest.raises(
    ValueError, match='image_size is 8 with the task wine; it is only for'
  ):
    registry.load('wine', image_size=8)
  with pytest.raises(
    ValueError, match="classify is 'case' with the task digits; it is"
  ):
    registry.load('digits', classify='case')
  with pytest.raises(ValueError, match="folders is 'class' with the task cases; it is"):
    registry.load('cases', folders='class')
  with pytest.raises(
    ValueError, match=r"fit='pad', .* with the task digits; it is only for"
  ):
    registry.load('digits', reading=images.Reading(images.PAD))
  with pytest.raises(ValueError, match='image_size is 0; it must be at least 1'):
    registry.load('digits', image_size=0)
