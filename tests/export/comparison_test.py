"""The comparison of exports refuses each mistake that an export could make."""

import functools

import numpy as np
from PIL import Image
import pytest

from docs.elsewhere import __main__ as elsewhere
from tff_ssl.encoders import network
from tff_ssl.encoders import registry
from tff_ssl.export import comparison

# Of maps that are averaged over many positions, which hides a scale.
_SHAPE = (32, 32, 3)


@functools.cache
def _encoder(name):
  """Returns a network, its parameters, inputs and features."""
  norm = 'group' if name in registry.with_option('normalization') else None
  patch = 8 if name in registry.with_option('patch_size') else None
  encoder = registry.build_encoder(
    name, _SHAPE, 0.25, stem=None, patch_size=patch, normalization=norm
  )
  params = elsewhere.values(encoder)
  images = np.concatenate(
    [comparison.images(_SHAPE, 64), comparison.dim_images(_SHAPE, 16)]
  )
  return encoder, params, images, encoder.infer(params, images / np.float32(255))


def _changed(params):
  """Changes the sign of one weight of usual size."""
  kernels = [name for name, value in params.items() if value.shape.rank > 1]
  name = kernels[len(kernels) // 2]
  value = np.array(params[name])
  middle = np.argsort(np.abs(value), axis=None)[value.size // 2]
  value.reshape(-1)[middle] *= -1
  return {**params, name: value}


# name -> (images, parameters) -> scaled images, parameters.
_MISTAKES = {
  'a scale of 256': lambda x, params: (x / np.float32(256), params),
  'swapped channels': lambda x, params: (x[..., ::-1] / np.float32(255), params),
  'mirrored': lambda x, params: (x[:, :, ::-1] / np.float32(255), params),
  'upside down': lambda x, params: (x[:, ::-1] / np.float32(255), params),
  'transposed': lambda x, params: (x.swapaxes(1, 2) / np.float32(255), params),
  'a weight': lambda x, params: (x / np.float32(255), _changed(params)),
}


@pytest.mark.long_for('resnet8', 'convnext_micro')
@pytest.mark.parametrize('name', ['resnet8', 'conv2', 'vit_micro', 'convnext_micro'])
def test_each_mistake_is_refused(name):
  encoder, params, images, features = _encoder(name)
  what, dim = '80 images', comparison.DIM_TOLERANCE

  def check(images, params, mistake):
    def run(inputs):
      return {'features': encoder.infer(*mistake(inputs, params)[::-1]).numpy()}

    cases = [
      comparison.Case(images[own], {'features': features[own].numpy()}, allowed)
      for own, allowed in ((slice(64), comparison.TOLERANCE), (slice(64, None), dim))
    ]
    return comparison.check('model.any', run, cases, what)

  right = check(images, params, lambda x, params: (x / np.float32(255), params))
  assert right.startswith('model.any: within ') and 'on 80 images (allowed' in right
  for named, mistake in _MISTAKES.items():
    with pytest.raises(ValueError, match='does not reproduce the run'):
      check(images, params, mistake)
      pytest.fail(named)


def _resized(pictures, size, box, method=Image.Resampling.BICUBIC):
  """Returns a part of pictures, (left, top, right, bottom), as Pillow resizes it."""
  made = [Image.fromarray(each).resize((size, size), method, box) for each in pictures]
  return np.stack(made)


def test_another_crop_or_filter_is_refused():
  encoder, params, _, _ = _encoder('conv2')
  size = _SHAPE[0]
  wide, tall = comparison.other_sides(size, is_padded=False)
  assert (wide, tall) == ((2 * size, 4 * size), (4 * size, 2 * size))
  right = {wide: (32, 0, 96, 64), tall: (0, 32, 64, 96)}
  pictures = {each: comparison.images((*each, 3), 4) for each in right}

  def outputs(squares):
    return {'features': encoder.infer(params, squares / np.float32(255)).numpy()}

  def check(boxes, method=Image.Resampling.BICUBIC, change=lambda squares: squares):
    cases = [
      comparison.Case(p, outputs(_resized(p, size, right[s])))
      for s, p in pictures.items()
    ]

    def run(inputs):
      squares = _resized(inputs, size, boxes[inputs.shape[1:3]], method)
      return outputs(change(squares))

    return comparison.check('model.any', run, cases, '8 pictures')

  check(right)
  mistakes = {
    'one pixel to the right': {'boxes': {**right, wide: (33, 0, 97, 64)}},
    'one pixel down': {'boxes': {**right, tall: (0, 33, 64, 97)}},
    'the left of a picture': {'boxes': {**right, wide: (0, 0, 64, 64)}},
    'all of a picture': {'boxes': {each: (0, 0, *each[::-1]) for each in right}},
    'bilinear': {'boxes': right, 'method': Image.Resampling.BILINEAR},
    'a mean': {'boxes': right, 'method': Image.Resampling.BOX},
    'transposed': {'boxes': right, 'change': lambda x: x.swapaxes(1, 2)},
    'mirrored': {'boxes': right, 'change': lambda x: x[:, :, ::-1]},
    'swapped channels': {'boxes': right, 'change': lambda x: x[..., ::-1]},
  }
  for named, mistake in mistakes.items():
    with pytest.raises(ValueError, match='does not reproduce the run'):
      check(**mistake)
      pytest.fail(named)


def test_an_output_that_is_missing_is_refused_and_others_are_not_compared():
  inputs = np.zeros([1, 2])
  expected = {'features': inputs, 'probabilities': inputs}
  comparison.check(
    'model', lambda _: {**expected, 'more': 1}, [comparison.Case(inputs, expected)], ''
  )
  with pytest.raises(ValueError, match='The outputs have shapes'):
    comparison.check(
      'model', lambda _: {'features': inputs}, [comparison.Case(inputs, expected)], ''
    )


def test_a_wrong_scale_is_seen_on_dim_images_alone():
  """Behind a group norm, other images have features of any scale."""
  encoder, params, images, features = _encoder('conv2')
  other = encoder.infer(params, images / np.float32(256))
  gaps = np.max(np.abs(other - features), axis=1)
  assert np.max(gaps[:64]) < comparison.TOLERANCE
  assert np.max(gaps[64:]) / 2 > comparison.DIM_TOLERANCE


def test_a_wrong_factor_of_rows_is_seen():
  encoder = registry.build_encoder('mlp', (5,), 0.25, normalization='group')
  params = elsewhere.values(encoder)
  rows = comparison.faint_rows(5, 16)
  expected = {'features': encoder.infer(params, rows).numpy()}

  def run(rows):
    return {'features': encoder.infer(params, rows * np.float32(255 / 256)).numpy()}

  with pytest.raises(ValueError, match='does not reproduce the run'):
    comparison.check('model.any', run, [comparison.Case(rows, expected)], '16 rows')


def test_images_on_which_float32_is_not_near_float64_are_left_out():
  """As behind a norm of what hardly differs."""

  def forward(ops, x):
    return ops.global_average_pool(ops.group_norm(x, 'norm', groups=2))

  net = network.Network('net', (8, 8, 2), forward)
  params = {'norm/gamma': np.full(2, 1e3, 'f4'), 'norm/beta': np.full(2, 1.0, 'f4')}
  images = comparison.dim_images((8, 8, 2), 3)
  assert not len(comparison.well_conditioned(net, params, images))
  params['norm/gamma'] = np.full(2, 1.0, 'f4')
  np.testing.assert_array_equal(
    comparison.well_conditioned(net, params, images), images
  )


def test_dim_images_are_nearly_black_and_none_is_of_one_colour():
  images = comparison.dim_images((8, 8, 1), 16)
  assert images.dtype == np.uint8 and images.shape == (16, 8, 8, 1)
  np.testing.assert_array_less(np.max(images, axis=(1, 2, 3)), np.arange(2, 18))
  assert np.all(np.ptp(images, axis=(1, 2, 3)) > 0)


def test_the_largest_difference_is_a_share_and_sees_what_is_no_number():
  expected = {'a': np.array([10.0, 1.0]), 'b': np.array([0.5])}
  near = {'a': np.array([10.0, 2.0]), 'b': np.array([0.45])}
  assert comparison.largest_difference(near, expected) == pytest.approx(0.1)
  lost = {**near, 'b': np.array([np.nan])}
  assert not comparison.largest_difference(lost, expected) <= 1
  with pytest.raises(ValueError, match='The outputs have shapes'):
    comparison.largest_difference({'a': near['a']}, expected)
