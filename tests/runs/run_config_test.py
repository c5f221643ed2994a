import importlib.machinery
import sys
import types

import pytest

from tff_ssl.runs import run_config
from tff_ssl.storage import files

FLAGS = {'seed': 1, 'widths': (64, 32), 'data_dir': '/a'}


def make(folder, flags=FLAGS):
  files.write_json(folder / 'config.json', run_config.build(flags, 'abc'))


def test_read_returns_built_configuration(tmp_path):
  make(tmp_path)
  config = run_config.read(tmp_path)
  assert config == run_config.build(FLAGS, 'abc')
  assert config['flags'] == {'seed': 1, 'widths': [64, 32], 'data_dir': '/a'}
  assert config['task'] == 'abc'


def test_command_is_kept_for_the_reader(monkeypatch, tmp_path):
  main = types.ModuleType('__main__')
  main.__spec__ = importlib.machinery.ModuleSpec('binaries.dcco', None)
  monkeypatch.setitem(sys.modules, '__main__', main)
  monkeypatch.setattr(sys, 'argv', ['/a/binaries/dcco.py', '--seed=1', '--task=a b'])
  make(tmp_path)
  command = run_config.read(tmp_path)['command']
  assert command == ['binaries.dcco', '--seed=1', '--task=a b']
  main.__spec__ = None
  assert run_config.build(FLAGS, 'abc')['command'][0] == '/a/binaries/dcco.py'
  # The same run may be resumed by another command line.
  run_config.check_flags(tmp_path, FLAGS)


def test_flags_are_checked_without_the_task_and_without_a_trace(tmp_path):
  run_config.check_flags(tmp_path / 'new', FLAGS)
  assert not (tmp_path / 'new').exists()
  make(tmp_path)
  run_config.check_flags(tmp_path, {**FLAGS, 'data_dir': '/b'}, ['data_dir'])
  with pytest.raises(ValueError, match='a run with --seed=1, not --seed=2'):
    run_config.check_flags(tmp_path, {**FLAGS, 'seed': 2})
  assert [path.name for path in tmp_path.iterdir()] == ['config.json']


def test_leftovers_of_a_killed_start_are_allowed(tmp_path):
  (tmp_path / run_config.LOCK).touch()
  (tmp_path / '.aside-12-config.json').touch()
  run_config.check_flags(tmp_path, FLAGS)
  (tmp_path / 'thesis.tex').touch()
  with pytest.raises(ValueError, match=r"holds 'thesis\.tex' but no config\.json"):
    run_config.check_flags(tmp_path, FLAGS)


@pytest.mark.parametrize(
  'content, message',
  [
    (None, 'it has no config.json'),
    ('{', r'config\.json is not JSON'),
    ('[]', 'holds a list: it must hold an object'),
    ('{"flags": 3}', "it has no 'flags'"),
  ],
)
def test_folder_without_run_is_refused(tmp_path, content, message):
  if content is not None:
    (tmp_path / 'config.json').write_text(content)
  with pytest.raises(ValueError, match=message):
    run_config.read(tmp_path)


def test_run_names_depend_on_the_settings_of_their_numbers(tmp_path):
  for name, seed in (('a', 0), ('b', 0), ('c', 1)):
    (tmp_path / name).mkdir()
    config = run_config.build({'seed': seed, 'run_dir': name}, '', ('run_dir',))
    files.write_json(tmp_path / name / 'config.json', config)
  a, b, c = (run_config.identity(tmp_path / name) for name in 'abc')
  assert a == b != c
  assert run_config.identity(tmp_path) == ''
