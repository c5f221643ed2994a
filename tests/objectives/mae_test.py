"""Tests of MAE on a tiny vision transformer, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.encoders import numpy_transformer
from tests.losses import references
from tff_ssl.augment import byol as augment
from tff_ssl.augment import masking
from tff_ssl.encoders import decoder
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry
from tff_ssl.encoders import vit
from tff_ssl.objectives import mae
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])
_SHAPE = (8, 4, 3)


def _encoder():
  return vit.from_config(vit.ViTConfig(dim=8, depth=2, heads=2, patch_size=2), _SHAPE)


def _objective(mask_ratio=0.75, **options) -> mae.MaeObjective:
  options['settings'] = objectives.Mae(mask_ratio)
  return mae.build_mae(_encoder(), dim=12, heads=3, **options)


def _examples(n):
  rng = np.random.default_rng(n)
  return collections.OrderedDict(
    image=tf.constant(rng.integers(0, 256, (n, *_SHAPE)), tf.uint8),
    example_id=tf.constant(np.arange(n), tf.int64),
  )


def _reference(objective, params, examples):
  """The paper's figure 1, patch by patch; returns the loss and visible features."""
  (images,) = augment.views_of(
    examples['image'], examples['example_id'], _SEED, objective.augmentation, (0,)
  )
  images = images.numpy().astype(np.float64)
  encoder = parameter_names.select(params, 'encoder')
  tokens = numpy_transformer.embed(encoder, images, 2)
  order = masking.random_order(_SEED, examples['example_id'], 8).numpy()
  dec = parameter_names.select(params, 'decoder')
  losses, features = [], []
  for i, image in enumerate(images):
    visible, masked = np.split(order[i], [objective.num_visible])
    encoded = numpy_transformer.blocks(encoder, tokens[[i]][:, visible], 2, 2)
    features.append(encoded.mean((0, 1)))
    kernel, bias = dec['embedding/kernel'], dec['embedding/bias']
    full = np.zeros((1, 8, 12))
    full[:, visible] = encoded @ kernel[:8] + bias
    full[:, masked] = kernel[8] + bias
    full = full + numpy_transformer.positions(4, 2, 12)
    full = numpy_transformer.blocks(dec, full, 1, 3)
    pixels = numpy_transformer.dense(dec, 'pixels', full)[0]
    targets = numpy_transformer.patches(image[np.newaxis], 2)[0]
    variance = targets.var(1, keepdims=True)
    targets = (targets - targets.mean(1, keepdims=True)) / np.sqrt(variance + 1e-6)
    losses.append(((pixels - targets)[masked] ** 2).mean())
  return np.mean(losses), np.array(features)


@pytest.mark.parametrize('options', [{}, {'mask_ratio': 0.4}])
def test_loss_and_spread_equal_numpy(options):
  objective, examples = _objective(**options), _examples(4)
  params = collections.OrderedDict(
    (name, tf.constant(value.numpy() + 0.1, tf.float64))
    for name, value in objective.init(_SEED).items()
  )
  loss, metrics = objective.loss(params, examples, _SEED)
  arrays = {name: value.numpy() for name, value in params.items()}
  expected, features = _reference(objective, arrays, examples)
  assert float(loss) == pytest.approx(expected, rel=1e-5)
  summary = objective.summarize(metrics)
  assert list(summary) == ['encoding_std', 'effective_rank']
  spread = references.encoding_std(features)
  assert float(summary['encoding_std']) == pytest.approx(spread, rel=1e-4)


@pytest.mark.parametrize(
  ('ratio', 'visible'), [(0.0, 8), (0.1, 7), (0.5, 4), (0.75, 2), (0.9, 1)]
)
def test_every_example_has_the_same_number_of_masked_patches(
  monkeypatch, ratio, visible
):
  objective, masks = _objective(mask_ratio=ratio), []

  def errors(predictions, targets, masked):
    masks.append(masked.numpy())
    return masked[:, 0]

  monkeypatch.setattr(mae.reconstruction, 'masked_errors', errors)
  params, examples = objective.init(_SEED), _examples(6)
  last = {name: tensor[4:] for name, tensor in examples.items()}
  objective.encode(params, examples, _SEED)
  objective.encode(params, last, _SEED)
  objective.encode(params, examples, tf.constant([1, 3]))
  first, part, next_round = masks
  for masked in masks:
    np.testing.assert_array_equal(masked.sum(axis=1), 8 - visible)
    assert set(masked.ravel()) <= {0, 1}
  np.testing.assert_array_equal(part, first[4:])
  assert np.array_equal(next_round, first) == (ratio == 0)
  assert (len(np.unique(first, axis=0)) == 1) == (ratio == 0)


def test_masked_patches_are_not_seen():
  objective = _objective(augmentation=augment.by_name('none'), mask_ratio=0.5)
  params, examples = objective.init(_SEED, tf.float64), _examples(1)
  features = objective.encode(params, examples, _SEED)['features']
  order = masking.random_order(_SEED, examples['example_id'], 8).numpy()[0]
  for place, patch in enumerate(order):
    top, left = 2 * (patch // 2), 2 * (patch % 2)
    image = examples['image'].numpy()
    image[:, top : top + 2, left : left + 2] ^= 255
    changed = {**examples, 'image': tf.constant(image)}
    now = objective.encode(params, changed, _SEED)['features']
    assert np.array_equal(now, features) == (place >= 4)


def test_the_papers_choices():
  objective = mae.build_mae(registry.build_encoder('vit_tiny', (32, 32, 3)))
  assert objective.num_visible == 64
  assert objective.augmentation == augment.by_name('mae')
  assert objective.decoder.output_dim == 12


def test_mismatched_arguments_are_named():
  with pytest.raises(
    ValueError, match='encoder of MAE is resnet8; it must be a vision'
  ):
    mae.build_mae(registry.build_encoder('resnet8', (8, 8, 1)))
  for ratio in (0.01, 0.99):
    with pytest.raises(ValueError, match=f'mask_ratio is {ratio}; of 8 patches'):
      _objective(mask_ratio=ratio)
  grey = registry.build_encoder('vit_micro', (4, 4, 1), patch_size=1)
  with pytest.raises(ValueError, match='patch is a single value'):
    mae.build_mae(grey)
  other = decoder.build_decoder(
    registry.build_encoder('vit_micro', _SHAPE, patch_size=2)
  )
  with pytest.raises(ValueError, match=r'takes \(8, 65\); .* must take \(8, 9\)'):
    mae.MaeObjective(_encoder(), other, augment.by_name('mae'))
