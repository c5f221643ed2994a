"""Squares of pictures of any size, against Pillow as `tasks` calls it."""

import numpy as np
import pytest
import tensorflow as tf

from tasks import images
from tff_ssl.encoders import registry
from tff_ssl.export import exports
from tff_ssl.export import squares

# Heights and widths, for squares of 12: wide and tall ones of both orders of the axes
# (Pillow takes the vertical one first if the height shrinks by more than twice as many
# pixels), larger, smaller and equal, with a crop of half a pixel, and one of which
# nothing is left between bars.
_SIZE = 12
_SIDES = (
  (20, 41),
  (41, 20),
  (25, 20),
  (12, 31),
  (29, 12),
  (7, 5),
  (5, 9),
  (12, 12),
  (60, 60),
  (90, 3),
)


def _pictures(sides, channels=3, seed=0):
  generator = np.random.default_rng([seed, *sides])
  return generator.integers(0, 256, (2, *sides, channels)).astype(np.uint8)


def _in_tensorflow(fit, dtype=tf.float64):
  spec = tf.TensorSpec([None, None, None, 3], tf.uint8)
  function = tf.function(
    lambda x: squares.of_pictures(x, _SIZE, fit, dtype), [spec], autograph=False
  )
  return lambda pictures: function(pictures).numpy()


def _in_numpy(fit, folder):
  return squares.load(squares.write(folder, _SIZE, fit))


def _in_torch(fit):
  """The code for PyTorch, with NumPy in its place, whose names are the same."""
  code = squares.template('squares').module.functions('torch', _SIZE, fit)
  of_device = '    down, across = down.to(x), across.to(x)\n'
  assert of_device in code
  made = {'torch': np}
  exec(code.replace(of_device, ''), made)

  def way(pictures):
    squares = made['resized'](np.moveaxis(pictures.astype(float), 3, 1))
    return np.moveaxis(squares, 1, 3)

  return way


_MANY_SIDES = np.random.default_rng(0).integers(2, 150, (300, 2))


@pytest.mark.long_for('many')
@pytest.mark.parametrize('fit', squares.FITS)
@pytest.mark.parametrize('every', [_SIDES, _MANY_SIDES], ids=['few', 'many'])
def test_squares_are_pillow_s_to_the_bit(fit, every, tmp_path):
  ways = (_in_tensorflow(fit), _in_numpy(fit, tmp_path), _in_torch(fit))
  for sides in every:
    pictures = _pictures(sides)
    expected = images.resize(pictures, _SIZE, fit)
    for way in ways:
      np.testing.assert_array_equal(way(pictures), expected, err_msg=f'{sides}')
  right = _pictures((_SIZE, _SIZE))
  for way in ways:
    np.testing.assert_array_equal(way(right), right, err_msg='of the right size')


def test_in_float32_few_pixels_are_one_step_away():
  way = _in_tensorflow(squares.CROP, tf.float32)
  steps = []
  for sides in ((50, 71), (71, 50), (33, 29)):
    for seed in range(20):
      pictures = _pictures(sides, seed=seed)
      expected = images.resize(pictures, _SIZE, squares.CROP)
      steps.append(way(pictures).astype(int) - expected)
  gaps = np.abs(steps)
  assert np.max(gaps) <= 1
  # 3 of 51,840.
  assert np.mean(gaps) < 2e-4


# That Keras takes what square.py makes is quick in tests/docs/elsewhere_test.py.
@pytest.mark.long_for('savedmodel', 'keras')
@pytest.mark.parametrize('kind', [exports.SAVED_MODEL, exports.TFLITE, exports.KERAS])
def test_a_model_of_any_size_gives_what_it_gives_of_squares(kind, tmp_path):
  network = registry.build_encoder('conv2', (12, 12, 1), 0.125)
  model = exports.with_preprocessing(network.to_keras(network.init([0, 1])))
  pictures = _pictures((24, 48), channels=1)
  made = images.resize(pictures, _SIZE, squares.CROP)
  fixed = exports.load(kind, exports.write(model, kind, tmp_path))
  expected = fixed(made)['features']
  path = exports.write(model, kind, tmp_path, fit=squares.CROP)
  run = exports.load(kind, path, any_size=True)
  for _ in range(2):
    np.testing.assert_allclose(run(pictures)['features'], expected, atol=1e-6)
    # Of the right size: to the bit.
    np.testing.assert_array_equal(run(made)['features'], expected)


def test_what_no_picture_can_become_is_refused():
  with pytest.raises(ValueError, match=r"fit is 'zoom'; it must be"):
    squares.check((8, 8, 3), 'zoom')
  for shape in ((8, 9, 3), (7,)):
    with pytest.raises(ValueError, match='pictures of any size need one of squares'):
      squares.check(shape, squares.CROP)
