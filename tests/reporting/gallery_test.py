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


def test_a_page_holds_all_and_names_are_no_programs():
  panel = gallery.panel('a <b>', _blobs())
  names = [f'</script><script>alert({k})</script>' for k in range(12)]
  images = np.zeros([12, 4, 4, 1], np.uint8)
  page = gallery.build_page([panel], names, images, 'photos & more')
  assert page.count('<script') == 2
  assert 'photos &amp; more' in page
  assert not re.search(r'(src|href)="|https?://', page)
  data = json.loads(re.search(r'application/json">(.*?)</script>', page).group(1))
  assert data['names'] == names
  assert data['panels'][0]['title'] == 'a <b>'
  assert np.shape(data['panels'][0]['neighbours']) == (12, 8)


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
