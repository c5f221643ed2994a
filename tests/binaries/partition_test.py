"""Describing partitions, drawing them, and what clients then hold."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

from binaries import partition
from binaries.building import data as building
from binaries.experiment import partition_plot
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tests.export import encoder_files
from tff_ssl.encoders import registry as encoder_registry
from tff_ssl.evaluation import feature_sets
from tff_ssl.partition import describe


@pytest.fixture(scope='module')
def digits():
  return registry.load('digits')


@pytest.fixture(scope='module')
def encoder_path(tmp_path_factory):
  """An encoder of digits, as a run leaves it."""
  encoder = encoder_registry.build_encoder('conv2', (8, 8, 1), width=0.125)
  return encoder_files.write(tmp_path_factory.mktemp('encoder'), encoder)


def test_prints_what_a_run_prints_and_a_table(capsys):
  in_process.call(partition, '--partition=skew:beta=0,clients=5')
  task, line, header, _, *rows = capsys.readouterr().out.splitlines()
  assert task.startswith('digits: train 1,438 images')
  assert line.startswith(
    'skew:beta=0,clients=5: 5 clients with 1,438 of 1,438 examples'
  )
  assert 'mean earth-mover distance' in line
  assert header.split() == ['client', 'examples', 'classes', 'largest']
  assert len(rows) == 5
  assert all(row.split()[2] == '2' for row in rows)


def test_first_clients_of_many(capsys):
  in_process.call(partition)
  lines = capsys.readouterr().out.splitlines()
  # By default 359 clients of four images, nearly all of one class each.
  assert lines[1].startswith('dirichlet:alpha=0,examples=4: 359 clients with 1,436 of')
  assert lines[4].split()[:3] == ['client_000', '4', '1']
  assert lines[4].endswith(' 100%')
  assert lines[-1] == 'and 349 more'


def test_says_what_labels_do_not_show(capsys):
  in_process.call(partition, '--partition=rotation:clients=4')
  told = capsys.readouterr().out
  assert 'Client k of 4 has its images rotated by k/4 of a turn.\n' in told
  # A half spread evenly over four: 0.5 * 2 (1 - 1/4), but for whole examples.
  in_process.call(partition, '--partition=style:clients=4,beta=0.5')
  told = capsys.readouterr().out
  assert 'Source k of 4 has its images in the k-th colours and tone. Mean' in told
  assert "the clients' sources to those of all clients: 0.749." in told


def test_writes_what_all_clients_have(tmp_path):
  path = tmp_path / 'clients.csv'
  in_process.call(
    partition, f'--csv={path}', '--partition=classes:per_client=3,clients=4'
  )
  rows = launch.table(tmp_path, 'clients.csv')
  assert len(rows) == 4
  for row in rows:
    assert sum(row[f'label_{k}'] != '0' for k in range(10)) == 3


def test_as_a_program_draws(tmp_path):
  path = tmp_path / 'clients.png'
  ended = in_process.run(partition, '--partition=iid:clients=5', f'--plot={path}')
  # Not stderr: matplotlib may say there that it makes its cache of fonts.
  assert ended.status == 0, ended.stderr
  assert path.read_bytes().startswith(b'\x89PNG')
  assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_clusters_of_an_encoder(encoder_path, digits):
  line = f'--partition=clusters:clients=2 --data=partition_encoder={encoder_path}'
  clients = building.partition(in_process.read('dcco', line), digits)
  model = tf.keras.models.load_model(encoder_path)
  encoded = feature_sets.encode(model, digits.train.image)
  # k-means: everyone is nearest to the mean of their own cluster.
  means = np.stack([encoded[held].mean(axis=0) for held in clients.values()])
  for k, held in enumerate(clients.values()):
    distances = np.linalg.norm(encoded[held, np.newaxis] - means, axis=-1)
    assert np.mean(np.argmin(distances, axis=1) == k) > 0.99


def test_encoder_that_cannot_be_used_is_an_error(encoder_path, digits):
  missing = encoder_path.with_name('no.keras')
  for path, task, said in (
    (missing, digits, r'no\.keras.* cannot be read as an encoder\.keras'),
    (
      encoder_path,
      registry.load('digits', image_size=16),
      r'shape \(8, 8, 1\), but those of digits are',
    ),
  ):
    line = f'--partition=clusters:clients=2 --data=partition_encoder={path}'
    with pytest.raises(ValueError, match=said):
      building.partition(in_process.read('dcco', line), task)


@pytest.mark.parametrize('labelled', [False, True])
def test_clients_hold_the_changed_images(digits, labelled):
  config = in_process.read('dcco', '--partition=rotation:clients=4')
  clients = building.partition(config, digits)
  data = building.client_data_of(config, digits, clients, labelled)
  for k, (client_id, held) in enumerate(clients.items()):
    examples = data.examples(data.positions(client_id))
    expected = np.rot90(digits.train.image[held], k, axes=(1, 2))
    np.testing.assert_array_equal(examples['image'], expected)
    np.testing.assert_array_equal(examples['example_id'], digits.train.example_id[held])
    assert ('label' in examples) == labelled


def _report(clients, classes, unlabelled=False):
  rng = np.random.default_rng(0)
  labels = rng.integers(0, classes, 40 * clients)
  if unlabelled:
    labels[::7] = -1
  held = rng.permutation(len(labels)).reshape(clients, 40)
  return describe.describe(
    {f'client_{k:03d}': positions for k, positions in enumerate(held)}, labels, classes
  )


@pytest.mark.long_for('5')
@pytest.mark.parametrize('clients', [5, 200])
@pytest.mark.parametrize(
  ('classes', 'unlabelled'), [(10, False), (10, True), (43, False)]
)
def test_bars_are_the_histograms(clients, classes, unlabelled):
  report = _report(clients, classes, unlabelled)
  names = [f'name {k}' for k in range(classes)]
  figure = partition_plot.draw(report, names, 'title', max_clients=100)
  plot = figure.axes[0]
  count = min(clients, 100)
  heights = np.array([[bar.get_height() for bar in layer] for layer in plot.containers])
  np.testing.assert_array_equal(heights[:classes], report.histograms[:count].T)
  assert len(heights) == classes + unlabelled
  np.testing.assert_array_equal(np.sum(heights, axis=0), 40)
  tops = [bar.get_y() + bar.get_height() for bar in plot.containers[-1]]
  np.testing.assert_array_equal(tops, 40)
  colors = {layer[0].get_facecolor() for layer in plot.containers}
  assert len(colors) == len(plot.containers)
  assert ('first 100 of 200' in figure.get_supxlabel()) == (clients == 200)
  # A legend for few classes, a scale for many.
  legend = plot.get_legend()
  assert (legend is None) == (classes == 43)
  if legend:
    assert legend.get_texts()[-1].get_text() == 'name 0'
  assert len(figure.axes) == (2 if classes == 43 else 1)


def test_unlabelled_clients_are_drawn():
  report = describe.describe({'a': np.arange(3), 'b': np.array([3])}, np.full(4, -1), 0)
  (layer,) = partition_plot.draw(report, [], 'title', 10).axes[0].containers
  assert [bar.get_height() for bar in layer] == [3, 1]


def test_figure_is_whole_or_absent(tmp_path, monkeypatch):
  def fail_half_way(figure, aside, **_):
    pathlib.Path(aside).write_bytes(b'half')
    raise OSError('no space')

  monkeypatch.setattr(partition_plot.figure_lib.Figure, 'savefig', fail_half_way)
  with pytest.raises(OSError, match='no space'):
    partition_plot.write(_report(2, 2), ['a', 'b'], 't', 10, tmp_path / 'x.png')
  assert not list(tmp_path.iterdir())
