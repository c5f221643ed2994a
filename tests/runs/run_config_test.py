import importlib.machinery
import sys
import types

import pytest

from tff_ssl.runs import run_config
from tff_ssl.storage import files

CONFIG = {
  'seed': 1,
  'clients': {'kind': 'sgd', 'learning_rate': 0.03},
  'encoder': {'widths': (64, 32)},
  'data_dir': '/a',
}


def make(folder, config=CONFIG):
  files.write_json(folder / 'config.json', run_config.build(config, 'abc'))


def test_read_returns_built_configuration(tmp_path):
  make(tmp_path)
  config = run_config.read(tmp_path)
  assert config == run_config.build(CONFIG, 'abc')
  assert config['config'] == {**CONFIG, 'encoder': {'widths': [64, 32]}}
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
  assert run_config.build(CONFIG, 'abc')['command'][0] == '/a/binaries/dcco.py'
  # The same run may be resumed by another command line.
  run_config.check(tmp_path, CONFIG)


def test_a_configuration_is_checked_without_the_task_and_without_a_trace(tmp_path):
  run_config.check(tmp_path / 'new', CONFIG)
  assert not (tmp_path / 'new').exists()
  make(tmp_path)
  run_config.check(tmp_path, {**CONFIG, 'data_dir': '/b'}, ['data_dir'])
  with pytest.raises(ValueError, match='a run with seed=1, not seed=2'):
    run_config.check(tmp_path, {**CONFIG, 'seed': 2})
  assert [path.name for path in tmp_path.iterdir()] == ['config.json']


@pytest.mark.parametrize(('norm', 'groups'), [('group', 32), ('batch', None)])
def test_a_run_of_before_groups_were_named_goes_on_with_32(tmp_path, norm, groups):
  encoder = {'kind': 'conv2', 'norm': norm}
  make(tmp_path, {**CONFIG, 'encoder': encoder})
  assert run_config.read(tmp_path)['config']['encoder'] == {**encoder, 'groups': groups}
  run_config.check(tmp_path, {**CONFIG, 'encoder': {**encoder, 'groups': groups}})
  other = {**CONFIG, 'encoder': {**encoder, 'groups': 8}}
  with pytest.raises(ValueError, match=f'a run with encoder.groups={groups}, not'):
    run_config.check(tmp_path, other)


def test_a_run_of_before_a_setting_was_there_goes_on_where_it_is_none(tmp_path):
  make(tmp_path)
  run_config.check(tmp_path, {**CONFIG, 'data': {'examples': None}})
  with pytest.raises(ValueError, match=r'a run with data\.examples=absent, not'):
    run_config.check(tmp_path, {**CONFIG, 'data': {'examples': 400}})


def test_leftovers_of_a_killed_start_are_allowed(tmp_path):
  (tmp_path / run_config.LOCK).touch()
  (tmp_path / '.aside-12-config.json').touch()
  run_config.check(tmp_path, CONFIG)
  (tmp_path / 'thesis.tex').touch()
  with pytest.raises(ValueError, match=r"holds 'thesis\.tex' but no config\.json"):
    run_config.check(tmp_path, CONFIG)


@pytest.mark.parametrize(
  'content, message',
  [
    (None, 'it has no config.json'),
    ('{"config": 3}', "it has no 'config'"),
    ('{"config": ' + '{"a": ' * 40 + '1' + '}' * 41, 'nested 8 deep or less'),
  ],
)
def test_folder_without_run_is_refused(tmp_path, content, message):
  if content is not None:
    (tmp_path / 'config.json').write_text(content)
  with pytest.raises(ValueError, match=message):
    run_config.settings(run_config.read(tmp_path)['config'])


def test_settings_are_named_by_their_paths_and_kinds_by_their_parts():
  assert run_config.settings({**CONFIG, 'method': {'kind': 'dcco'}, 'data': {}}) == {
    'seed': 1,
    'clients': 'sgd',
    'clients.learning_rate': 0.03,
    'encoder.widths': (64, 32),
    'data_dir': '/a',
    'method': 'dcco',
  }


def test_a_run_says_which_setting_differs_and_kinds_come_first(tmp_path):
  make(tmp_path)
  other = {**CONFIG, 'clients': {'kind': 'sgd', 'learning_rate': 0.05}}
  with pytest.raises(ValueError) as caught:
    run_config.check(tmp_path, other)
  assert str(caught.value) == (
    f'{tmp_path} is a run with clients.learning_rate=0.03, not '
    'clients.learning_rate=0.05: resume it with its own value or name another folder'
  )
  # What lies in a free part is free.
  run_config.check(tmp_path, other, ['clients'])
  other = {**other, 'clients': {'kind': 'adam', 'beta': 0.9, 'learning_rate': 0.05}}
  with pytest.raises(ValueError, match='a run with clients=sgd, not clients=adam'):
    run_config.check(tmp_path, other)


def test_a_setting_that_may_grow_may_not_shrink(tmp_path):
  make(tmp_path)
  run_config.check(tmp_path, {**CONFIG, 'seed': 2}, may_grow=['seed'])
  with pytest.raises(ValueError, match='a run with seed=1, not seed=0'):
    run_config.check(tmp_path, {**CONFIG, 'seed': 0}, may_grow=['seed'])


def test_run_names_depend_on_the_settings_of_their_numbers(tmp_path):
  for name, seed in (('a', 0), ('b', 0), ('c', 1)):
    (tmp_path / name).mkdir()
    config = run_config.build({'seed': seed, 'run_dir': name}, '', ('run_dir',))
    files.write_json(tmp_path / name / 'config.json', config)
  a, b, c = (run_config.identity(tmp_path / name) for name in 'abc')
  assert a == b != c
  assert run_config.identity(tmp_path) == ''
