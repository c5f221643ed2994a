"""Heads on feature maps: losses against NumPy, and learning on made lesions."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.evaluation import lesions
from tff_ssl.encoders import registry
from tff_ssl.evaluation import dense
from tff_ssl.evaluation import dense_heads
from tff_ssl.evaluation import feature_maps
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import overlap
from tff_ssl.evaluation import population_statistics
from tff_ssl.evaluation import stages


def _boxes(count, seed):
  corners = np.sort(np.random.default_rng(seed).random([count, 2, 2]), axis=1)
  return corners.reshape([count, 4])


def _giou(first, second):
  """Rezatofighi et al., Algorithm 1, one pair at a time."""
  found = []
  for (a, b, c, d), (e, f, g, h) in zip(first, second, strict=True):
    shared = max(0, min(c, g) - max(a, e)) * max(0, min(d, h) - max(b, f))
    union = (c - a) * (d - b) + (g - e) * (h - f) - shared
    hull = (max(c, g) - min(a, e)) * (max(d, h) - min(b, f))
    found.append(shared / union - (hull - union) / hull)
  return np.array(found)


def test_loss_of_boxes():
  first, second = _boxes(30, 0), _boxes(30, 1)
  giou = _giou(first, second)
  assert giou.min() < -0.1
  assert giou.max() > 0.3
  tensors = tf.constant(first), tf.constant(second)
  np.testing.assert_allclose(
    dense_heads.giou(*(tf.cast(t, tf.float64) for t in tensors)), giou, atol=1e-3
  )
  middles = [
    np.stack([(b[:, 0] + b[:, 2]) / 2, (b[:, 1] + b[:, 3]) / 2], axis=1)
    for b in (first, second)
  ]
  sides = [b[:, 2:] - b[:, :2] for b in (first, second)]
  l1 = sum(np.abs(pair[0] - pair[1]).sum(axis=1) for pair in (middles, sides))
  head = dense_heads.Box(((4, 4, 8),))
  np.testing.assert_allclose(
    head.loss(*tensors), np.mean(5 * l1 + 2 * (1 - giou)), rtol=1e-3
  )


def test_loss_of_masks():
  random = np.random.default_rng(0)
  logits, masks = random.normal(size=[6, 5, 4]), random.random([6, 5, 4]) < 0.4
  share = 1 / (1 + np.exp(-logits))
  entropy = -np.mean(np.where(masks, np.log(share), np.log(1 - share)))
  dice = [
    1 - (2 * np.sum(s * m) + 1) / (np.sum(s) + np.sum(m) + 1)
    for s, m in zip(share, masks, strict=True)
  ]
  head = dense_heads.Segmentation(((4, 4, 8),), (5, 4))
  found = head.loss(tf.constant(logits), tf.constant(masks, tf.float64))
  np.testing.assert_allclose(found, entropy + np.mean(dice), rtol=1e-9)


def test_heads_begin_with_nothing_and_boxes_in_the_middle():
  shapes = ((8, 6, 5), (4, 3, 7))
  some = [tf.random.stateless_normal([2, *shape], [0, 0]) for shape in shapes]
  head = dense_heads.Segmentation(shapes, (16, 12))
  np.testing.assert_array_equal(head.predict(head.init(0), some), np.zeros([2, 16, 12]))
  box = dense_heads.Box(shapes)
  expected = np.tile([0.25, 0.25, 0.75, 0.75], [2, 1])
  np.testing.assert_allclose(box.predict(box.init(0), some), expected)


def test_flipped_targets_are_those_of_flipped_images():
  masks = np.random.default_rng(0).random([5, 6, 9]) < 0.1
  masks[:, 2, 1] = True
  head, box = (
    dense_heads.Segmentation(((1, 1, 1),), (6, 9)),
    dense_heads.Box(((1, 1, 1),)),
  )
  flipped = head.flip(tf.constant(masks)).numpy()
  np.testing.assert_array_equal(flipped, masks[:, :, ::-1])
  np.testing.assert_allclose(
    box.flip(tf.constant(overlap.boxes_of(masks))), overlap.boxes_of(flipped), atol=1e-6
  )


def test_maps_are_the_last_stages_and_average_to_the_encoding():
  images = tf.random.stateless_uniform([3, 16, 8, 3], [1, 2])
  for encoder, expected in (
    (registry.build_encoder('resnet8', (16, 8, 3), 0.25), ((8, 4, 8), (4, 2, 16))),
    (
      registry.build_encoder('vit_micro', (16, 8, 3), 0.25, patch_size=4),
      ((4, 2, 16),),
    ),
  ):
    params = encoder.init([0, 0])
    found = feature_maps.build(encoder)(encoder.infer, params, images)
    assert feature_maps.shapes(encoder) == expected
    assert tuple(tuple(one.shape[1:]) for one in found) == expected
    np.testing.assert_allclose(
      tf.reduce_mean(found[-1], axis=[1, 2]), encoder.infer(params, images), atol=1e-5
    )
  with pytest.raises(ValueError, match='mlp has no feature maps'):
    feature_maps.shapes(registry.build_encoder('mlp', (5,)))


def _masked(count, seed, empty=0):
  images, masks = lesions.make(count, 16, seed)
  masks[:empty] = False
  return dense.Masked(images, masks, np.arange(count) // 2)


@pytest.fixture(scope='module')
def learnt():
  encoder = registry.build_encoder('conv2', (16, 16, 3), 0.25)
  config = dense.DenseConfig(
    num_steps=40, batch_size=16, frozen_rate=0.02, finetuned_rate=0.02
  )
  evaluator = dense.Evaluator(encoder, _masked(80, 0), _masked(40, 1), config)
  return evaluator, encoder.init([0, 0])


@pytest.mark.long
def test_made_lesions_are_found(learnt):
  evaluator, params = learnt
  numbers = evaluator.evaluate(params, fractions=(1.0,))
  assert numbers['masks/100%'] == 80
  for method in method_names.DENSE:
    for way in (dense.FROZEN, dense.FINETUNED):
      found = numbers[f'{method}/100%/{way}/iou']
      assert found > numbers[f'{method}/100%/without_image/iou'] + 0.1, (method, way)
  assert numbers['segmentation/100%/finetuned/iou'] > 0.7
  assert numbers['segmentation/100%/finetuned/found'] > 0.85
  assert numbers['detection/100%/finetuned/found'] > 0.6


def test_fixed_guess_without_image(learnt):
  evaluator, params = learnt
  numbers = evaluator.evaluate(params, fractions=(1.0,), ways=())
  (_, train), (_, test) = lesions.make(80, 16, 0), lesions.make(40, 16, 1)
  most = np.mean(train, axis=0) >= 0.5
  expected = [np.sum(most & mask) / np.sum(most | mask) for mask in test]
  found = numbers['segmentation/100%/without_image/iou']
  np.testing.assert_allclose(found, np.mean(expected), rtol=1e-6)
  assert set(numbers) == {
    'masks/100%',
    *(
      f'{m}/100%/without_image/{s}'
      for m in method_names.DENSE
      for s in ('iou', 'found')
    ),
  }


def test_frozen_encoder_stays_and_batch_norm_has_statistics():
  encoder = registry.build_encoder('conv2', (16, 16, 3), 0.25, normalization='batch')
  train, test = _masked(8, 0, empty=2), _masked(6, 1, empty=1)
  params = population_statistics.build_complete(encoder)(
    encoder.init([0, 0]), train.image
  )
  before = collections.OrderedDict((k, v.numpy()) for k, v in params.items())
  evaluator = dense.Evaluator(encoder, train, test, dense.DenseConfig(num_steps=2))
  numbers = evaluator.evaluate(params, ['detection'], (1.0,))
  assert all(0 <= value <= 1 for name, value in numbers.items() if '/100%/' in name)
  assert len(numbers) == 7
  for name, value in before.items():
    np.testing.assert_array_equal(params[name], value)


def test_errors():
  encoder = registry.build_encoder('conv2', (16, 16, 3), 0.25)
  some = _masked(4, 0)
  with pytest.raises(ValueError, match='All test masks are empty'):
    dense.Evaluator(encoder, some, _masked(4, 1, empty=4))
  with pytest.raises(
    ValueError, match=r'shape \[3, 16, 16\] for images .* \[4, 16, 16\]'
  ):
    dense.Masked(some.image, some.mask[:3], some.case)
  nan = collections.OrderedDict(
    (k, v * np.nan) for k, v in encoder.init([0, 0]).items()
  )
  evaluator = dense.Evaluator(encoder, some, some, dense.DenseConfig(num_steps=1))
  with pytest.raises(ValueError, match='The encoder is not finite'):
    evaluator.evaluate(nan, fractions=(1.0,))


def test_stages_are_shown_while_heads_are_trained(learnt, monkeypatch):
  told = []
  monkeypatch.setattr(stages, 'begin', lambda stage: told.append(stage))
  monkeypatch.setattr(stages, 'update', lambda *done: told.append(done))
  evaluator, params = learnt
  evaluator.evaluate(params, ['detection'], (1.0,), num_steps=2)
  assert told == [
    'detection with 80 masks, with the encoder frozen',
    (0, 2),
    (1, 2),
    'detection with 80 masks, end to end',
    (0, 2),
    (1, 2),
  ]
