"""A part of a data set: which examples are taken, and what of them is read."""

import hashlib

import numpy as np
from PIL import Image
import pytest

from tasks import image_folders
from tasks import images
from tasks import registry
from tasks import subset
from tests.worlds import data_sets


def _hash(name, seed=0):
  key = f'examples {seed}'.encode()
  return hashlib.blake2b(name.encode(), digest_size=16, key=key).digest()


def test_single_examples_are_the_first_hashes_of_each_label():
  names = [f'image {k}' for k in range(1000)]
  labels = np.repeat([0, 1, -1], [700, 200, 100])
  taken = subset.chosen(names, labels, 50, 0, 'train')
  expected = set()
  for label, count in ((0, 35), (1, 10), (-1, 5)):
    own = [name for name, other in zip(names, labels, strict=True) if other == label]
    expected |= {*sorted(own, key=_hash)[:count]}
  assert {names[k] for k in np.flatnonzero(taken)} == expected
  other = subset.chosen(names, labels, 50, 1, 'train')
  assert np.sum(other & taken) < 15


def test_order_of_files_changes_nothing_and_a_larger_part_has_a_smaller_one():
  generator = np.random.default_rng(0)
  names = np.array([f'{k}' for k in range(300)])
  labels = generator.integers(0, 3, 300)
  order = generator.permutation(300)
  taken = subset.chosen(names, labels, 60, 0, 'train')
  again = subset.chosen(names[order], labels[order], 60, 0, 'train')
  assert {*names[taken]} == {*names[order][again]}
  larger = subset.chosen(names, labels, 90, 0, 'train')
  assert not np.any(taken & ~larger)


def test_holders_are_taken_whole_and_labels_keep_their_shares():
  generator = np.random.default_rng(0)
  sizes = generator.integers(1, 30, 200)
  holder = np.repeat(np.arange(200), sizes)
  # Each holder has one label, of which class 1 has a quarter.
  labels = (holder % 4 == 0).astype(int)
  names = [f'client {k}' for k in holder]
  taken = subset.chosen(names, labels, 600, 0, 'train')
  in_part = np.bincount(holder, taken) / sizes
  assert {*in_part} == {0.0, 1.0}
  # The last that do not fit give way to smaller ones.
  assert 590 <= np.sum(taken) <= 600
  share, whole = np.mean(labels[taken]), np.mean(labels)
  assert abs(share - whole) < 0.05
  split = np.full(len(names), 'train')
  again, (finding,) = subset.of_splits(
    names, labels, split, subset.Limits(600), 0, False
  )
  np.testing.assert_array_equal(again, taken)
  assert finding.sentence == (
    f'{np.sum(taken)} of {len(names):,} train examples, {np.sum(in_part):.0f} of 200 '
    'cases'
  )


@pytest.mark.parametrize(
  ('limit', 'said'),
  [
    (7, 'test_examples of --data is 7; it must be at most 6, which the test split'),
    (2, 'is 2; it must be at least 3, as many as the smallest holder of test'),
  ],
)
def test_a_part_that_there_is_not_is_refused(limit, said):
  with pytest.raises(ValueError, match=said):
    subset.chosen(list('aaabbb'), np.zeros(6, int), limit, 0, 'test')


def test_a_small_validation_split_of_the_data_stays_whole():
  split = np.repeat(['train', 'validation', 'test'], [9, 3, 7])
  names = [f'{k}' for k in range(19)]
  limits = subset.Limits(test_examples=5)
  taken, findings = subset.of_splits(names, np.zeros(19, int), split, limits, 0, True)
  counts = {part: np.sum(taken[split == part]) for part in split}
  assert counts == {'train': 9, 'validation': 3, 'test': 5}
  assert [finding.sentence for finding in findings] == [
    '3 of 3 validation examples',
    '5 of 7 test examples',
  ]


