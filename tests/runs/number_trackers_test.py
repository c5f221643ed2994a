"""Trackers: TensorBoard's files, and what the functions of the others are given."""

import collections
import json
import re
import shutil
import sys
import threading
import time
import types

from absl import logging
import hypothesis
from hypothesis import strategies
import pytest
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from tff_ssl.runs import number_trackers
from tff_ssl.runs import run_folder
from tff_ssl.runs import tracker_names

_SETTINGS = {'task': 'digits', 'rounds': 3, 'widths': ['8', '4'], 'run': None}
_PLAIN = {'task': 'digits', 'rounds': 3, 'widths': '8,4'}
pytestmark = pytest.mark.usefixtures('users_cache')


@pytest.fixture
def warned(monkeypatch):
  lines = []
  monkeypatch.setattr(
    logging, 'warning', lambda text, *parts: lines.append(text % parts)
  )
  return lines


def _module(monkeypatch, name, **members):
  made = types.ModuleType(name)
  made.__spec__ = types.SimpleNamespace(name=name)
  vars(made).update(members)
  monkeypatch.setitem(sys.modules, name, made)


class _Wandb:
  """What wandb is told."""

  def __init__(self, monkeypatch, project=None):
    self.begun, self.rows, self.finished = [], [], 0
    self.steps = []
    self.define_metric = lambda name, **step: self.steps.append((name, step))
    _module(
      monkeypatch,
      'wandb',
      init=self._init,
      util=types.SimpleNamespace(generate_id=lambda: 'abc'),
      setup=lambda: types.SimpleNamespace(
        settings=types.SimpleNamespace(project=project)
      ),
    )

  def _init(self, **arguments):
    self.begun.append(arguments)
    return self

  def log(self, row):
    self.rows.append(row)

  def finish(self):
    self.finished += 1


class _Mlflow:
  """What MLflow's client is told."""

  def __init__(self, monkeypatch):
    self.params, self.metrics, self.states, self.names = [], [], [], []
    info = types.SimpleNamespace(run_id='r1')
    client = types.SimpleNamespace(
      create_run=lambda where, run_name: types.SimpleNamespace(
        info=info, told=self.names.append((where, run_name))
      ),
      log_batch=self._log_batch,
      set_terminated=lambda run_id: self.states.append(f'{run_id} ended'),
      update_run=lambda run_id, status: self.states.append(f'{run_id} {status}'),
    )
    variable = types.SimpleNamespace(get=lambda: None)
    _module(
      monkeypatch,
      'mlflow',
      MlflowClient=lambda: client,
      set_experiment=lambda experiment_name: types.SimpleNamespace(
        experiment_id=experiment_name
      ),
      environment_variables=types.SimpleNamespace(MLFLOW_EXPERIMENT_NAME=variable),
      entities=types.SimpleNamespace(
        Param=collections.namedtuple('Param', 'key value'),
        Metric=collections.namedtuple('Metric', 'key value timestamp step'),
      ),
    )

  def _log_batch(self, run_id, metrics=(), params=()):
    assert run_id == 'r1'
    for name, *_ in [*params, *metrics]:
      # As MLflow 2.14.3 does (mlflow/utils/validation.py).
      if not re.match(r'^[/\w.\- ]*$', name):
        raise ValueError(f"Invalid metric name: '{name}'")
    self.params += params
    self.metrics += metrics


def _run(folder, names, rounds=(1, 2)):
  with run_folder.RunFolder(folder, _SETTINGS, trackers=names) as opened:
    for round in rounds:
      opened.record(round, {'loss': 1.0 / round}, {'seconds': 2.0})


def test_tensorboard_has_both_tables_and_the_settings(tmp_path):
  _run(tmp_path, ['tensorboard'])
  read = event_accumulator.EventAccumulator(str(tmp_path / 'tensorboard')).Reload()
  assert {'metrics/loss', 'system/seconds'} < set(read.Tags()['tensors'])
  assert [event.step for event in read.Tensors('metrics/loss')] == [1, 2]
  content = read.SummaryMetadata('_hparams_/session_start_info').plugin_data.content
  start = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
  assert start.hparams['task'].string_value == 'digits'
  assert start.hparams['rounds'].number_value == 3
  assert start.hparams['widths'].string_value == '8,4'
  assert 'run' not in start.hparams


def test_without_trackers_there_is_nothing_but_the_folder(tmp_path):
  _run(tmp_path, [])
  assert not (tmp_path / 'tensorboard').exists()
  assert not (tmp_path / 'trackers.json').exists()
  assert (tmp_path / 'metrics.csv').read_text().count('\n') == 3


@pytest.mark.parametrize(('project', 'given'), [(None, 'tff_ssl'), ('mine', None)])
def test_wandb_goes_on_with_the_run_of_the_folder(
  tmp_path, monkeypatch, project, given
):
  told = _Wandb(monkeypatch, project)
  _run(tmp_path, ['wandb'])
  _run(tmp_path, ['wandb'], rounds=[3])
  assert [b['id'] for b in told.begun] == ['abc', 'abc']
  assert told.begun[0]['config'] == _PLAIN
  assert told.begun[0]['project'] == given
  assert [row['round'] for row in told.rows] == [1, 2, 3]
  assert told.rows[0] == {'round': 1, 'metrics/loss': 1.0, 'system/seconds': 2.0}
  assert told.finished == 2
  assert ('*', {'step_metric': 'round'}) in told.steps


