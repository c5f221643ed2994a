"""Masks and boxes against loops over pixels, and hand-made cases."""

import numpy as np
import pytest

from tff_ssl.evaluation import overlap


def _iou_by_pixels(first, second):
  both = either = 0
  for a, b in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True):
    both += a and b
    either += a or b
  return both / either if either else 1.0


def test_iou_of_masks_counts_pixels():
  random = np.random.default_rng(0)
  first, second = random.random([2, 20, 5, 7]) < random.random([20, 1, 1])
  first[0], second[0] = False, False
  first[1] = False
  found = overlap.mask_iou(first, second)
  expected = [_iou_by_pixels(a, b) for a, b in zip(first, second, strict=True)]
  np.testing.assert_allclose(found, expected, rtol=1e-12)
  assert found[0] == 1
  assert overlap.mask_iou(first[2:3], ~first[2:3]) == 0


def test_box_of_a_mask_is_its_outermost_pixels():
  masks = np.zeros([2, 4, 8], bool)
  masks[0, 1, 2] = masks[0, 3, 5] = True
  masks[1] = True
  expected = [[2 / 8, 1 / 4, 6 / 8, 4 / 4], [0, 0, 1, 1]]
  np.testing.assert_array_equal(overlap.boxes_of(masks), expected)


def test_iou_of_boxes_is_that_of_the_masks_they_fill():
  random = np.random.default_rng(1)
  masks = np.zeros([2, 50, 9, 11], bool)
  for k in range(50):
    for one in masks[:, k]:
      top, bottom = sorted(random.choice(10, 2, replace=False))
      left, right = sorted(random.choice(12, 2, replace=False))
      one[top:bottom, left:right] = True
  found = overlap.box_iou(overlap.boxes_of(masks[0]), overlap.boxes_of(masks[1]))
  np.testing.assert_allclose(found, overlap.mask_iou(masks[0], masks[1]), atol=1e-6)
  assert 0 < np.mean(found) < 1


def test_box_without_an_area_overlaps_nothing():
  line, whole = [[0.5, 0, 0.5, 1]], [[0, 0, 1, 1]]
  assert overlap.box_iou(np.array(line), np.array(whole)) == 0
  assert overlap.box_iou(np.array(line), np.array(line)) == 0
  turned = [[0.75, 0.75, 0.25, 0.25]]
  assert overlap.box_iou(np.array(turned), np.array(whole)) == 0


def test_errors():
  with pytest.raises(ValueError, match=r'Masks are \[1, 2, 2\] and \[1, 2, 3\]'):
    overlap.mask_iou(np.zeros([1, 2, 2]), np.zeros([1, 2, 3]))
  with pytest.raises(ValueError, match='Mask 1 is empty'):
    overlap.boxes_of(np.array([np.ones([2, 2]), np.zeros([2, 2])], bool))
  with pytest.raises(ValueError, match=r'Boxes are \[2, 4\] and \[1, 4\]'):
    overlap.box_iou(np.zeros([2, 4]), np.zeros([1, 4]))