def test_an_array_task_keeps_ids_and_says_what_is_left_out():
  whole = registry.load('digits')
  task = registry.load('digits', limits=subset.Limits(100, 40))
  assert (len(task.train), len(task.test)) == (100, 40)
  counts = np.bincount(task.train.label)
  assert counts.min() >= 9 and counts.max() <= 11
  for split in ('train', 'test'):
    part, all_ = task.splits()[split], whole.splits()[split]
    places = np.searchsorted(all_.example_id, part.example_id)
    np.testing.assert_array_equal(all_.example_id[places], part.example_id)
    np.testing.assert_array_equal(all_.image[places], part.image)
    np.testing.assert_array_equal(all_.label[places], part.label)
  assert task.report == (
    f'100 of {len(whole.train):,} train examples',
    f'40 of {len(whole.test)} test examples',
  )
  only = registry.load('digits', limits=subset.Limits(test_examples=40))
  assert len(only.train) == len(whole.train)
  with pytest.raises(ValueError, match='both must be left out, because the examples'):
    registry.load('sites', image_size=8, limits=subset.Limits(100))


@pytest.fixture
def folder(tmp_path):
  for k in range(60):
    pixels = np.random.default_rng(k).integers(0, 256, (9, 12, 3)).astype(np.uint8)
    path = tmp_path / 'pictures' / 'abc'[k % 3] / f'{chr(97 + k % 26)}x{k}.png'
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
  return tmp_path / 'pictures'


def test_of_a_folder_only_what_is_taken_is_decoded(folder, monkeypatch):
  whole = image_folders.load(folder, 8, folders='class')
  limits = subset.Limits(12, 6)
  # Chosen after all is read: what is taken in advance must be the same.
  expected = subset.take(whole, limits, 0)
  read, count = images.read, []

  def counted(*arguments):
    count.append(1)
    return read(*arguments)

  monkeypatch.setattr(images, 'read', counted)
  task = registry.load('folder', folder, 8, folders='class', limits=limits)
  assert len(count) == 18
  for split, examples in expected.splits().items():
    own = task.splits()[split]
    order = np.argsort(own.example_id)
    np.testing.assert_array_equal(own.example_id[order], examples.example_id)
    np.testing.assert_array_equal(own.image[order], examples.image)
    np.testing.assert_array_equal(own.label[order], examples.label)
  train, test = len(whole.train), len(whole.test)
  assert f'12 of {train} train examples' in task.report
  assert f'6 of {test} test examples' in task.report
  assert task.report[0] == '60 files: 18 images read, 42 not taken'
  # Names and digests are by id, as of the whole.
  ids = task.train.example_id
  assert [task.digests[k] for k in ids] == [whole.digests[k] for k in ids]
  assert task.names(task.train) == [whole.files.images[k] for k in ids]
  # A picture that is not taken loses nothing.
  assert not any(finding.costs for finding in task.intake.findings)


def test_clients_of_a_manifest_are_taken_whole(tmp_path):
  rows = [f'p{k}.png,c{k // 5}' for k in range(60)]
  for k in range(60):
    Image.fromarray(np.full((8, 8), 4 * k, np.uint8)).save(tmp_path / f'p{k}.png')
  data_sets.write_csv(tmp_path / 'manifest.csv', 'image,client_id', rows)
  whole = registry.load('cases', tmp_path, 8)
  limits = subset.Limits(examples=17)
  task = registry.load('cases', tmp_path, 8, limits=limits)
  # Of five pictures each.
  assert len(task.train) == 15
  assert len(np.unique(task.train.client)) == 3
  count = len(whole.train)
  assert f'15 of {count} train examples, 3 of {count // 5} clients' in task.report
  expected = subset.take(whole, limits, 0)
  np.testing.assert_array_equal(
    np.sort(task.train.example_id), np.sort(expected.train.example_id)
  )
  np.testing.assert_array_equal(task.test.image, whole.test.image)
