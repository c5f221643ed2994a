"""Formats that Pillow may try, and the memory that pictures share."""

import ast
import concurrent.futures
import io
import os
import pathlib
import threading

import numpy as np
from PIL import Image
import pytest

from tasks import image_opening
from tasks import images
from tasks import masks
from tests.worlds import pictures

_POSTSCRIPT = (
  b'%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n'
  b'0 0 8 8 rectfill\nshowpage\n%%EOF\n'
)


@pytest.mark.parametrize(
  'read',
  [lambda c: pictures.decode(c, 8), lambda c: masks.decode(c, 8), images.size_of],
)
def test_postscript_starts_no_program(tmp_path, monkeypatch, read):
  program = tmp_path / 'gs'
  program.write_text(f'#!/bin/sh\ntouch {tmp_path}/started\necho 10.0\n')
  program.chmod(0o755)
  monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
  monkeypatch.setattr('PIL.EpsImagePlugin.gs_binary', None)
  with pytest.raises(Image.UnidentifiedImageError):
    read(_POSTSCRIPT)
  assert not (tmp_path / 'started').exists()
  # The program would have been started.
  with Image.open(io.BytesIO(_POSTSCRIPT)) as image, pytest.raises(OSError):
    image.load()
  assert (tmp_path / 'started').exists()


@pytest.mark.parametrize('kind', ['PDF', 'ICNS', 'TGA', 'ICO', 'PCX', 'IM', 'DDS'])
def test_other_formats_are_not_tried(kind):
  content = pictures.of(Image.new('RGB', (16, 16)), kind)
  with pytest.raises(Image.UnidentifiedImageError):
    pictures.decode(content, 8)


def test_bands_that_pillow_does_not_know_have_a_way_out():
  content = pictures.tiff(np.zeros((2, 2, 4)), photometric=1, extra=(0, 0, 0))
  with pytest.raises(
    image_opening.PictureError, match='save one of them, or three as RGB'
  ):
    pictures.decode(content, 2)


def test_pictures_larger_than_pillow_reads_are_read():
  # Pillow's own limit is 179 million pixels. Of this one there is only the header, so
  # that what fails is reading it, not its size.
  header = b'P4 20000 9000\n'
  assert images.size_of(header) == (20_000, 9000)
  with pytest.raises(OSError, match=r'truncated|Unable to read'):
    pictures.decode(header, 8)


def test_oversized_files_are_refused_by_their_size(monkeypatch):
  monkeypatch.setattr(image_opening, 'room', lambda: image_opening.Room(2**20))
  content = pictures.of(Image.new('RGB', (1000, 800)))
  with pytest.raises(ValueError, match=r'1,000 x 800 pixels take .* 0\.0 GiB') as error:
    pictures.decode(content, 8)
  assert images.why_unreadable(error.value) == str(error.value)
  # Even how a PNG is turned may be said behind its pixels.
  with pytest.raises(image_opening.MachineError, match='1,000 x 800 pixels take'):
    images.size_of(content)
  # A JPEG is decoded at a fraction of its size.
  jpeg = pictures.of(Image.new('RGB', (1000, 800), 'white'), 'JPEG')
  np.testing.assert_array_equal(pictures.decode(jpeg, 8), 255)
  assert images.size_of(jpeg) == (1000, 800)


@pytest.mark.parametrize('mode', ['1', 'L', 'RGB', 'I;16', 'F'])
def test_a_picture_s_memory_is_not_underrated(monkeypatch, mode):
  amounts = []

  class Room(image_opening.Room):
    def take(self, amount, what):
      amounts.append(amount)
      return super().take(amount, what)

  monkeypatch.setattr(image_opening, 'room', lambda: Room(2**30))
  content = pictures.of(Image.new(mode, (300, 200)), 'TIFF')
  pictures.decode(content, 8)
  # By hand: the bytes of Pillow's pixels, and those of the picture in RGB.
  least = {'1': 1, 'L': 1, 'RGB': 4, 'I;16': 2, 'F': 4}[mode] + 4
  assert amounts[0] >= 300 * 200 * least


def test_room_is_shared_and_never_exceeded():
  room = image_opening.Room(100)
  used, most, lock = 0, 0, threading.Lock()
  started = threading.Barrier(8)

  def work(amount):
    nonlocal used, most
    started.wait()
    for _ in range(20):
      with room.take(amount, 'pixels'):
        with lock:
          used += amount
          most = max(most, used)
        with lock:
          used -= amount

  amounts = [100, 60, 50, 40, 30, 10, 5, 1]
  with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(work, amounts))
  assert 0 < most <= 100
  # All of it was given back.
  with room.take(100, 'pixels'):
    pass
  with pytest.raises(image_opening.PictureError), room.take(101, 'pixels'):
    pass


def test_nothing_is_opened_without_naming_formats():
  root = pathlib.Path(image_opening.__file__).parent.parent
  calls = [
    (path.name, call)
    for top in ('tasks', 'binaries', 'tff_ssl', 'docs')
    for path in (root / top).rglob('*.py')
    if 'Image.open' in (text := path.read_text(encoding='utf-8'))
    for call in ast.walk(ast.parse(text))
    if isinstance(call, ast.Call) and ast.unparse(call.func) == 'Image.open'
  ]
  assert calls
  for name, call in calls:
    assert [word.arg for word in call.keywords] == ['formats'], name
