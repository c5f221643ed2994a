"""Tasks by name."""

import pytest

from tasks import images
from tasks import registry
from tests.worlds import data_sets


def test_arguments_reach_the_task(tmp_path):
  assert registry.load('digits', image_size=12).image_shape == (12, 12, 1)
  folder = data_sets.ham_folder(tmp_path)
  task = registry.load('ham10000', data_dir=str(folder), image_size=8, seed=3)
  assert task.name == 'ham10000'
  assert task.image_shape == (8, 8, 3)
  with pytest.raises(ValueError, match='cifar100 is not prepared'):
    registry.load('cifar100', data_dir=folder, download=False)


@pytest.mark.parametrize(
  ('name', 'options', 'message'),
  [
    ('mnist', {}, "The task is 'mnist'; it must be one of digits, di"),
    ('wine', {'image_size': 8}, 'image_size is 8 with the task wine; it is only for'),
    ('digits', {'image_size': 0}, 'image_size is 0; it must be at least 1'),
    ('digits', {'classify': 'case'}, "classify is 'case' with the task digits; it is"),
    ('cases', {'folders': 'class'}, "folders is 'class' with the task cases; it is"),
    (
      'digits',
      {'reading': images.Reading(images.PAD)},
      "fit='pad', .* with the task digits; it is only for",
    ),
  ],
)
def test_options_of_other_tasks_are_refused(name, options, message):
  with pytest.raises(ValueError, match=message):
    registry.load(name, **options)


@pytest.mark.parametrize(
  ('name', 'needed', 'empty'),
  [
    ('cases', 'needs data_dir', r'holds no manifest\.csv'),
    ('folder', 'needs data_dir', 'holds no images; their names must end in'),
    ('ham10000', 'needs data_dir', r'holds no HAM10000_metadata\.csv'),
    ('emoji', 'needs data_dir: the folder of the n', r'holds no emoji\.json; it must'),
    ('gld23k', 'needs data_dir: the cache_dir of tff', 'holds no gld23k as TFF writes'),
    (
      'tiny_imagenet',
      'needs data_dir: the folder tiny-imagenet-200',
      r'holds no val/val_annotations\.txt',
    ),
    ('features', 'data_dir is not given; the task features', 'a \\.npz, \\.csv or'),
  ],
)
def test_a_task_of_files_without_its_files_is_refused(tmp_path, name, needed, empty):
  with pytest.raises(ValueError, match=needed):
    registry.load(name)
  with pytest.raises(ValueError, match=empty):
    registry.load(name, tmp_path)
