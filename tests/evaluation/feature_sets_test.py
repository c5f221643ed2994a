import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.evaluation import feature_sets


def _images(count):
  return np.random.default_rng(0).integers(0, 256, [count, 4, 3, 2]).astype(np.uint8)


def _channel_means(images):
  # A reshape that a batch of no images would break, as group norm's does.
  return tf.reduce_mean(tf.reshape(images, [tf.shape(images)[0], -1, 2]), axis=1)


@pytest.mark.parametrize('count', [1, 4, 5, 11])
def test_encode_equals_numpy_for_ragged_batches(count):
  images = _images(count)
  got = feature_sets.encode(_channel_means, images, batch_size=4)
  assert got.dtype == np.float32
  want = np.mean(images.astype(np.float64) / 255.0, axis=(1, 2))
  np.testing.assert_allclose(got, want, rtol=1e-6)


def test_one_trace_serves_all_sizes_and_params():
  traces = []

  def apply(params, images):
    traces.append(images.shape)
    return params['scale'] * _channel_means(images)

  encode = feature_sets.build_encode(apply)
  images = _images(7)
  once = encode({'scale': tf.constant(1.0)}, images, batch_size=3)
  twice = encode({'scale': tf.constant(2.0)}, images[:5], batch_size=4)
  assert encode({'scale': tf.constant(2.0)}, images[:0]).shape == (0, 2)
  np.testing.assert_allclose(twice, 2.0 * once[:5], rtol=1e-6)
  assert traces == [[None, 4, 3, 2]]


def test_vectors_are_encoded_as_they_are():
  vectors = np.random.default_rng(0).normal(size=(7, 3)) * 300
  got = feature_sets.encode(lambda x: 2 * x, vectors, batch_size=3)
  np.testing.assert_allclose(got, 2 * vectors, rtol=1e-6)
  assert feature_sets.encode(lambda x: 2 * x, vectors[:0]).shape == (0, 3)


@pytest.mark.parametrize(
  'images', [np.zeros([2, 3, 3, 1], np.float32), np.zeros([2, 3, 3], np.uint8)]
)
def test_encode_refuses_other_images(images):
  with pytest.raises(ValueError, match='must be uint8'):
    feature_sets.encode(_channel_means, images)


def test_encode_refuses_batch_size_zero():
  with pytest.raises(ValueError, match='batch_size is 0'):
    feature_sets.encode(_channel_means, _images(1), batch_size=0)


def test_known_encodings_are_not_computed():
  asked = []

  def encode(rows):
    asked.append(len(rows))
    return 10 * rows

  first, second, other = np.ones([2, 1]), np.ones([3, 1]), np.ones([2, 1])
  known = np.arange(5.0)[:, np.newaxis]
  knowing = feature_sets.knowing(encode, [first, second], known)
  np.testing.assert_array_equal(knowing(second), known[2:])
  np.testing.assert_array_equal(knowing(first), known[:2])
  assert not asked
  np.testing.assert_array_equal(knowing(other), 10 * other)
  assert asked == [2]


def test_encode_of_a_model_with_variables_and_of_its_weights_are_the_same():
  """A Keras model holds variables, which a session of our own does not see."""
  model = tf.keras.Sequential([tf.keras.Input([4, 3, 2]), tf.keras.layers.Flatten()])
  model.add(tf.keras.layers.Dense(3))
  kernel, bias = model.get_weights()
  images = _images(11)
  got = feature_sets.encode(model, images, batch_size=4)
  want = images.reshape([11, -1]) / 255.0 @ kernel.astype(np.float64) + bias
  np.testing.assert_allclose(got, want, atol=1e-5)


def test_pool_cases_takes_means_by_case():
  pooled, labels, cases = feature_sets.pool_cases(
    np.array([[1.0, 0.0], [2.0, 2.0], [3.0, 4.0], [7.0, 7.0]], np.float32),
    np.array([5, 2, -1, -1]),
    np.array([30, 10, 30, 20]),
  )
  np.testing.assert_array_equal(cases, [10, 20, 30])
  np.testing.assert_array_equal(labels, [2, -1, 5])
  np.testing.assert_allclose(pooled, [[2.0, 2.0], [7.0, 7.0], [2.0, 2.0]])


def test_pool_cases_names_a_case_of_two_labels():
  with pytest.raises(
    ValueError, match=r'Case 8 has images of different labels, \[0, 3'
  ):
    feature_sets.pool_cases(
      np.zeros([4, 1]), np.array([1, 3, -1, 0]), np.array([7, 8, 8, 8])
    )


def test_pool_cases_refuses_lengths_that_differ():
  with pytest.raises(ValueError, match='2 features, 3 labels and 2 cases'):
    feature_sets.pool_cases(np.zeros([2, 1]), np.zeros([3], int), np.zeros([2], int))


def test_pool_cases_of_nothing():
  nothing = np.zeros([0], np.int64)
  pooled, labels, cases = feature_sets.pool_cases(np.zeros([0, 3]), nothing, nothing)
  assert pooled.shape == (0, 3) and labels.shape == (0,) and cases.shape == (0,)
