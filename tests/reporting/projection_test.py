import json
import types
import urllib.parse
import wsgiref.util

import numpy as np
import pytest
from tensorboard.plugins.projector import projector_plugin
import tensorflow as tf

from tff_ssl.reporting import projection

EXAMPLES = {'label': ['cat', 'dog', 'a\tb\nc'], 'example_id': ['3', '5', '8']}


def images(count, height=2, width=4, channels=3):
  generator = np.random.default_rng(0)
  return generator.integers(0, 256, (count, height, width, channels), np.uint8)


def served(folder, route, **query):
  """Asks TensorBoard's plugin, as its page does, without starting a server."""
  plugin = projector_plugin.ProjectorPlugin(
    types.SimpleNamespace(
      data_provider=types.SimpleNamespace(list_runs=lambda *_, **__: []),
      logdir=str(folder),
    )
  )
  environment = {'QUERY_STRING': urllib.parse.urlencode({'run': '.', **query})}
  wsgiref.util.setup_testing_defaults(environment)
  statuses = []
  parts = plugin.get_plugin_apps()[route](
    environment, lambda status, *_: statuses.append(status)
  )
  assert statuses == ['200 OK'], b''.join(parts)
  return b''.join(parts)


def test_tensorboard_reads_all_of_it(tmp_path):
  encodings = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
  pixels = images(3)
  projection.write(tmp_path, encodings, pixels, EXAMPLES)
  assert json.loads(served(tmp_path, '/runs')) == ['.']
  (embedding,) = json.loads(served(tmp_path, '/info'))['embeddings']
  name = embedding['tensorName']
  assert embedding['tensorShape'] == [3, 5]
  # Width before height.
  assert embedding['sprite']['singleImageDim'] == [4, 2]
  tensor = np.frombuffer(served(tmp_path, '/tensor', name=name), np.float32)
  np.testing.assert_allclose(tensor.reshape(3, 5), encodings, rtol=1e-3)
  table = served(tmp_path, '/metadata', name=name).decode().splitlines()
  assert [line.split('\t') for line in table] == [
    ['label', 'example_id'],
    ['cat', '3'],
    ['dog', '5'],
    ['a b c', '8'],
  ]
  sprite = tf.io.decode_png(served(tmp_path, '/sprite_image', name=name)).numpy()
  expected = np.zeros([4, 8, 3], np.uint8)
  for position, (top, left) in enumerate([(0, 0), (0, 4), (2, 0)]):
    expected[top : top + 2, left : left + 4] = pixels[position]
  np.testing.assert_array_equal(sprite, expected)


def sprite_of(tmp_path, pixels):
  size = len(pixels)
  ids = {'label': ['x'] * size, 'example_id': ['0'] * size}
  projection.write(tmp_path, np.zeros([size, 1]), pixels, ids)
  return tf.io.decode_png((tmp_path / 'projector' / 'sprite.png').read_bytes()).numpy()


def test_grey_images_are_grey_tiles(tmp_path):
  pixels = images(1, channels=1)
  found = sprite_of(tmp_path, pixels)
  np.testing.assert_array_equal(found, np.repeat(pixels[0], 3, axis=-1))


def test_large_images_are_made_smaller_by_the_mean_of_their_pixels(tmp_path):
  pixels = images(1, height=64, width=32)
  blocks = pixels[0].reshape(32, 2, 16, 2, 3).astype(float)
  found = sprite_of(tmp_path, pixels)
  np.testing.assert_allclose(found, blocks.mean(axis=(1, 3)), atol=0.5)


def test_examples_are_chosen_at_random_and_always_alike():
  chosen = projection.choose(50, 20)
  assert len(chosen) == len(set(chosen)) == 20
  assert 0 <= chosen[0] < chosen[-1] < 50
  assert np.all(np.diff(chosen) > 0)
  assert not np.array_equal(chosen, np.arange(20))
  np.testing.assert_array_equal(chosen, projection.choose(50, 20))
  np.testing.assert_array_equal(projection.choose(5, 20), np.arange(5))
  assert len(projection.choose(5000)) == 1000


@pytest.mark.parametrize(
  ('num_encodings', 'num_images', 'ids'),
  [(2, 3, ['0'] * 3), (3, 2, ['0'] * 3), (3, 3, ['0']), (0, 0, [])],
)
def test_refuses_numbers_of_examples_that_do_not_fit(
  tmp_path, num_encodings, num_images, ids
):
  with pytest.raises(ValueError, match='the same number, at least 1'):
    projection.write(
      tmp_path / 'new',
      np.zeros([num_encodings, 2]),
      images(num_images),
      {'label': ids, 'example_id': ids},
    )
  assert not (tmp_path / 'new').exists()


def test_refuses_more_images_than_a_sprite_has_tiles(tmp_path):
  count = 257**2
  pixels = np.broadcast_to(np.uint8(0), (count, 1, 1, 1))
  large = np.broadcast_to(np.uint8(0), (count, 32, 1, 1))
  assert projection.make_sprite(projection.make_tiles(pixels)).shape == (257, 257, 3)
  with pytest.raises(ValueError, match='66049 images of 32 x 1 make a sprite of 257'):
    projection.make_sprite(large)


def test_configuration_is_written_last_and_nothing_else_is_left(tmp_path, monkeypatch):
  def fail(*_):
    raise OSError('no space')

  monkeypatch.setattr(projection, '_lines', fail)
  with pytest.raises(OSError, match='no space'):
    projection.write(tmp_path, np.zeros([3, 2]), images(3), EXAMPLES)
  assert not (tmp_path / projection.CONFIG).exists()
  monkeypatch.undo()
  projection.write(tmp_path, np.zeros([3, 2]), images(3), EXAMPLES)
  assert sorted(path.name for path in tmp_path.rglob('*.*')) == [
    'encodings.tsv',
    'examples.tsv',
    'projector_config.pbtxt',
    'sprite.png',
  ]


def test_without_images_there_is_no_sprite(tmp_path):
  examples = {'label': ['a', 'b'], 'example_id': ['1', '2']}
  projection.write(tmp_path, np.eye(2), None, examples)
  config = (tmp_path / projection.CONFIG).read_text()
  assert config == (
    'embeddings {\n'
    '  tensor_name: "encodings"\n'
    '  tensor_path: "projector/encodings.tsv"\n'
    '  metadata_path: "projector/examples.tsv"\n'
    '}\n'
  )
  assert not (tmp_path / 'projector' / 'sprite.png').exists()
  assert np.loadtxt(tmp_path / 'projector' / 'encodings.tsv').shape == (2, 2)
