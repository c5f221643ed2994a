"""Specifications of partitions as text."""

import numpy as np
import pytest

from tff_ssl.partition import sources
from tff_ssl.partition import spec

_LABELS = np.tile(np.arange(4), 10)
_CASES = np.arange(40) // 2
_SPECS = [
  'iid:examples=4',
  'dirichlet:alpha=0.1,examples=4',
  'shares:alpha=1,clients=3',
  'shares:alpha=0.1,clients=3,balanced=true',
  'skew:beta=0.5,clients=3',
  'classes:per_client=2,clients=3',
  'quantity:alpha=1,clients=3',
  'clusters:clients=3',
  'rotation:clients=3',
  'style:clients=3',
  'case:max_examples=1',
]
_FEATURES = np.random.default_rng(0).normal(size=(40, 3))
_IMAGES = np.random.default_rng(0).integers(0, 256, (40, 4, 4, 3), dtype=np.uint8)


@pytest.mark.parametrize('text', _SPECS)
def test_the_seed_determines_the_partition(text):
  first = spec.build(text, _LABELS, _CASES, 1, _FEATURES)
  same = spec.build(spec.parse(text), _LABELS, _CASES, 1, _FEATURES)
  other = spec.build(text, _LABELS, _CASES, 2, _FEATURES)
  assert list(first) == list(same) == sorted(first)
  for client, held in first.items():
    np.testing.assert_array_equal(held, same[client])
  assert any(
    not np.array_equal(held, other.get(client)) for client, held in first.items()
  )


def test_case_partition_needs_no_labels():
  partition = spec.build('case', np.full(40, -1), _CASES, seed=0)
  assert len(partition) == 20
  other = spec.build('client', np.full(40, -1), _CASES, seed=0)
  for name, held in partition.items():
    np.testing.assert_array_equal(other[name], held)


def test_arrays_must_fit():
  with pytest.raises(ValueError, match='same length'):
    spec.build('case', _LABELS, _CASES[1:], seed=0)


def test_only_clusters_need_features():
  needing = [text for text in _SPECS if spec.needs_features(spec.parse(text))]
  assert needing == ['clusters:clients=3']
  for features, shown in ((None, 'None'), (_FEATURES[1:], r'\[39, 3\]')):
    with pytest.raises(ValueError, match=rf'features \[40, d\].* they are {shown}'):
      spec.build('clusters:clients=3', _LABELS, _CASES, 0, features)


@pytest.mark.parametrize('text', _SPECS)
def test_only_sources_change_the_images(text):
  partition = spec.build(text, _LABELS, _CASES, 0, _FEATURES)
  images = spec.client_images(text, _IMAGES, partition)
  transform = {'rotation': sources.rotate, 'style': sources.stylise}.get(
    text.partition(':')[0]
  )
  if transform is None:
    assert images is _IMAGES
    return
  for k, held in enumerate(partition.values()):
    np.testing.assert_array_equal(images[held], transform(_IMAGES[held], k, 3))


@pytest.mark.parametrize('kind', ['rotation', 'style'])
def test_sources_hold_iid_examples(kind):
  partition = spec.build(f'{kind}:clients=3', _LABELS, _CASES, seed=0)
  expected = spec.build('iid:clients=3', _LABELS, _CASES, seed=0)
  for client, held in expected.items():
    np.testing.assert_array_equal(partition[client], held)


@pytest.mark.parametrize('kind', ['rotation', 'style'])
@pytest.mark.parametrize('mixed', ['alpha=1', 'beta=0.5', 'sources=2'])
def test_a_mixed_image_is_changed_as_its_source_whoever_holds_it(kind, mixed):
  text = f'{kind}:clients=3,{mixed}'
  partition = spec.build(text, _LABELS, _CASES, 0)
  source = spec.source_of(text, 40, 0)
  count = 2 if mixed == 'sources=2' else 3
  expected = spec.build(f'iid:clients={count}', _LABELS, _CASES, 0)
  for k, held in enumerate(expected.values()):
    assert set(source[held]) == {k}
  assert any(len(set(source[held])) > 1 for held in partition.values())
  images = spec.client_images(text, _IMAGES, partition, source)
  transform = {'rotation': sources.rotate, 'style': sources.stylise}[kind]
  for k, image in enumerate(images):
    one = transform(_IMAGES[k : k + 1], int(source[k]), count)[0]
    np.testing.assert_array_equal(image, one)
  with pytest.raises(ValueError, match='source is None with'):
    spec.client_images(text, _IMAGES, partition)


def test_only_mixed_sources_are_reported():
  assert all(spec.source_of(text, 40, 0) is None for text in _SPECS)
