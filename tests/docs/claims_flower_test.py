"""FedAvg in Flower's setting, on a stand-in for Fashion-MNIST."""

import csv
import gzip

import numpy as np
import pytest
from scipy import signal
import tensorflow as tf

from docs.claims import flower
from tests.binaries import in_process


def _write(folder, split, count):
  """Writes images whose class is the place of a bright square, and their labels."""
  labels = np.arange(count, dtype=np.uint8) % 10
  images = np.random.default_rng(count).integers(0, 64, (count, 28, 28), np.uint8)
  for image, label in zip(images, labels, strict=True):
    row, column = divmod(int(label), 5)
    image[14 * row + 2 : 14 * row + 12, 5 * column + 2 : 5 * column + 7] = 255
  for name, magic, values in (
    ('images-idx3', 0x803, images),
    ('labels-idx1', 0x801, labels),
  ):
    header = np.array([magic, *values.shape], '>i4').tobytes()
    with gzip.open(folder / f'{split}-{name}-ubyte.gz', 'wb') as file:
      file.write(header + values.tobytes())


@pytest.fixture
def data(tmp_path):
  folder = tmp_path / 'data'
  folder.mkdir()
  _write(folder, 'train', 600)
  _write(folder, 't10k', 100)
  return folder


def test_the_network_is_two_convolutions_and_three_dense_layers():
  network = flower.Network()
  params = network.init(tf.constant([1, 2]), tf.float64)
  # Li et al. 2022, section V: 6 and 16 filters of 5 x 5, then 120 and 84 units.
  layers = (25 * 6 + 6, 25 * 6 * 16 + 16, 256 * 120 + 120, 120 * 84 + 84, 84 * 10 + 10)
  assert sum(tf.size(value).numpy() for value in params.values()) == sum(layers)
  image = np.random.default_rng(0).integers(0, 256, (28, 28, 1), np.uint8)
  x = image / 255
  kernels, biases = ([*params.values()][kind::2] for kind in (0, 1))
  for layer in range(5):
    kernel, bias = kernels[layer].numpy(), biases[layer].numpy()
    # PyTorch's default: uniform, of this standard deviation.
    of_init = (3 * np.prod(kernel.shape[:-1])) ** -0.5
    assert np.std(kernel) == pytest.approx(of_init, rel=0.15)
    if layer < 2:
      maps = [
        sum(
          signal.correlate2d(x[..., i], kernel[..., i, o], 'valid')
          for i in range(x.shape[-1])
        )
        for o in range(len(bias))
      ]
      x = np.maximum(np.stack(maps, axis=-1) + bias, 0)
      side = len(x) // 2
      x = x.reshape(side, 2, side, 2, -1).max(axis=(1, 3))
    else:
      x = x.ravel() @ kernel + bias
      x = x if layer == 4 else np.maximum(x, 0)
  got = network.classify(params, tf.constant(image[np.newaxis]))
  np.testing.assert_allclose(got, x[np.newaxis], rtol=1e-10, atol=1e-12)


@pytest.mark.long
def test_settings_are_run_resumed_and_shown_next_to_flower_s(data, tmp_path, capsys):
  shared = (f'--data_dir={data}', f'--runs={tmp_path / "runs"}')
  in_process.call(flower, *shared, '--rounds=1', '--settings=iid')
  capsys.readouterr()
  in_process.call(flower, *shared, '--rounds=2')
  shown = capsys.readouterr().out.splitlines()[-3:]
  for line, (name, (_, published, _)) in zip(
    shown, flower.SETTINGS.items(), strict=True
  ):
    with (tmp_path / 'runs' / name / 'seed_0' / 'metrics.csv').open() as file:
      rows = list(csv.DictReader(file))
    first, second = (float(row['client_work/loss']) for row in rows)
    assert second < first
    best = max(100 * float(row['test_accuracy']) for row in rows)
    assert line.startswith(f'{name} ') and line.endswith(f' {best:.2f}')
    assert f' {published:.2f} ± ' in line


def test_what_is_not_fashion_mnist_is_refused(data):
  short = data / 't10k-labels-idx1-ubyte.gz'
  with gzip.open(short, 'wb') as file:
    file.write(bytes(8 + 99))
  with pytest.raises(ValueError, match='t10k files hold 99 labels and 78400 pixels'):
    in_process.call(flower, f'--data_dir={data}')
  short.write_bytes(b'no archive')
  with pytest.raises(
    ValueError, match=r't10k-labels.* cannot be read.*; it must be th'
  ):
    in_process.call(flower, f'--data_dir={data}')
  with pytest.raises(ValueError, match='has as the package dataset-fashion-mnist'):
    in_process.call(flower, f'--data_dir={data}/none')
