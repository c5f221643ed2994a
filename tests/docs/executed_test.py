"""The notebooks, at a small size, and the code of the guides run as they stand."""

import ast
import csv
import gzip
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
def test_notebook_client_drift_runs(tmp_path):
  path = tmp_path / 'drift.png'
  small = {'ROUNDS': 1, 'SEEDS': (0,), 'EPOCHS': 1, 'WIDTH': 0.125, 'IMAGES': 40}
  names = _run('client_drift', FIGURE=str(path), **small)

  # The models of the last run and round.
  w_g, w_k, train = names['w_g'], names['w_k'], names['task'].train
  dealt = names['spec'].build('skew:beta=0,clients=5', train.label, train.holder, 0)
  sizes = [len(dealt[client]) for client in sorted(dealt)]
  layers = {}
  for name, value in w_g.items():
    mean = np.average([w[name] for w in w_k], axis=0, weights=sizes)
    np.testing.assert_allclose(value, mean, atol=1e-5)
    parts = [np.ravel(w[name] - value).astype(np.float64) for w in w_k]
    layers.setdefault(name.rpartition('/')[0], []).append(parts)
  norms = [
    np.linalg.norm(np.concatenate(each, axis=1), axis=1) for each in layers.values()
  ]
  of_seeds = names['of_seeds'].loc['Dec-SLRep', 1]
  assert of_seeds['|w_g - w_k|', 0] == pytest.approx(np.mean(np.sum(norms, axis=0)))
  # HSIC of linear kernels with the centring matrix (Kornblith et al., Equation 3).
  centre = np.eye(40) - 1 / 40

  def hsic(a, b):
    return np.trace(a @ a.T @ centre @ b @ b.T @ centre)

  x, *ys = (names['features'](w)['features'].numpy().astype(float) for w in (w_g, *w_k))
  cka = [hsic(x, y) / np.sqrt(hsic(x, x) * hsic(y, y)) for y in ys]
  assert of_seeds['CKA', 0] == pytest.approx(np.mean(cka))
  assert path.read_bytes().startswith(b'\x89PNG')


def test_notebook_linear_theory_runs(tmp_path):
  path = tmp_path / 'theory.png'
  names = _run('linear_theory', DIMENSIONS=(40,), FIGURE=str(path))

  x, y = names['source_data'](40, 1)
  assert np.bincount(y, minlength=6).tolist() == [2, 0, 160, 160, 2, 0]
  shared = -(40**0.2) / 2
  for label, own in ((2, 1), (3, -1)):
    mean = np.mean(x[y == label, :3], axis=0)
    np.testing.assert_allclose(mean, [shared, own, shared], atol=0.3)
  # Descent of the loss ends at the closed form.
  second, w = x.T @ x / len(x), 0.1 * np.random.default_rng(0).normal(size=[6, 40])
  for _ in range(4000):
    w = w + 0.05 * w @ (second - w.T @ w)
  represented, strength = names['learn_without_labels'](x)
  span = np.linalg.qr(w.T)[0]
  np.testing.assert_allclose(represented[:3], np.sum(span[:3] ** 2, axis=1), atol=1e-3)
  np.testing.assert_allclose(strength[:3], np.sum(w[:, :3] ** 2, axis=0), rtol=1e-3)
  # The objective of the margins is strictly convex: without a gradient, it is least.
  w = names['margin_classifier'](x, y)
  gradient = w.copy()
  for example, label in zip(x, y, strict=True):
    lacking = np.maximum(0, 1 + (w - w[label]) @ example)
    lacking[label] = 0
    lacking[label] = -np.sum(lacking)
    gradient += np.outer(lacking, example)
  assert np.linalg.norm(gradient) <= 1e-4 * np.linalg.norm(w)
  # Two layers v u = w of least norm have u^T u = (w^T w)^(1/2).
  values, vectors = np.linalg.eigh(w.T @ w)
  root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
  strength = names['learn_with_labels'](x, y)[1]
  np.testing.assert_allclose(strength, np.diag(root), atol=1e-2)
  # Theorem 3.2 and Proposition 4.1.
  lost, bound, together, foreign, own, rate = names['bounds'][0]
  assert 0 < lost <= bound == pytest.approx(2 * 40**-0.8)
  assert 0 < together <= 40**-0.4
  assert foreign <= rate == pytest.approx(40**-0.1)
  assert own >= 1 - rate
  assert path.read_bytes().startswith(b'\x89PNG')


@pytest.fixture
def graphs_as_traced(monkeypatch):
  """Skips the optimization of graphs; the first notebook has it, as users do."""
  for name, opened in quick.contexts().items():
    monkeypatch.setattr(contexts, name, opened)


