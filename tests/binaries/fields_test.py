"""Programs on data that are no images: a table, and two modalities."""

import json

import numpy as np
import pytest
import tensorflow as tf

from binaries import dcco
from binaries.experiment import evaluating
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import registry as encoders

_SHORT = (
  launch.APART,
  '--encoder=width=0.25',
  '--rounds=2',
  '--clients_per_round=4',
  '--evaluation=methods=knn',
)
# The task, the encoder that it has by default, and the field that this reads.
_TASKS = {
  'wine': ('mlp', 'features'),
  'digits_halves': ('resnet8', 'left'),
}


@pytest.fixture(scope='module', params=_TASKS)
def run(request, tmp_path_factory):
  """Two rounds of DCCO on each task, once: (task, folder)."""
  folder = tmp_path_factory.mktemp(request.param) / 'run'
  in_process.finished(dcco, f'--task={request.param}', *_SHORT, f'--run_dir={folder}')
  return request.param, folder


@pytest.mark.long_for('digits_halves')
def test_it_is_trained_and_evaluated(run):
  _, folder = run
  rows = launch.table(folder)
  assert [row['round'] for row in rows] == ['1', '2']
  assert all(np.isfinite(float(row['client_work/loss'])) for row in rows)
  numbers = json.loads((folder / 'evaluation.json').read_text())
  assert 'knn/10%/accuracy' in numbers
  first, last = launch.weights(folder, 0), launch.weights(folder, 2)
  moved = {name.split('/')[0] for name in first if np.any(first[name] != last[name])}
  assert moved == {name.split('/')[0] for name in first}


@pytest.mark.long_for('digits_halves')
def test_exported_model_reads_the_field_of_its_card(run):
  task, folder = run
  name, field = _TASKS[task]
  test = registry.load(task).test
  card = json.loads((folder / 'encoder.json').read_text())
  assert card['encoder'] == name
  assert card['input'].endswith(f', the field {field}')
  table = (folder / 'tensorboard/projector/examples.tsv').read_text().splitlines()[1:]
  positions = {str(example_id): k for k, example_id in enumerate(test.example_id)}
  shown = test[field][[positions[row.split('\t')[1]] for row in table]]
  inputs = shown / np.float32(255) if field == 'left' else shown
  encodings = np.loadtxt(folder / 'tensorboard/projector/encodings.tsv')
  model = tf.keras.models.load_model(folder / 'encoder.keras')
  np.testing.assert_allclose(encodings, model(inputs), rtol=1e-3, atol=1e-5)
  # The sprite is of images.
  sprite = folder / 'tensorboard/projector/sprite.png'
  assert sprite.exists() == (field == 'left')
  config = (folder / 'tensorboard/projector_config.pbtxt').read_text()
  assert ('sprite' in config) == (field == 'left')


@pytest.mark.long_for('digits_halves')
def test_it_starts_from_the_encoder_of_the_baselines(run):
  name, folder = run
  task = registry.load(name)
  encoder_name, field = _TASKS[name]
  encoder = encoders.build_encoder(
    encoder_name, task.shapes[field], width=0.25, field=field
  )
  config = in_process.read('dcco', f'--task={name} --seed=0')
  initial = evaluating.Evaluator(config, task, encoder).initial_params()
  prefix = 'left' if field == 'left' else 'encoder'
  stored = launch.weights(folder, 0)
  for name, value in initial.items():
    np.testing.assert_array_equal(stored[f'{prefix}/{name}'], value)


# An image_size is refused by the registry of tasks.
def test_a_partition_that_is_for_pictures_is_refused(tmp_path):
  folder = tmp_path / 'run'
  flags = '--task=wine', '--partition=rotation:clients=5', f'--run_dir={folder}'
  with pytest.raises(ValueError, match="have no field 'image'"):
    in_process.call(dcco, *flags)
  assert not folder.exists()