def test_mlflow_goes_on_with_the_run_of_the_folder(tmp_path, monkeypatch):
  told = _Mlflow(monkeypatch)
  _run(tmp_path, ['mlflow'])
  _run(tmp_path, ['mlflow'], rounds=[3])
  assert dict(told.params) == {name: str(value) for name, value in _PLAIN.items()}
  losses = [(m.step, m.value) for m in told.metrics if m.key == 'metrics/loss']
  assert losses == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]
  assert told.states == ['r1 ended', 'r1 RUNNING', 'r1 ended']
  assert told.names == [('tff_ssl', tmp_path.name)]
  assert json.loads((tmp_path / 'trackers.json').read_text())['mlflow'] == 'r1'


def test_mlflow_gets_evaluations(tmp_path, monkeypatch, warned):
  told = _Mlflow(monkeypatch)
  with run_folder.RunFolder(tmp_path, _SETTINGS, trackers=['mlflow']) as opened:
    opened.record(3, {'linear/10%/accuracy': 0.5, 'linear/0.1%/accuracy': 0.25}, {})
  assert [(m.key, m.value) for m in told.metrics] == [
    ('metrics linear 10 percent/accuracy', 0.5),
    ('metrics linear 0.1 percent/accuracy', 0.25),
  ]
  assert not warned


def test_a_tracker_that_fails_gets_no_more_numbers_but_is_closed(
  tmp_path, monkeypatch, warned
):
  told = _Mlflow(monkeypatch)
  with run_folder.RunFolder(tmp_path, _SETTINGS, trackers=['mlflow']) as opened:
    for round, value in ((1, 1.0), (2, 'no number'), (3, 1.0)):
      opened.record(round, {'loss': 1.0}, {})
      opened._summarize(round, {'loss': value}, {})
  assert [m.step for m in told.metrics] == [1, 1, 2]
  assert told.states == ['r1 ended']
  assert len(warned) == 1
  assert 'it may lack numbers from round 2 on' in warned[0]


@pytest.mark.parametrize('silent', ['create_run', 'log_batch', 'set_terminated'])
def test_no_round_waits_for_a_silent_server(tmp_path, monkeypatch, warned, silent):
  _Mlflow(monkeypatch)
  monkeypatch.setattr(number_trackers, '_SILENCE', 0.2)
  monkeypatch.setattr(number_trackers, '_MOST_WAITING', 5)
  answer = threading.Event()
  client = sys.modules['mlflow'].MlflowClient()
  monkeypatch.setattr(client, silent, lambda *_, **__: answer.wait(60))
  begin = time.monotonic()
  _run(tmp_path, ['mlflow'], rounds=range(1, 20))
  assert time.monotonic() - begin < 10
  assert len(warned) == 1
  assert 'The tracker mlflow has failed (' in warned[0]
  assert (tmp_path / 'metrics.csv').read_text().count('\n') == 20
  answer.set()


def test_an_id_of_a_stranger_is_not_taken(tmp_path, monkeypatch, warned):
  told = _Mlflow(monkeypatch)
  _run(tmp_path / 'own', ['mlflow'])
  _run(tmp_path / 'other', [])
  config = tmp_path / 'other' / 'config.json'
  config.write_text(config.read_text().replace('"identity": "', '"identity": "0'))
  shutil.copy(tmp_path / 'own' / 'trackers.json', tmp_path / 'other')
  _run(tmp_path / 'other', ['mlflow'], rounds=[3])
  (tmp_path / 'own' / 'trackers.json').write_text('{"mlflow": "victim"}')
  _run(tmp_path / 'own', ['mlflow'], rounds=[3])
  assert told.states == ['r1 ended'] * 3
  assert [name for _, name in told.names] == ['own', 'other', 'own']
  assert len([line for line in warned if 'numbers go to a new one' in line]) == 2


_PARTS = strategies.sampled_from(
  ['metrics', 'knn', '10%', 'accuracy', 'low', 'a b', '.', '..', '', 'percent']
  + ['ü', '@', 'x' * 300, '\udce4', 'a:b']
)


@hypothesis.settings(derandomize=True, deadline=None, database=None)
@hypothesis.given(
  strategies.sets(strategies.lists(_PARTS, min_size=1, max_size=4).map('/'.join))
)
def test_no_name_continues_another_and_all_are_kept(names):
  shown = {tracker_names.shown(name) for name in names}
  assert len(shown) == len(names)
  for name in shown:
    group, last = name.split('/')
    # As MLflow 2.14.3 does, and its file store.
    assert re.match(r'^[\w.\- ]+$', group)
    assert re.match(r'^[\w.\- ]+$', last)
    assert last not in ('.', '..')
    assert max(len(group.encode()), len(last.encode())) < 256
    assert len(name) <= 250


def test_a_run_goes_on_without_a_tracker_that_fails(tmp_path, monkeypatch, warned):
  told = _Wandb(monkeypatch)

  def fail(row):
    raise ConnectionError('no route\nto the host')

  told.log = fail
  _run(tmp_path, ['tensorboard', 'wandb'])
  assert len(warned) == 1
  assert 'The tracker wandb has failed (no route); the run continues' in warned[0]
  assert (tmp_path / 'tensorboard').exists()
  assert (tmp_path / 'metrics.csv').read_text().count('\n') == 3


@pytest.mark.parametrize('name', ['mlflow', 'wandb'])
def test_missing_tracker_is_refused_before_the_folder_is_made(
  tmp_path, monkeypatch, name
):
  monkeypatch.setattr('importlib.util.find_spec', lambda _: None)
  with pytest.raises(ValueError, match=f"'{name}', which is not installed; `pip inst"):
    run_folder.RunFolder(tmp_path / 'run', {}, trackers=[name])
  with pytest.raises(
    ValueError, match="trackers has 'comet'; it must be one of tensorboard"
  ):
    run_folder.RunFolder(tmp_path / 'run', {}, trackers=['comet'])
  assert not (tmp_path / 'run').exists()