@pytest.mark.long
def test_notebook_own_pictures_runs(tmp_path, graphs_as_traced):
  names = _run(
    'own_pictures',
    FOLDER=f'{tmp_path}/pictures',
    RUN=f'{tmp_path}/run',
    PICTURES=80,
    HOLDERS=8,
    ROUNDS=2,
    HOLDERS_PER_ROUND=3,
    WIDTH=0.125,
    FIGURE=str(tmp_path / 'neighbours.png'),
  )

  task, nearest = names['task'], names['nearest']
  assert (len(task.train), len(task.test)) == (60, 20)
  # What was saved, read by Keras alone, finds the same neighbours.
  model = tf.keras.models.load_model(tmp_path / 'run' / 'encoder.keras')
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
  # By TFF's own program.
  assert [names['released'][round] for round in (1, 2)] == names['losses']
  assert {name.split('/')[0] for name in names['weights']} == {'encoder', 'projector'}


@pytest.fixture
def fashion_mnist(tmp_path):
  """Files like those of Fashion-MNIST, whose classes are places of a bright square."""
  for split, count in (('train', 600), ('t10k', 100)):
    labels = np.arange(count, dtype=np.uint8) % 10
    images = np.random.default_rng(count).integers(0, 64, (count, 28, 28), np.uint8)
    for image, label in zip(images, labels, strict=True):
      row, column = divmod(int(label), 5)
      image[14 * row + 2 : 14 * row + 12, 5 * column + 2 : 5 * column + 7] = 255
    for name, header, values in (
      ('images-idx3', 16, images),
      ('labels-idx1', 8, labels),
    ):
      with gzip.open(tmp_path / f'{split}-{name}-ubyte.gz', 'wb') as file:
        file.write(bytes(header) + values.tobytes())
  return str(tmp_path)


def test_notebook_flower_setting_runs(fashion_mnist, tmp_path, graphs_as_traced):
  small = {'DATA': fashion_mnist, 'RUNS': f'{tmp_path}/runs', 'SETTINGS': ('iid',)}
  _run('flower_setting', ROUNDS=1, **small)
  names = _run('flower_setting', ROUNDS=2, **small)

  path = tmp_path / 'runs' / 'iid' / 'seed_0' / 'metrics.csv'
  with path.open() as file:
    rows = list(csv.DictReader(file))
  first, second = (float(row['client_work/loss']) for row in rows)
  assert second < first
  assert names['best'] == {'iid': [max(100 * float(r['test_accuracy']) for r in rows)]}
  # Li et al. 2022, section V: 6 and 16 filters of 5 x 5, then 120 and 84 units.
  layers = [
    layer
    for filters in (6, 16)
    for layer in (
      tf.keras.layers.Conv2D(filters, 5, activation='relu'),
      tf.keras.layers.MaxPool2D(),
    )
  ]
  layers.append(tf.keras.layers.Flatten())
  layers += [tf.keras.layers.Dense(units, 'relu') for units in (120, 84)]
  layers.append(tf.keras.layers.Dense(10))
  keras = tf.keras.Sequential([tf.keras.Input((28, 28, 1)), *layers])
  params = names['Network']().init(tf.constant([1, 2]))
  keras.set_weights([*params.values()])
  got = names['Network']().classify(params, names['images'][:9])
  np.testing.assert_allclose(got, keras(names['images'][:9] / 255), atol=1e-5)
  for kernel in [*params.values()][::2]:
    # PyTorch's default: uniform, of this standard deviation.
    of_init = (3 * np.prod(kernel.shape[:-1])) ** -0.5
    assert np.std(kernel) == pytest.approx(of_init, rel=0.15)


def _blocks(page):
  text = (_ROOT / 'docs' / page).read_text(encoding='utf-8')
  return re.findall(r'^```python\n(.*?)^```', text, re.MULTILINE | re.DOTALL)


@pytest.mark.long
def test_blocks_of_from_python_run(tmp_path, monkeypatch, capsys, graphs_as_traced):
  code = ''.join(_blocks('from_python.md'))
  for old, new in (('=64', '=8'), ('rounds=20', 'rounds=1'), ('=0.5', '=0.125')):
    assert old in code
    code = code.replace(old, new)
  monkeypatch.chdir(tmp_path)
  exec(compile(code, 'from_python.md', 'exec'), {})

  assert re.search(
    r'fedavg byol knn \d.*fedema linear \d', capsys.readouterr().out, re.S
  )
  assert (tmp_path / 'runs/from_python/fedema/encoder.keras').is_file()


@pytest.mark.long
def test_blocks_of_own_loop_run(tmp_path, monkeypatch):
  blocks = _blocks('own_loop.md')
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
