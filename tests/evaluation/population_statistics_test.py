"""Tests of population statistics of encoders that were trained outside of a run."""

import numpy as np
import tensorflow as tf

from tests.evaluation import lit_rows
from tff_ssl.encoders import network
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import population_statistics


def _forward(ops, x):
  x = ops.conv2d(ops.batch_norm(x, 'pixels'), 'conv', filters=6, kernel_size=3)
  return ops.global_average_pool(ops.relu(ops.batch_norm(x, 'norm')))


_NET = network.Network('encoder', (4, 4, 1), _forward)
_GROUP = network.Network(
  'group',
  (4, 4, 1),
  lambda ops, x: ops.global_average_pool(ops.conv2d(x, 'c', filters=2, kernel_size=1)),
)


def test_completed_params_have_the_population_of_the_images():
  images, _ = lit_rows.of_drawn_labels(300, seed=0)
  params = _NET.init([0, 0])
  complete = population_statistics.build_complete(_NET)
  # Statistics that are there are replaced.
  stale = {**params, **_NET.init_statistics()}
  for given in (params, stale):
    got = complete(given, images)
    assert set(got) == {*_NET.specs, *_NET.statistics}
    pixels = images / 255.0
    np.testing.assert_allclose(got['pixels/population_mean'], pixels.mean(), rtol=1e-5)
    np.testing.assert_allclose(
      got['pixels/population_square'], (pixels**2).mean(), rtol=1e-5
    )
    for name in _NET.specs:
      np.testing.assert_array_equal(got[name], params[name])


def test_of_many_images_some_are_enough():
  image = np.arange(3 * 4096, dtype=np.int64)[:, None, None, None] // 4096
  images = np.broadcast_to(image.astype(np.uint8), (3 * 4096, 4, 4, 1))
  got = population_statistics.build_complete(_NET)(_NET.init([0, 0]), images)
  # All parts of the data set have the same weight: pixels are 0, 1 and 2.
  np.testing.assert_allclose(got['pixels/population_mean'], 1 / 255, rtol=1e-3)


def test_without_batch_norm_params_stay_as_they_are():
  images, _ = lit_rows.of_drawn_labels(3, seed=0)
  params = _GROUP.init([0, 0])
  got = population_statistics.build_complete(_GROUP)(params, images)
  assert list(got) == list(params)


def test_fine_tuning_trains_by_the_batch_and_is_tested_by_the_population():
  images, labels = lit_rows.of_drawn_labels(120, seed=0)
  test_images, test_labels = lit_rows.of_drawn_labels(60, seed=1)
  config = fine_tuning.FinetuneConfig(0.05, batch_size=32, num_steps=60)
  complete = population_statistics.build_complete(_NET)
  run = fine_tuning.FineTuning(_NET.apply, 3, config, _NET.infer, complete)
  result = run(_NET.init([1, 2]), images, labels, test_images, seed=0)
  assert np.mean(result.predictions == test_labels) > 0.9
  expected = complete(result.params, images)
  assert set(result.params) == set(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(result.params[name], value, rtol=1e-4, atol=1e-5)
  # An image's class does not depend on those that it is tested with.
  encoded = _NET.infer(result.params, tf.constant(test_images[:1] / 255, tf.float32))
  logits = encoded @ result.head['kernel'] + result.head['bias']
  assert np.argmax(logits) == result.predictions[0]
