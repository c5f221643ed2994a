"""Decoding to RGB squares."""

import io

import numpy as np
from PIL import Image
import pytest

from tasks import images
from tests.tasks import fabricate


def _png(image):
  buffer = io.BytesIO()
  image.save(buffer, 'png')
  return buffer.getvalue()


@pytest.mark.parametrize('mode', ['1', 'L', 'LA', 'P', 'RGB', 'RGBA'])
def test_white_is_white_in_every_mode(mode):
  decoded = images.decode(_png(Image.new('RGB', (9, 7), 'white').convert(mode)), 4)
  np.testing.assert_array_equal(decoded, np.full([4, 4, 3], 255))
  assert decoded.dtype == np.uint8


def test_sixteen_bits_are_scaled_not_clipped():
  grey = Image.fromarray(np.full([4, 4], 0x8000, np.uint16))
  np.testing.assert_array_equal(images.decode(_png(grey), 4), np.full([4, 4, 3], 0x80))


def _tiff(array):
  buffer = io.BytesIO()
  Image.fromarray(array).save(buffer, 'tiff')
  return buffer.getvalue()


@pytest.mark.parametrize(
  ('array', 'expected'),
  [
    # By hand: the least range that holds the largest number is the file's.
    (np.float32([[0.0, 0.5], [0.25, 1.0]]), [[0, 128], [64, 255]]),
    (np.float32([[0.0, 51.0], [102.0, 255.0]]), [[0, 51], [102, 255]]),
    (np.float32([[0.0, 65535.0], [25700.0, 257.0]]), [[0, 255], [100, 1]]),
    (np.float32([[0.0, 1e6], [5e5, 1e5]]), [[0, 255], [128, 26]]),
    (np.int32([[0, 200], [7, 255]]), [[0, 200], [7, 255]]),
    (np.int32([[0, 4095], [2048, 256]]), [[0, 255], [128, 16]]),
    (np.int32([[0, 2**31 - 1], [2**30, 2**24]]), [[0, 127], [64, 1]]),
    (np.uint16([[0, 4095], [2048, 16]]), [[0, 255], [128, 1]]),
    (np.uint16([[0, 1023], [512, 4]]), [[0, 255], [128, 1]]),
    (np.uint16([[0, 65535], [32768, 255]]), [[0, 255], [128, 0]]),
    (np.uint16([[0, 255], [128, 3]]), [[0, 255], [128, 3]]),
  ],
)
def test_numbers_are_scaled_by_the_file_s_own_range(array, expected):
  decoded = images.decode(_tiff(array), 2)
  np.testing.assert_array_equal(decoded, np.stack([expected] * 3, axis=-1))


@pytest.mark.parametrize('bad', [-1.0, np.nan, np.inf])
def test_numbers_that_are_no_brightness_are_refused(bad):
  with pytest.raises(ValueError, match='they must be finite and not negative'):
    images.decode(_tiff(np.float32([[0.5, bad], [0.1, 1.0]])), 2)


def test_the_central_square_is_kept():
  # Width 12, height 4: red, green, blue squares side by side.
  pixels = np.zeros([4, 12, 3], np.uint8)
  for channel in range(3):
    pixels[:, 4 * channel : 4 * channel + 4, channel] = 255
  decoded = images.decode(_png(Image.fromarray(pixels)), 4)
  np.testing.assert_array_equal(decoded, pixels[:, 4:8])


def test_orientation_is_applied():
  image = Image.fromarray(np.array([[0, 255], [0, 255]], np.uint8))
  exif = Image.Exif()
  exif[0x0112] = 3  # Upside down.
  buffer = io.BytesIO()
  image.save(buffer, 'png', exif=exif)
  decoded = images.decode(buffer.getvalue(), 2)
  np.testing.assert_array_equal(decoded[..., 0], [[255, 0], [255, 0]])


def test_a_truncated_file_is_an_error():
  with pytest.raises(OSError, match='truncated'):
    images.decode(fabricate.truncated_jpeg(), 8)


@pytest.mark.parametrize('channels', [1, 3])
def test_resize_keeps_constant_images(channels):
  batch = np.stack([np.full([8, 8, channels], v, np.uint8) for v in (3, 250)])
  resized = images.resize(batch, 12)
  assert resized.shape == (2, 12, 12, channels)
  np.testing.assert_array_equal(np.unique(resized[0]), [3])
  np.testing.assert_array_equal(np.unique(resized[1]), [250])
  assert images.resize(batch, None) is batch
