"""Encoders for other programs, also of pictures of any size."""

import importlib.util
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tasks import images
from tff_ssl.encoders import network as network_lib
from tff_ssl.encoders import pixels
from tff_ssl.encoders import registry
from tff_ssl.evaluation import linear_probe
from tff_ssl.export import exports
from tff_ssl.export import squares

_NEVER = 2
_PINS = pathlib.Path(__file__).parents[2] / 'docs' / 'elsewhere' / 'requirements'


def _network(name, shape):
  norm = 'group' if name in registry.with_option('normalization') else None
  network = registry.build_encoder(name, shape, 0.125, normalization=norm)
  return network, network.init([0, 1])


def _classifier(features):
  labels = np.arange(len(features)) % 2
  return linear_probe.fit_logistic(features, labels, num_classes=_NEVER + 1)


def _softmax(logits):
  e = np.exp(logits.astype(np.float64))
  return e / e.sum(axis=1, keepdims=True)


def test_a_folder_is_replaced_whole_and_what_a_kill_left_is_removed(
  tmp_path, monkeypatch
):
  path = tmp_path / 'savedmodel'
  for folder in (path, tmp_path / 'savedmodel.partial-x'):
    folder.mkdir()
    (folder / 'old').touch()
  removed = []
  monkeypatch.setattr(
    exports.shutil, 'rmtree', lambda path, **_: removed.append(path.name)
  )
  # As if killed before anything could be removed.
  with exports._new_folder(path) as aside:
    (aside / 'new').touch()
  assert [each.name for each in path.iterdir()] == ['new']
  (before,) = tmp_path.glob('*-before')
  assert removed == ['savedmodel.partial-x', aside.name, before.name]
  monkeypatch.undo()
  with exports._new_folder(path) as aside:
    (aside / 'newer').touch()
  assert [each.name for each in path.iterdir()] == ['newer']
  assert [each.name for each in tmp_path.iterdir()] == ['savedmodel']


@pytest.mark.long_for('vit_tiny')
@pytest.mark.parametrize(
  ('name', 'shape'), [('conv2', (8, 8, 1)), ('vit_tiny', (8, 8, 3))]
)
def test_bytes_in_features_and_probabilities_out(name, shape, tmp_path):
  network, params = _network(name, shape)
  images = np.random.default_rng(0).integers(0, 256, (5, *shape)).astype(np.uint8)
  features = network.infer(params, images / np.float32(255)).numpy()
  known = _classifier(features)
  logits = (features - known.mean) / known.scale @ known.kernel
  probabilities = np.zeros([5, 3])
  probabilities[:, :_NEVER] = _softmax((logits + known.bias)[:, :_NEVER])
  np.testing.assert_allclose(known.probabilities(features), probabilities, atol=1e-6)
  model = exports.with_preprocessing(network.to_keras(params), None, known)
  for kind in (exports.KERAS, exports.SAVED_MODEL, exports.TFLITE):
    if kind == exports.SAVED_MODEL:
      (tmp_path / 'savedmodel').mkdir()  # To be replaced.
    path = exports.write(model, kind, tmp_path)
    run = exports.load(kind, path)
    for part in (images, images[:1]):
      found = run(part)
      assert found.keys() == {'features', 'probabilities'}, kind
      np.testing.assert_allclose(
        found['features'], features[: len(part)], atol=1e-5, err_msg=kind
      )
      np.testing.assert_allclose(
        found['probabilities'], probabilities[: len(part)], atol=1e-5, err_msg=kind
      )
  assert sorted(path.name for path in tmp_path.iterdir()) == [
    'model.keras',
    'model.tflite',
    'savedmodel',
  ]


def test_tflite_has_what_pytorchs_networks_have(tmp_path):
  def forward(ops, x):
    x = pixels.read(ops, x, 'imagenet')
    x = ops.conv2d(
      ops.zero_pad(x, 1), 'conv', filters=6, kernel_size=3, strides=2, padding='valid'
    )
    x = ops.prefix(ops.positions(ops.tokens(x), 'positions'), 'prefix', count=2)
    x = ops.layer_scale(ops.attention(x, 'attention', heads=3), 'scaled', initial=0.5)
    return ops.global_average_pool(ops.crop_tokens(x, 0, 1))

  network = network_lib.Network('net', (6, 6, 1), forward)
  params = network.init([0, 1])
  images = np.random.default_rng(0).integers(0, 256, (5, 6, 6, 1)).astype(np.uint8)
  model = exports.with_preprocessing(network.to_keras(params))
  run = exports.load(exports.TFLITE, exports.write(model, exports.TFLITE, tmp_path))
  features = network.infer(params, images / np.float32(255))
  np.testing.assert_allclose(run(images)['features'], features, atol=1e-5)


