"""A step in chunks against the whole batch, and where chunks end."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.computing import sessions
from tff_ssl.encoders import registry
from tff_ssl.evaluation import finetune_step
from tff_ssl.optimization import adam


def _encoder(normalization='group'):
  return registry.build_encoder('conv2', (8, 8, 3), 0.5, normalization=normalization)


def _trained(encoder):
  random = np.random.default_rng(3)
  head = collections.OrderedDict(
    kernel=tf.constant(random.normal(size=[encoder.output_dim, 5]), tf.float32),
    bias=tf.constant(random.normal(size=[5]), tf.float32),
  )
  return collections.OrderedDict(params=encoder.init([0, 1]), head=head)


def _batch(sizes):
  """Cases of so many images each."""
  random = np.random.default_rng(5)
  images = random.integers(0, 256, [sum(sizes), 8, 8, 3]).astype(np.uint8)
  segments = np.repeat(np.arange(len(sizes)), sizes)
  return images, segments, random.integers(0, 5, [len(sizes)])


@pytest.mark.parametrize(
  'sizes', [[1] * 70, [3, 1, 40, 2, 2, 20, 7, 1, 1, 1]], ids=['images', 'cases']
)
def test_gradient_in_chunks_is_that_of_the_whole_batch(sizes):
  """Adam's first moment after a step is a tenth of the gradient."""
  encoder = _encoder()
  trained, (images, segments, labels) = _trained(encoder), _batch(sizes)
  assert len(finetune_step.chunk_bounds(segments, 16)) > 3
  gradients = []
  for chunk_size in (None, 16):
    step = finetune_step.FinetuneStep(encoder.apply, 5, True, chunk_size)
    given = (trained, adam.init(trained), images, segments, labels, 0.01, [1, 2])
    moved, state = step(*given)
    gradients.append(tf.nest.map_structure(lambda m: 10 * m, state['first_moment']))
    again, _ = step(*given)
    tf.nest.map_structure(np.testing.assert_array_equal, moved, again)
  whole, chunked = map(tf.nest.flatten, gradients)
  assert all(np.max(np.abs(gradient)) > 1e-3 for gradient in whole)
  for expected, got in zip(whole, chunked, strict=True):
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_batch_norm_takes_a_batch_whole():
  """In chunks it would be another gradient, so that an encoder with it has none."""
  encoder = _encoder('batch')
  assert encoder.chunk_in_cache() is None
  assert _encoder().chunk_in_cache() == _encoder().batch_in_cache()
  trained, batch = _trained(encoder), _batch([1] * 64)
  moments = [
    finetune_step.FinetuneStep(encoder.apply, 5, False, chunk_size)(
      trained, adam.init(trained), *batch, 0.01, [1, 2]
    )[1]['first_moment']['head']['kernel']
    for chunk_size in (encoder.chunk_in_cache(), 16)
  ]
  assert np.max(np.abs(moments[0] - moments[1])) > 1e-4


@pytest.mark.parametrize(
  ('sizes', 'chunk_size', 'expected'),
  [
    ([1] * 256, 64, [64, 64, 64, 64]),
    ([1] * 33, 64, [17, 16]),
    ([1] * 260, 64, [33, 32, 33, 32, 33, 32, 33, 32]),
    ([100, 1, 1], 16, [100, 2]),
    ([1, 1, 100], 16, [102]),
  ],
)
def test_chunks_are_of_whole_cases_and_of_equal_size(sizes, chunk_size, expected):
  bounds = finetune_step.chunk_bounds(
    np.repeat(np.arange(len(sizes)), sizes), chunk_size
  )
  np.testing.assert_array_equal(np.diff(bounds[:, 0]), expected)
  ends = np.cumsum([0, *sizes])
  np.testing.assert_array_equal(bounds[:, 0], ends[bounds[:, 1]])
  assert tuple(bounds[-1]) == (sum(sizes), len(sizes))


def test_numbers_do_not_depend_on_the_number_of_cores(monkeypatch):
  encoder = _encoder()
  trained, batch = _trained(encoder), _batch([1] * 70)
  moved = []
  for count in (1, 3):
    monkeypatch.setattr(sessions, 'cores', lambda count=count: count)
    step = finetune_step.FinetuneStep(encoder.apply, 5, True, 16)
    moved.append(step(trained, adam.init(trained), *batch, 0.01, [1, 2]))
  tf.nest.map_structure(np.testing.assert_array_equal, *moved)
