"""The notebooks, at a small size, and the code of the guides run as they stand."""

import ast
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

from tests import quick
from tff_ssl.execution import contexts

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_NOTEBOOKS = _ROOT / 'docs' / 'notebooks'


def _run(name, **parameters):
  """Executes a notebook with other values in its cell of parameters."""
  source = (_NOTEBOOKS / f'{name}.py').read_text(encoding='utf-8')
  before, marker, rest = source.partition('# %% tags=["parameters"]\n')
  own, end, after = rest.partition('\n# %%')
  assert marker and end
  assignments = ast.parse(own).body
  known = {node.targets[0].id: node for node in assignments}
  assert parameters.keys() <= known.keys()
  for parameter, value in parameters.items():
    known[parameter].value = ast.Constant(value)
  own = ast.unparse(ast.fix_missing_locations(ast.Module(assignments, [])))
  names = {'__name__': name}
  exec(compile(before + own + end + after, name, 'exec'), names)
  return names


# The README's example has the same calls.
@pytest.mark.long
def test_notebook_dcco_on_digits_runs(tmp_path, capsys):
  path = tmp_path / 'digits.png'
  names = _run(
    'dcco_on_digits',
    ROUNDS=6,
    CLIENTS_PER_ROUND=16,
    LEARNING_RATE=1e-3,
    ENCODER='conv2',
    LABEL_SHARES=(0.02, 0.2),
    FIGURE=str(path),
  )

  assert 'digits: train 1,438 images' in capsys.readouterr().out
  assert len(names['losses']) == 6
  assert np.all(np.isfinite(names['losses']))
  accuracies = names['accuracies']
  # Ten classes; a fifth of the labels tells more than 2 % of them.
  assert all(0.15 < values[0] < values[-1] for values in accuracies.values())
  assert accuracies['DCCO'] != accuracies['random encoder']
  assert path.read_bytes().startswith(b'\x89PNG')


@pytest.mark.long
def test_notebook_experiment_runs(tmp_path, capsys, graphs_as_traced):
  names = _run('experiment', ROUNDS=1, EXAMPLES=8, WIDTH=0.125, FOLDER=str(tmp_path))

  assert [*names['accuracies']] == ['fedavg byol', 'fedema']
  assert 'fedema knn ' in capsys.readouterr().out
  assert (tmp_path / 'fedema' / 'encoder.keras').is_file()


@pytest.fixture
def graphs_as_traced(monkeypatch):
  """Skips the optimization of graphs; the first notebook has it, as users do."""
  for name, opened in quick.contexts().items():
    monkeypatch.setattr(contexts, name, opened)


@pytest.mark.long
def test_notebook_own_pictures_runs(tmp_path, graphs_as_traced):
  names = _run(
    'own_pictures',
    FOLDER=str(tmp_path),
    PICTURES=80,
    HOLDERS=8,
    ROUNDS=2,
    HOLDERS_PER_ROUND=3,
    ENCODER='conv2',
    FIGURE=str(tmp_path / 'neighbours.png'),
  )

  task, nearest = names['task'], names['nearest']
  assert (len(task.train), len(task.test)) == (60, 20)
  # What was saved, read by Keras alone, finds the same neighbours.
  model = tf.keras.models.load_model(tmp_path / 'encoder.keras')
  train, shown = (
    tf.math.l2_normalize(model(images.astype(np.float32) / 255), axis=1).numpy()
    for images in (task.train.image, names['shown'])
  )
  cosine = shown @ train.T
  expected = np.sort(cosine, axis=1)[:, :-6:-1]
  np.testing.assert_allclose(
    np.take_along_axis(cosine, nearest, axis=1), expected, atol=1e-5
  )
  assert (tmp_path / 'neighbours.png').is_file()


def test_notebook_own_program_runs(graphs_as_traced):
  names = _run('own_program', ROUNDS=2, CLIENTS=20, IMAGES_OF_A_CLIENT=3)

  ids = np.random.default_rng([0, 1]).choice(names['data'].client_ids, 16, False)
  images = [
    example['image']
    for name in ids
    for example in names['data'].create_tf_dataset_for_client(name)
  ]
  pixels = np.stack(images).astype(np.float64) / 255
  answer = names['answer']
  assert answer['num_examples'] == 48
  assert answer['statistics']['mean'] == pytest.approx(np.mean(pixels), rel=1e-5)
  assert answer['statistics']['square'] == pytest.approx(np.mean(pixels**2), rel=1e-5)
  assert np.all(np.isfinite(names['losses']))
  assert {name.split('/')[0] for name in names['weights']} == {'encoder', 'projector'}


@pytest.mark.long
def test_blocks_of_own_loop_run(tmp_path, monkeypatch):
  text = (_ROOT / 'docs' / 'own_loop.md').read_text(encoding='utf-8')
  blocks = re.findall(r'^```python\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
  assert len(blocks) == 4
  monkeypatch.chdir(tmp_path)
  names = {}
  # The last one again, as a cell of a notebook: the run goes on from its folder.
  for number, block in enumerate([*blocks, blocks[-1]]):
    exec(compile(block, f'block {number}', 'exec'), names)
    if number == 2:
      # Those who took part in the third round say so, counted from 0.
      last = {index: own.last_round for index, own in names['states'].items()}
      drawn = [names['data'].client_ids.index(c) for c in names['cohorts'](3)]
      assert all(last[index] == 2 for index in drawn)
      assert sum(round == 2 for round in last.values()) == len(drawn)

  rows = (tmp_path / 'runs/own_loop/metrics.csv').read_text().splitlines()
  assert len(rows) == 4
