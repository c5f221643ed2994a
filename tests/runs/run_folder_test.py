import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import tensorflow as tf

from tests.execution import counting
from tff_ssl.runs import round_table
from tff_ssl.runs import run_config
from tff_ssl.runs import run_folder

CONFIG = {'seed': 1, 'encoder': 'resnet8', 'widths': (64, 32)}


def reopen(path, config, task='abc', **arguments):
  with run_folder.RunFolder(path, config, task, **arguments):
    pass


def test_config_is_written_once_and_compared(tmp_path):
  reopen(tmp_path, CONFIG)
  written = (tmp_path / 'config.json').read_bytes()
  config = json.loads(written)
  assert config['config'] == {'seed': 1, 'encoder': 'resnet8', 'widths': [64, 32]}
  assert config['task'] == 'abc'
  assert config['versions']['tensorflow'] == tf.__version__
  reopen(tmp_path, CONFIG)
  assert (tmp_path / 'config.json').read_bytes() == written
  reopen(tmp_path, {**CONFIG, 'data_dir': '/a'}, free=['data_dir'])


@pytest.mark.parametrize(
  ('config', 'task', 'message'),
  [
    ({**CONFIG, 'rounds': 5}, 'abc', 'rounds=absent, not rounds=5'),
    (CONFIG, 'abd', 'The data have changed since .*; resume it with the examples as'),
  ],
)
def test_other_settings_are_refused(tmp_path, config, task, message):
  reopen(tmp_path, CONFIG)
  with pytest.raises(ValueError, match=message):
    reopen(tmp_path, config, task)


def test_other_versions_are_refused(tmp_path):
  reopen(tmp_path, CONFIG)
  path = tmp_path / 'config.json'
  config = json.loads(path.read_text())
  config['versions'] |= {'tensorflow': '1.15', 'numpy': '1.2'}
  path.write_text(json.dumps(config))
  said = f'numpy 1.2 (here: {np.__version__}) and tensorflow 1.15 (here: '
  with pytest.raises(ValueError, match=re.escape(said)):
    reopen(tmp_path, CONFIG)


def test_a_folder_is_locked_until_it_is_closed_or_its_process_ends(tmp_path):
  code = (
    'import fcntl, os, sys\n'
    'fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)\n'
    'print("locked", flush=True)\n'
    'sys.stdin.read()'
  )
  process = subprocess.Popen(
    [sys.executable, '-c', code, str(tmp_path / 'lock')],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  process.stdout.readline()
  with pytest.raises(ValueError, match='in use'):
    reopen(tmp_path, CONFIG)
  process.kill()
  process.communicate()
  folder = run_folder.RunFolder(tmp_path, CONFIG, 'abc')
  folder.close()
  reopen(tmp_path, CONFIG)


def test_leftovers_of_killed_writes_are_removed(tmp_path):
  reopen(tmp_path, CONFIG)
  left = [
    tmp_path / '.aside-1-evaluation.json',
    tmp_path / 'checkpoints' / '.aside-1-x',
  ]
  for path in left:
    path.touch()
  # Of Keras's temporary files, those that `save_encoder` was killed at.
  left.append(tmp_path / '.aside-x' / 'tmpx' / 'file')
  left[-1].parent.mkdir(parents=True)
  left[-1].touch()
  reopen(tmp_path, CONFIG)
  assert not any(path.exists() for path in left)
  assert not (tmp_path / '.aside-x').exists()


def _model():
  inputs = tf.keras.Input([3])
  return tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs))


def test_an_encoder_is_written_without_files_elsewhere(tmp_path, monkeypatch):
  made, elsewhere = [], tempfile.mkdtemp

  def watched(*args, **kwargs):
    made.append(pathlib.Path(elsewhere(*args, **kwargs)))
    return str(made[-1])

  monkeypatch.setattr(tempfile, 'mkdtemp', watched)
  before = tempfile.tempdir
  model = _model()
  with run_folder.RunFolder(tmp_path / 'run', CONFIG) as folder:
    folder.save_encoder(model, {})
    folder.save_encoder(model, {}, 'a')
  # One of ours and one of Keras's at least, each time.
  assert len(made) >= 4
  assert all(path.is_relative_to(tmp_path / 'run') for path in made)
  assert not any(path.exists() for path in made)
  assert tempfile.tempdir == before


def test_the_encoder_can_be_loaded(tmp_path):
  model = _model()
  with run_folder.RunFolder(tmp_path, CONFIG) as folder:
    folder.save_encoder(model, {'output_dim': 2})
  loaded = tf.keras.models.load_model(tmp_path / 'encoder.keras')
  x = tf.ones([1, 3])
  tf.debugging.assert_equal(loaded(x), model(x))
  assert json.loads((tmp_path / 'encoder.json').read_text()) == {'output_dim': 2}


@pytest.mark.parametrize('last', ['encoder.keras', 'encoder.json'])
def test_a_kill_leaves_no_encoder_with_the_card_of_another(tmp_path, monkeypatch, last):
  model = _model()
  replace = pathlib.Path.replace

  def killed(aside, path):
    if path.name == last:
      raise KeyboardInterrupt
    return replace(aside, path)

  with run_folder.RunFolder(tmp_path, CONFIG) as folder:
    folder.save_encoder(model, {'of': 'the first'})
    monkeypatch.setattr(pathlib.Path, 'replace', killed)
    with pytest.raises(KeyboardInterrupt):
      folder.save_encoder(model, {'of': 'the second'})
  assert (tmp_path / 'encoder.keras').exists()
  assert not (tmp_path / 'encoder.json').exists()


