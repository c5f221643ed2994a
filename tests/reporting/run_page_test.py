"""The page of a run: its curves, its numbers, and test examples."""

import base64
import io
import re

import numpy as np
from PIL import Image
import pytest

from tests.worlds import html_page
from tests.worlds import made_runs
from tff_ssl.reporting import run_page
from tff_ssl.reporting import run_reader

_EVALUATION = {
  'labels/10%': 145.0,
  'knn/10%/accuracy': 0.75,
  'knn/10%/accuracy/deviation': 0.02,
  'pixels/knn/10%/accuracy': 0.5,
}


def _page(folder, settings=None, pictures=None, read=(), advised=None, **made):
  made_runs.run(folder, settings, **made)
  return run_page.build(run_reader.read(folder), read, advised, pictures)


def _points(page, title):
  """Returns the points of a panel, [n, 2]."""
  own = page[page.index(f'<figcaption>{title}') :]
  (points,) = re.findall(r'points="([^"]*)"', own.partition('</figure>')[0])
  return np.array([[*map(float, point.split(','))] for point in points.split()])


def test_finished_page_has_numbers_beside_those_of_the_pixels(tmp_path):
  page = _page(
    tmp_path / 'run',
    evaluation=_EVALUATION,
    read=['601 files: 600 images read'],
    advised='Try more <rounds>.',
  )
  parsed = html_page.Page(page)
  cells = parsed.texts('td', 'th')
  assert cells[cells.index('encoder') + 1] == '75.0 ± 2.0%'
  assert cells[cells.index('pixels') + 1] == '50.0%'
  assert {'601 files: 600 images read', 'Try more <rounds>.'} <= {*parsed.texts('li')}
  assert 'finished, 3 rounds' in page
  assert not parsed.loaded
  assert 'http-equiv' not in page


def test_unfinished_page_loads_itself_again(tmp_path):
  page = _page(tmp_path / 'run', {'rounds': 9})
  assert '<meta http-equiv="refresh" content="15">' in page
  assert 'unfinished, round 3 of 9' in page


@pytest.mark.parametrize(
  ('losses', 'expected'),
  [
    # From the top left to the bottom right of 300 x 120.
    ([3.0, 2.0, 1.0], [[0, 0], [150, 60], [300, 120]]),
    ([3.0, 'nan', 1.0], [[0, 0], [300, 120]]),
    (['inf', 2.0, 1.0], [[0, 0], [300, 120]]),
    ([2.0, 2.0, 2.0], [[0, 60], [150, 60], [300, 60]]),
  ],
)
def test_curve_fills_its_panel(tmp_path, losses, expected):
  page = _page(tmp_path / 'run', metrics={'client_work/loss': losses})
  np.testing.assert_allclose(_points(page, 'training loss'), expected)


def test_one_point_is_no_curve(tmp_path):
  page = _page(tmp_path / 'run', metrics={'client_work/loss': ['', 'nan', 5.0]})
  assert 'Curves' not in page


def test_long_curve_keeps_its_ends(tmp_path):
  losses = np.linspace(7.0, 2.0, 5000)
  page = _page(
    tmp_path / 'run', {'rounds': 5000}, metrics={'client_work/loss': [*losses]}
  )
  points = _points(page, 'training loss')
  assert len(points) == 300
  np.testing.assert_allclose(points[[0, -1]], [[0, 0], [300, 120]])


def test_name_of_a_stranger_is_text(tmp_path):
  pictures = run_page.Pictures(
    np.eye(3), np.zeros([3, 4, 4, 1], np.uint8), ['<b>a</b>', 'b', 'b']
  )
  page = _page(tmp_path / 'run', {'task': '<script>'}, pictures=pictures)
  assert '<script>' not in page
  assert '<b>a</b>' not in page
  assert '&lt;b&gt;a&lt;/b&gt;' in page


def test_neighbours_are_the_most_similar_by_cosine(tmp_path):
  generator = np.random.default_rng(0)
  encodings = generator.normal(size=[40, 6]) * generator.uniform(1, 9, size=[40, 1])
  images = np.broadcast_to(
    np.arange(40, dtype=np.uint8)[:, None, None, None], [40, 3, 5, 1]
  )
  labels = [f'class {k}' for k in range(40)]
  page = _page(tmp_path / 'run', pictures=run_page.Pictures(encodings, images, labels))

  rows = re.findall(r'base64,([^"]*)">\s*<span><b>(.*?)</b>: (.*?)</span>', page)

  directions = encodings / np.linalg.norm(encodings, axis=1, keepdims=True)
  likeness = directions @ directions.T - 9 * np.eye(40)
  assert len(rows) == 8
  for png, own, others in rows:
    k = labels.index(own)
    expected = np.argsort(-likeness[k])[:8]
    assert others.split(', ') == [labels[each] for each in expected]
    strip = np.asarray(Image.open(io.BytesIO(base64.b64decode(png))))
    assert strip.shape == (3, 9 * 6, 3)
    assert strip[0, ::6, 0].tolist() == [k, *expected]


def test_map_separates_what_differs_most(tmp_path):
  encodings = np.repeat([[5.0, 1.0, 0.0], [-5.0, 1.0, 0.0]], 20, axis=0)
  encodings += np.random.default_rng(0).normal(scale=0.1, size=encodings.shape)
  images = np.zeros([40, 4, 4, 1], np.uint8)
  page = _page(
    tmp_path / 'run',
    pictures=run_page.Pictures(encodings, images, ['a'] * 20 + ['b'] * 20),
  )
  dots = re.findall(r'<circle cx="(.*?)".*?fill="(.*?)"><title>(.)</title>', page, re.S)
  x = np.array([float(place) for place, _, _ in dots])
  assert [name for _, _, name in dots] == ['a'] * 20 + ['b'] * 20
  assert abs(np.mean(x[:20]) - np.mean(x[20:])) > 250
  assert len({color for _, color, _ in dots}) == 2


def test_page_names_the_classes_that_are_confused(tmp_path):
  confused = {f'knn/10%/confusion/{k}/0': 1.0 for k in (0, 1)}
  evaluation = {**_EVALUATION, **confused}
  page = _page(tmp_path / 'run', evaluation=evaluation, classes=['<i>', 'bee'])
  parsed = html_page.Page(page)
  assert {'as <i>', 'as bee', '<i>', 'bee'} <= {*parsed.texts('td', 'th')}
  (sentence,) = parsed.texts('li')
  assert sentence.startswith("All 2 test examples are called '<i>' by knn 10%")
