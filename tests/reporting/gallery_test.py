import json
import re

import numpy as np
import pytest

from tff_ssl.reporting import gallery


def _blobs(count=12):
  rng = np.random.default_rng(0)
  centers = np.repeat([[30.0, 0, 0], [0, 30.0, 0]], count // 2, axis=0)
  return centers + rng.normal(size=(count, 3))


def test_neighbours_are_those_of_greatest_cosine():
  features = np.random.default_rng(0).normal(size=(7, 4))
  features[3] = 0
  found = gallery.neighbours(features, 3)
  for k, own in enumerate(found):
    cosines = [
      -2.0
      if j == k
      else float(
        features[j]
        @ features[k]
        / max(np.linalg.norm(features[j]) * np.linalg.norm(features[k]), 1e-300)
      )
      for j in range(7)
    ]
    assert list(own) == sorted(range(7), key=lambda j: -cosines[j])[:3]
  assert gallery.neighbours(features[:3], 8).shape == (3, 2)


@pytest.mark.parametrize('count', [6, 12])
def test_similar_images_are_near_each_other(count):
  places = gallery.layout(_blobs(count))
  assert places.min() == 0
  assert places.max() == 1
  half = count // 2
  first, second = places[:half], places[half:]
  far = np.linalg.norm(places[:, None] - places, axis=-1)
  np.fill_diagonal(far, np.inf)
  # The nearest of each is of its own kind.
  assert (np.argmin(far, axis=1) // half == np.arange(count) // half).all()
  apart = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
  assert apart > 0.5
  np.testing.assert_array_equal(places, gallery.layout(_blobs(count)))


def test_images_that_are_all_the_same_have_a_map():
  np.testing.assert_array_equal(gallery.layout(np.ones([9, 3])), 0.5)


def test_a_picture_has_each_image_at_its_place():
  tiles = np.full([2, 10, 10, 3], [[[[255, 0, 0]]], [[[0, 0, 255]]]], np.uint8)
  picture = gallery._picture(np.array([[0.0, 0.0], [1.0, 1.0]]), tiles)
  red = np.argwhere((picture == [255, 0, 0]).all(axis=-1))
  blue = np.argwhere((picture == [0, 0, 255]).all(axis=-1))
  assert len(red) == len(blue) == 100
  # y grows upwards: the first lies below, at the left.
  assert red[:, 0].min() > 900
  assert red[:, 1].max() < 100
  assert blue[:, 0].max() < 100
  assert blue[:, 1].min() > 900


def test_too_few_images_and_nonfinite_features_are_refused():
  with pytest.raises(ValueError, match='There are 1 images'):
    gallery.panel('a', np.ones([1, 3]))
  with pytest.raises(ValueError, match='features of a are not all finite'):
    gallery.panel('a', np.full([3, 3], np.nan))


def test_the_most_frequent_values_have_colours_of_their_own():
  # Two of a, one each of nine others, and one image without a value.
  values = ['a', *'bcdefghij', '', 'a']
  found = gallery.coloring(values)
  names = [name for name, _ in found.legend]
  assert names == [f'{name} ({1 + (name == "a")})' for name in 'abcdefg'] + [
    '3 others (4)'
  ]
  assert found.groups.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 0]
  assert len({color for _, color in found.legend}) == 8
  assert gallery.coloring(['x', '']).legend[-1][0] == 'none (1)'
  assert len(gallery.coloring(['x', 'y']).legend) == 2


def test_frames_of_page_and_picture_have_the_colours_of_the_values():
  colors = gallery.coloring(['<b>', 'x'] * 6)
  panel = gallery.panel('t', _blobs())
  images = np.zeros([12, 4, 4, 1], np.uint8)
  page = gallery.build_page([panel], ['n'] * 12, images, 'photos', colors)
  data = json.loads(re.search(r'application/json">(.*?)</script>', page).group(1))
  assert data['legend'] == [['<b> (6)', '#0072b2'], ['x (6)', '#d55e00']]
  assert data['groups'] == [0, 1] * 6
  assert data['values'] == ['<b>', 'x'] * 6
  framed = gallery._framed(np.zeros([12, 4, 4, 3], np.uint8), colors)
  assert framed.shape == (12, 10, 10, 3)
  np.testing.assert_array_equal(framed[0, 0, 0], [0x00, 0x72, 0xB2])
  np.testing.assert_array_equal(framed[1, -1, 5], [0xD5, 0x5E, 0x00])
  assert not framed[:, 3:-3, 3:-3].any()
