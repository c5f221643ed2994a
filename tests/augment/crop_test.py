"""Tests of crop, flip and resize as one resampling."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.augment import crop

_WHOLE = (1.0, 1.0)
_RATIO = (3 / 4, 4 / 3)


def _draws(m: int, **fixed) -> dict[str, tf.Tensor]:
  rng = np.random.default_rng(m)
  names = ('area', 'ratio', 'top', 'left', 'flip')
  draws = {name: rng.uniform(size=m) for name in names}
  draws.update({name: np.full(m, v) for name, v in fixed.items()})
  return {name: tf.constant(value) for name, value in draws.items()}


def _images(n: int, height: int = 6, width: int = 5) -> np.ndarray:
  rng = np.random.default_rng(n)
  return rng.integers(0, 256, size=(n, height, width, 3)).astype(np.uint8)


def _interpolate(image: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
  """Bilinear interpolation at fractional pixel centres, one axis after the other."""

  def along_first(values, places):
    low = np.clip(np.floor(places).astype(int), 0, len(values) - 2)
    t = (places - low).reshape(-1, 1, 1)
    return values[low] * (1 - t) + values[low + 1] * t

  resized = along_first(image.astype(np.float64), rows)
  return along_first(resized.swapaxes(0, 1), cols).swapaxes(0, 1)


def test_whole_image_is_the_identity_and_flip_is_exact():
  images = _images(8)
  draws = _draws(8)
  got = crop.crop_and_flip(tf.constant(images), draws, (6, 5), _WHOLE, _RATIO, 0.5)
  flip = draws['flip'].numpy() < 0.5
  assert 0 < flip.sum() < 8
  expected = np.where(flip[:, None, None, None], images[:, :, ::-1], images)
  np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize('size', [(6, 5), (4, 4), (9, 9)])
@pytest.mark.parametrize('flip', [0.0, 0.9])
def test_equals_interpolation_inside_the_box(size, flip):
  images = _images(3)
  draws = _draws(3, flip=flip)
  got = crop.crop_and_flip(
    tf.constant(images), draws, size, (0.2, 0.8), _RATIO, flip_probability=0.5
  )
  heights, widths = crop.crop_size(draws, 5 / 6, (0.2, 0.8), _RATIO)
  for i in range(3):
    top = float((1 - heights[i]) * draws['top'][i])
    left = float((1 - widths[i]) * draws['left'][i])
    rows = np.linspace(top, top + float(heights[i]), size[0]) * 5
    cols = np.linspace(left, left + float(widths[i]), size[1]) * 4
    expected = _interpolate(images[i], rows, cols if flip > 0.5 else cols[::-1])
    np.testing.assert_allclose(got[i], expected, atol=2e-3)


@pytest.mark.parametrize('aspect', [0.5, 1.0, 1.7])
def test_crop_sizes_keep_area_and_ratio(aspect):
  draws = _draws(2000)
  height, width = crop.crop_size(draws, aspect, (0.08, 1.0), _RATIO)
  height, width = height.numpy(), width.numpy()
  assert height.max() <= 1.0
  assert width.max() <= 1.0
  area = 0.08 + 0.92 * draws['area'].numpy()
  ratio = width / height * aspect
  # Wherever some allowed ratio fits, both are met exactly.
  fits = (area * aspect <= _RATIO[1]) & (aspect / area >= _RATIO[0])
  assert fits.mean() > 0.5
  np.testing.assert_allclose((height * width)[fits], area[fits], rtol=1e-5)
  assert ratio[fits].min() > _RATIO[0] * 0.999
  assert ratio[fits].max() < _RATIO[1] * 1.001
  assert np.ptp(ratio[fits]) > 0.5


@pytest.mark.parametrize('size', [(32, 32), (47, 47), (224, 224), (31, 31)])
@pytest.mark.parametrize('scale', [(0.08, 1.0), (0.999, 1.0), _WHOLE])
def test_no_black_border_from_rounding(size, scale):
  white = tf.fill([1, 33, 33, 1], tf.constant(255, tf.uint8))
  # Boxes that end exactly on a border are the ones at risk.
  draws = _draws(60)
  edge = np.where(np.arange(60) % 3 == 0, 1 - 2**-24, draws['top'].numpy())
  draws.update(top=tf.constant(edge), left=tf.constant(edge[::-1].copy()))
  got = crop.crop_and_flip(white, draws, size, scale, _RATIO, 0.5).numpy()
  assert got.min() > 254.99


def test_rows_beyond_n_start_over():
  images = _images(2)
  draws = _draws(4, flip=0.9)
  got = crop.crop_and_flip(tf.constant(images), draws, (6, 5), _WHOLE, _RATIO, 0.5)
  np.testing.assert_array_equal(got, np.concatenate([images, images]))
