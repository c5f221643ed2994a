"""Tests of dual encoding models."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tff_ssl.augment import multiview
from tff_ssl.encoders import projector
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import two_towers

_SEED = tf.constant([1, 2])
_SIDES = ('left', 'right')


_linear = networks.numpy_linear


@pytest.mark.parametrize('n', [0, 1, 5])
def test_towers_encode_their_own_modality(n):
  model, examples = networks.towers(), networks.examples(n)
  params = model.init(_SEED, tf.float64)
  f, g = model.encode(params, networks.tensors(examples), _SEED)
  np.testing.assert_allclose(f, _linear(params, 'left', examples['left']), rtol=1e-12)
  np.testing.assert_allclose(g, _linear(params, 'right', examples['right']), rtol=1e-12)
  assert model.output_dims == (2, 2)


@pytest.mark.parametrize('n', [0, 1, 5])
def test_siamese_encodes_two_views_with_one_network(n):
  model, examples = networks.siamese(), networks.examples(n)
  params = model.init(_SEED, tf.float64)
  f, g = model.encode(params, networks.tensors(examples), _SEED)
  # Without augmentation both views are the image.
  pooled = examples['image'].mean(axis=(1, 2)) / 255
  np.testing.assert_allclose(f, _linear(params, 'projector', pooled), rtol=1e-5)
  np.testing.assert_array_equal(f, g)


@dataclasses.dataclass(frozen=True)
class _OfEach(dual_encoder.PairObjective):
  model: dual_encoder.DualEncoder

  def loss_of_pairs(self, f, g):
    return tf.reduce_sum((f - g) ** 2, axis=1)


@dataclasses.dataclass(frozen=True)
class _OfNone(dual_encoder.PairObjective):
  model: dual_encoder.DualEncoder


@pytest.mark.parametrize(
  ('build', 'said'),
  [
    (_OfEach, 'of _OfEach returns a tensor of rank 1; it must'),
    (_OfNone, '_OfNone has no loss_of_pairs; it must'),
  ],
)
def test_what_is_no_loss_of_pairs_is_refused(build, said):
  examples = networks.tensors(networks.examples(3))
  objective = build(networks.siamese())
  with pytest.raises(ValueError, match=said):
    objective.loss(objective.init(_SEED), examples, _SEED)


def test_views_differ_and_follow_the_seed():
  model, examples = networks.siamese('byol'), networks.examples(3)
  params = model.init(_SEED)
  f, g = model.encode(params, networks.tensors(examples), _SEED)
  again, _ = model.encode(params, networks.tensors(examples), _SEED)
  other, _ = model.encode(params, networks.tensors(examples), tf.constant([1, 3]))
  np.testing.assert_array_equal(f, again)
  assert np.abs(f - g).max() > 1e-3
  assert np.abs(f - other).max() > 1e-3


def test_networks_are_prefixed_and_drawn_apart():
  nets = {name: networks.towers().left for name in ('a', 'b')}
  params = base.init_networks(_SEED, tf.float32, nets)
  assert list(params) == [
    'a/dense0/kernel',
    'a/dense0/bias',
    'b/dense0/kernel',
    'b/dense0/bias',
  ]
  assert np.abs(params['a/dense0/kernel'] - params['b/dense0/kernel']).max() > 0
  same = base.init_networks(_SEED, tf.float32, nets)
  np.testing.assert_array_equal(params['a/dense0/kernel'], same['a/dense0/kernel'])


def test_siamese_reads_the_field_of_its_encoder():
  model, examples = networks.siamese(), networks.examples(3)
  other = dataclasses.replace(model, encoder=model.encoder.reading('photo'))
  params = model.init(_SEED)
  moved = networks.tensors(examples)
  moved['photo'] = moved.pop('image')
  expected = model.encode(params, networks.tensors(examples), _SEED)[0]
  np.testing.assert_array_equal(other.encode(params, moved, _SEED)[0], expected)


def test_crops_of_several_sizes_go_through_one_encoder():
  model, examples = networks.siamese('byol'), networks.tensors(networks.examples(3))
  params = model.init(_SEED, tf.float64)
  small = multiview.local_crop(model.augmentation, 1)
  crops = model.crops(examples, _SEED, (model.augmentation, model.augmentation, small))
  assert [crop.shape[1] for crop in crops] == [2, 2, 1]
  for crop in crops:
    pooled = crop.numpy().astype(np.float64).mean(axis=(1, 2))
    got = model.project(params, crop)
    np.testing.assert_allclose(got, _linear(params, 'projector', pooled), rtol=1e-5)
  for view, crop in zip(model.views(examples, _SEED), crops[:2], strict=True):
    np.testing.assert_array_equal(view, crop)


def _towers_with_projectors() -> two_towers.TwoTower:
  left = projector.build_linear(3, 4, 'tower').reading('left')
  right = projector.build_linear(4, 5, 'tower').reading('right')
  return two_towers.build_two_towers(left, right, (2,))


def test_towers_with_projectors_encode_through_both():
  model, examples = _towers_with_projectors(), networks.examples(5)
  params = model.init(_SEED, tf.float64)
  f, g = model.encode(params, networks.tensors(examples), _SEED)
  for encodings, side in ((f, 'left'), (g, 'right')):
    features = _linear(params, side, examples[side])
    expected = _linear(params, f'{side}_projector', np.asarray(features))
    np.testing.assert_allclose(encodings, expected, rtol=1e-12)
  assert model.output_dims == (2, 2)
  assert list(model.networks) == [
    'left',
    'left_projector',
    'right',
    'right_projector',
  ]


def test_towers_take_bytes_as_images_in_the_unit_range():
  encoder = networks.encoder()
  model = two_towers.TwoTower(encoder.reading('left'), encoder.reading('right'))
  image = networks.examples(2)['image']
  f, _ = model.encode({}, {'left': image, 'right': image}, _SEED)
  np.testing.assert_allclose(f, image.mean(axis=(1, 2)) / 255, rtol=1e-6)


def test_which_encoder_is_exported():
  model = _towers_with_projectors()
  assert dual_encoder.encoder_prefix(model.left) == 'left'
  assert dual_encoder.encoder_prefix(networks.encoder()) == 'encoder'
  assert dual_encoder.encoder_prefix(networks.encoder().reading('features')) == (
    'encoder'
  )


def test_towers_that_read_other_fields_are_refused():
  left, right = _towers_with_projectors().left, _towers_with_projectors().right
  with pytest.raises(ValueError, match="left encoder reads the field 'right'; it must"):
    two_towers.build_two_towers(right, left, (2,))


def test_projections_are_those_of_inference():
  model, examples = networks.towers(), networks.examples(3)
  params = model.init(_SEED, tf.float64)
  both = model.encode(params, networks.tensors(examples), _SEED)
  for field, expected in zip(_SIDES, both, strict=True):
    found = model.project(params, examples[field], field)
    np.testing.assert_array_equal(found, expected)