@pytest.mark.parametrize('value', [0.1, 0.7])
def test_group_norm_of_a_map_of_nearly_one_value_is_exact_in_tflite(value, tmp_path):
  """As of an image of one colour, whose maps differ at their borders alone."""
  maps = np.full([1, 64, 64, 8], value, np.float32)
  maps[:, 0] += 0.05
  maps[:, :, -1] += np.linspace(-0.1, 0.1, 8, dtype=np.float32)
  gamma, beta = np.linspace(0.5, 2, 8), np.linspace(-1, 1, 8)
  inputs = tf.keras.Input([64, 64, 8])
  layer = tf.keras.layers.GroupNormalization(groups=4, epsilon=1e-5)
  model = tf.keras.Model(inputs, {exports.FEATURES: layer(inputs)})
  layer.set_weights([gamma, beta])

  grouped = maps.astype(np.float64).reshape([64 * 64, 4, 2])
  centred = grouped - grouped.mean(axis=(0, 2), keepdims=True)
  variance = np.mean(centred**2, axis=(0, 2), keepdims=True)
  expected = (centred / np.sqrt(variance + 1e-5)).reshape(maps.shape) * gamma + beta

  path = exports.write(model, exports.TFLITE, tmp_path)
  found = exports.load(exports.TFLITE, path)(maps)[exports.FEATURES]
  # 9e-5 off; with sums of all 4,096 positions one by one it was 0.15 and 3.2.
  np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.long
def test_a_model_computes_as_before_once_it_was_written_for_tflite(tmp_path):
  """What is written after it, as ONNX is, had TFLite's operations."""
  network, params = _network('vit_micro', (8, 8, 3))
  model = exports.with_preprocessing(network.to_keras(params))
  operations = _operations(model)
  exports.write(model, exports.TFLITE, tmp_path)
  assert _operations(model) == operations


def _operations(model):
  """Returns the types of the operations of a model's graph."""
  spec = tf.TensorSpec((None, *model.input_shape[1:]), model.inputs[0].dtype)
  graph = tf.function(lambda x: model(x), autograph=False).get_concrete_function(spec)
  return [operation.type for operation in graph.graph.get_operations()]


def test_rows_of_a_table_are_scaled_without_losing_digits(tmp_path):
  network, params = _network('mlp', (3,))
  rng = np.random.default_rng(0)
  scaled = rng.normal(size=(6, 3)).astype(np.float32)
  scaled[:, 2] = 0
  # A mean of 1,000 deviations; and what was constant may now be anything.
  scaling = exports.Scaling(np.array([1e3, 0.0, 5.0]), np.array([1.0, 4.0, 0.0]))
  rows = np.float32(scaled / [1, 4, 1] + scaling.mean)
  rows[:, 2] = rng.normal(size=6)
  expected = network.infer(params, (rows.astype(np.float64) - scaling.mean) * [1, 4, 0])
  model = exports.with_preprocessing(network.to_keras(params), scaling)
  path = exports.write(model, exports.KERAS, tmp_path)
  found = exports.load(exports.KERAS, path)(rows)
  np.testing.assert_allclose(found['features'], expected, atol=1e-5)


def test_a_format_that_cannot_be_written_is_refused(monkeypatch):
  monkeypatch.setattr(importlib.util, 'find_spec', lambda _: None)
  exports.check(['keras', 'tflite'])
  with pytest.raises(ValueError, match='--no-deps') as refused:
    exports.check(['onnx'])
  # What is proposed is what `make elsewhere` installs.
  lines = (_PINS / 'onnx.txt').read_text().splitlines()
  proposed = str(refused.value).partition('pip install --no-deps ')[2].split()
  assert sorted(proposed) == [line for line in lines if not line.startswith('#')]
  with pytest.raises(ValueError, match="format is 'coreml'; it must be one of keras"):
    exports.check(['coreml'])


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