def test_a_client_s_encoder_has_a_folder_of_its_own(tmp_path):
  model = _model()
  with run_folder.RunFolder(tmp_path, CONFIG) as folder:
    folder.save_encoder(model, {'client': 'a'}, 'a')
    with pytest.raises(ValueError, match=r"client '\.\./b' cannot be the name"):
      folder.save_encoder(model, {}, '../b')
    with pytest.raises(ValueError, match="client '' cannot be the name of a folder"):
      folder.save_encoder(model, {}, '')
  assert (tmp_path / 'clients/a/encoder.keras').is_file()
  assert json.loads((tmp_path / 'clients/a/encoder.json').read_text())['client'] == 'a'
  assert not (tmp_path / 'encoder.keras').exists()
  assert not (tmp_path / 'clients/encoder.keras').exists()


@pytest.mark.parametrize('damage', ['delete', 'change'])
def test_numbers_of_clients_must_be_those_written(tmp_path, damage):
  path = tmp_path / 'clients.csv'

  def tell():
    for round in (1, 2):
      round_table.Table(path).append(round, {'client': 'a', 'mu': 0.5})

  counting.run(tmp_path, counting.Counting(tell, at=2), rounds=2)
  # An evaluation completes the last round.
  round_table.Table(path).replace(2, [{'client': 'a', 'mu': 0.5, 'knn': 0.25}])
  counting.run(tmp_path, counting.Counting(), rounds=3)
  if damage == 'delete':
    path.unlink()
  else:
    path.write_text(path.read_text().replace('1,a,0.5', '1,a,0.7'))
  with pytest.raises(
    ValueError, match=r'clients\.csv has different numbers for rounds 1 to 3'
  ):
    counting.run(tmp_path, counting.Counting(), rounds=4)


@pytest.mark.parametrize('left', [['a'], ['a', 'b'], []])
def test_numbers_of_clients_in_the_last_round_must_be_there(tmp_path, left):
  file = round_table.Table(tmp_path / 'clients.csv')

  def tell():
    file.extend(2, [{'client': 'a', 'mu': 0.5}, {'client': 'b', 'mu': 0.75}])

  counting.run(tmp_path, counting.Counting(tell, at=2), rounds=2)
  # An evaluation adds to the rows, and a client that has not taken part.
  mu = {'a': 0.5, 'b': 0.75}
  rows = [{'client': name, 'mu': mu[name], 'knn': 0.25} for name in left]
  file.replace(2, [*rows, {'client': 'c', 'knn': 0.5}])
  if len(left) == 2:
    counting.run(tmp_path, counting.Counting(), rounds=3)
  else:
    with pytest.raises(
      ValueError, match=r'clients\.csv has different numbers for rounds'
    ):
      counting.run(tmp_path, counting.Counting(), rounds=3)


@pytest.mark.parametrize('name', ['columns', 'client_columns'])
@pytest.mark.parametrize('value', [5, None, {'a': 1}, [['a']], [1]])
def test_columns_of_a_checkpoint_must_be_names(tmp_path, name, value):
  with run_folder.RunFolder(tmp_path, CONFIG) as folder:
    folder.save(0, {'x': np.zeros(2)}, {name: value})
    with pytest.raises(
      ValueError, match=f"'{name}' of .* round 0 in {tmp_path} is .* a list of names"
    ):
      folder.check(0)


_FILES = (
  'lock',
  'config.json',
  'metrics.csv',
  'system.csv',
  'clients.csv',
  'client_states.sqlite',
  'client_states.sqlite-journal',
  'privacy_ledger.jsonl',
  'trackers.json',
  'evaluation.json',
  'encoder.keras',
  'encoder.json',
  'worker.log',
  'checkpoints/round_00000001.npz',
  'clients/a/encoder.keras',
)
_FOLDERS = ('checkpoints', 'tensorboard', 'clients', 'clients/a')


@pytest.mark.parametrize('name', [*_FILES, *_FOLDERS])
def test_nothing_is_read_or_written_out_of_a_run_folder(tmp_path, name):
  """Whatever a stranger links: the lock was emptied, and old checkpoints deleted."""
  folder, victim = tmp_path / 'run', tmp_path / 'victim'
  reopen(folder, CONFIG)
  victim.mkdir()
  for each in ('.aside-1-x', 'round_00000001.npz', 'file'):
    (victim / each).write_text('theirs')
  link = folder / name
  link.parent.mkdir(parents=True, exist_ok=True)
  if link.is_dir():
    shutil.rmtree(link)
  link.unlink(missing_ok=True)
  link.symlink_to(victim if name in _FOLDERS else victim / 'file')
  for act in (
    lambda: reopen(folder, CONFIG),
    lambda: run_config.read(folder),
  ):
    with pytest.raises(ValueError, match=f'run/{name} is a link to {victim}'):
      act()
  assert {path.name: path.read_text() for path in victim.iterdir()} == dict.fromkeys(
    ('.aside-1-x', 'round_00000001.npz', 'file'), 'theirs'
  )
