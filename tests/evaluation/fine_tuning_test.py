"""Fine-tuning of one linear layer on images of 4 x 4 pixels."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.evaluation import lit_rows
from tff_ssl.evaluation import fine_tuning

_CONFIG = fine_tuning.FinetuneConfig(learning_rate=0.05, batch_size=32, num_steps=40)


_tuned = functools.partial(lit_rows.tuned, config=_CONFIG)


def test_seed_decides_and_compiles_once():
  traces = []

  def apply(params, images):
    traces.append(1)
    return lit_rows.apply(params, images)

  images, labels = lit_rows.of_drawn_labels(64, seed=0)
  config = fine_tuning.FinetuneConfig(batch_size=16, num_steps=3)
  run = fine_tuning.FineTuning(apply, 3, config)
  kernels = [
    run(lit_rows.params(), images[:n], labels[:n], images, seed=seed)
    .params['kernel']
    .numpy()
    for n, seed in ((64, 0), (64, 0), (64, 1), (9, 0))
  ]
  np.testing.assert_array_equal(kernels[0], kernels[1])
  assert not np.array_equal(kernels[0], kernels[2])
  assert len(traces) == 2  # To train and to encode, for 64 images as for 9.


def test_two_steps_equal_reference():
  """Full batch, no flip: Adam on softmax cross-entropy in NumPy float64.

  The head starts at zero, so that the encoder gets no gradient in the first step.
  """
  images, labels = lit_rows.of_drawn_labels(12, seed=0)
  config = fine_tuning.FinetuneConfig(0.1, batch_size=12, num_steps=2, flip=False)
  got = _tuned(images, labels, images, config=config)

  pixels = images.reshape([12, 16]) / 255.0
  w = lit_rows.params()['kernel'].numpy().astype(np.float64)
  state = {'w': w, 'u': np.zeros([6, 3]), 'b': np.zeros([3])}
  m = {name: np.zeros_like(p) for name, p in state.items()}
  v = {name: np.zeros_like(p) for name, p in state.items()}
  for step, rate in enumerate((0.1, 0.05), start=1):
    hidden = np.tanh(pixels @ state['w'])
    logits = hidden @ state['u'] + state['b']
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    error = (softmax - np.eye(3)[labels]) / 12
    grads = {
      'w': pixels.T @ ((error @ state['u'].T) * (1 - hidden**2)),
      'u': hidden.T @ error,
      'b': error.sum(axis=0),
    }
    for name, g in grads.items():
      m[name] = 0.9 * m[name] + 0.1 * g
      v[name] = 0.999 * v[name] + 0.001 * g**2
      corrected = np.sqrt(v[name] / (1 - 0.999**step)) + 1e-8
      state[name] = state[name] - rate * m[name] / (1 - 0.9**step) / corrected
  np.testing.assert_allclose(got.params['kernel'], state['w'], atol=1e-4)
  np.testing.assert_allclose(got.head['kernel'], state['u'], atol=1e-4)
  np.testing.assert_allclose(got.head['bias'], state['b'], atol=1e-4)


def test_cases_are_classified_by_their_mean_encoding():
  # A case's row is lit in one of its images only: alone, the others say nothing.
  images, labels = lit_rows.of_drawn_labels(180, seed=0)
  dark = np.random.default_rng(3).integers(0, 60, images.shape).astype(np.uint8)
  both = np.concatenate([images, dark])
  cases = np.tile(np.arange(180), 2)[::-1]  # Case c holds images 179-c and 359-c.
  train, test = cases >= 60, cases < 60
  case_of = {case: labels[179 - case] for case in range(180)}
  result = _tuned(
    both[train],
    np.array([case_of[case] for case in cases[train]]),
    both[test],
    train_cases=cases[train],
    test_cases=cases[test],
  )
  want = [case_of[case] for case in range(60)]
  assert np.mean(result.predictions == want) > 0.95


@pytest.mark.parametrize(
  'labels, cases, message',
  [
    ([0], None, '2 examples and 1 labels'),
    ([0, 3], None, 'labels 0 to 3'),
    ([0, -1], None, 'labels -1 to 0'),
    ([0, 1], [4], '1 cases for 2 images'),
    ([0, 1], [4, 4], 'Case 4 has images of different labels'),
  ],
)
def test_refuses_bad_input(labels, cases, message):
  images = np.zeros([2, 4, 4, 1], np.uint8)
  cases = None if cases is None else np.array(cases)
  with pytest.raises(ValueError, match=message):
    _tuned(images, np.array(labels), images, train_cases=cases)


def test_a_batch_of_large_cases_has_a_bounded_number_of_images():
  seen = []

  def apply(params, images):
    # When it is traced the number is not known; in the step it is.
    tf.py_function(lambda n: seen.append(int(n)), [tf.shape(images)[0]], [])
    return tf.reduce_mean(images, axis=[1, 2]) * params['scale']

  cases = np.repeat(np.arange(8), 30)
  images = np.random.default_rng(0).integers(0, 255, [240, 2, 2, 3]).astype(np.uint8)
  for most, expected in ((20, 16), (100, 96), (240, 240), (1, 8)):
    seen.clear()
    run = fine_tuning.FineTuning(
      apply, 2, fine_tuning.FinetuneConfig(num_steps=3, most_images=most, flip=False)
    )
    tuned = run(
      {'scale': tf.ones([3])},
      images,
      (cases % 2).astype(np.int32),
      images[:60],
      seed=0,
      train_cases=cases,
      test_cases=cases[:60],
    )
    assert tuned.predictions.shape == (2,)
    # Eight cases of 30: at most so many, as many of each.
    assert seen.count(expected) >= 3, (most, seen)


def test_small_cases_are_kept_whole_where_large_ones_are_cut():
  units = fine_tuning._Units(np.repeat([0, 1, 2], [2, 50, 1]), np.array([0, 1, 0]))
  random = np.random.default_rng(0)
  positions, segments = units.images(np.array([2, 1, 0]), 13, random)
  assert np.bincount(segments).tolist() == [1, 10, 2]
  assert set(positions[segments == 2]) == {0, 1}
  assert positions[segments == 0].tolist() == [52]
  assert len(set(positions[segments == 1])) == 10
  other, _ = units.images(np.array([2, 1, 0]), 13, random)
  assert set(other) != set(positions)


def test_features_are_those_of_the_trained_encoder():
  images, labels = lit_rows.of_drawn_labels(40, seed=0)
  others, _ = lit_rows.of_drawn_labels(9, seed=1)
  result = _tuned(images, labels, others)
  pixels = others.reshape([9, 16]) / 255.0
  expected = np.tanh(pixels @ result.params['kernel'].numpy().astype(np.float64))
  np.testing.assert_allclose(result.features, expected, atol=1e-5)
