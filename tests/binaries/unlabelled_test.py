"""Pictures without any label: every program runs to its end, or refuses them."""

import html
import importlib
import json
import math
from unittest import mock

import numpy as np
import pytest

from binaries.experiment import run_pages
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tests.worlds import pictures

_CLIENTS = 8
_PRIVATE = '--aggregation=private:noise_multiplier=1,delta=1e-3,signal_rounds=1'
_PERSONAL = '--evaluation=personal=linear/federated_linear,export_clients=C101'
_USUAL = 'dcco --objective=projector=8'
_OTHERS = (
  'fedavg_ssl --method=fedbn --objective=projector=8',
  'fedavg_ssl --method=orchestra',
  'fedavg_ssl --method=ssd',
  'fedema --method=fedema --objective=projector=8',
  'fedema --method=fedca',
  f'ssfl --method=per {_PERSONAL}',
  f'dec_ssl --method=featarc {_PERSONAL}',
  'dec_ssl --method=ring',
  'dcco --method=centralized_steps',
  'dcco --method=fedsc --aggregation=secure',
  f'dcco --method=dcco --objective=projector=8 {_PRIVATE}',
)
_SKIPPED = 'No example of folder has a label: probes and accuracies are skipped.\n'
_FITTED = 'a classifier needs some of both (binaries.embed needs none)'


@pytest.fixture(scope='module')
def data(tmp_path_factory):
  """A folder of each client with three pictures, and notes beside them."""
  folder = tmp_path_factory.mktemp('unlabelled') / 'data'
  for k in range(_CLIENTS):
    (folder / f'C{101 + k}').mkdir(parents=True)
    for level in range(3):
      path = folder / f'C{101 + k}/{level}.jpg'
      path.write_bytes(pictures.jpeg(30 * level))
  (folder / 'notes.txt').write_text('x')
  return folder


@pytest.fixture(scope='module')
def runs(data, tmp_path_factory):
  """Runs by their command lines, each made when it is first asked for."""
  return launch.Made(lambda line: _run(line, data, tmp_path_factory.mktemp('run')))


def _call(line, *flags):
  name, *own = line.split()
  program = importlib.import_module(f'binaries.{name}')
  return in_process.run(program, *flags, *own, signals=True)


def _run(line, data, folder):
  flags = ('--task=folder', '--data=folders=client', f'--data_dir={data}')
  flags += ('--image_size=8', launch.FLIP, '--encoder=conv2:width=0.125', '--rounds=1')
  return _call(line, *flags, f'--run_dir={folder}')


@pytest.mark.parametrize(
  'line', [_USUAL, *(pytest.param(line, marks=pytest.mark.long) for line in _OTHERS)]
)
def test_a_run_without_labels_ends_with_signals_and_a_card(runs, line):
  ended = runs[line]
  assert ended.status == 0, ended.stderr
  # Before the first round, and in place of the numbers.
  assert ended.stdout.count(_SKIPPED) == 2
  found = json.loads((ended.folder / 'evaluation.json').read_text())
  assert all('signals/' in name for name in found.keys() - {'round'})
  for own in ('', 'random_encoder/'):
    assert math.isfinite(found[f'{own}signals/spread'])
  assert (ended.folder / 'encoder.md').is_file()
  assert not (ended.folder / 'labels.json').exists()
  assert (ended.folder / 'clients').exists() == ('export_clients' in line)


def test_a_run_without_labels_has_the_clients_and_counts_of_its_folder(runs, data):
  run = runs[_USUAL]
  # The files, on the screen and beside the numbers.
  task = registry.load('folder', data, 8, folders='client')
  taken = task.intake
  assert '\n'.join(f'  {line}' for line in taken.lines()) in run.stdout
  assert json.loads((run.folder / 'intake.json').read_text()) == taken.as_json()
  assert taken.files == {'images read': 3 * _CLIENTS, 'of other kinds': 1}
  page = (run.folder / 'page.html').read_text()
  assert all(html.escape(line) in page for line in taken.lines())
  assert 'Nearest neighbours' in page

  rows = launch.table(run.folder, 'partition.csv')
  expected = [task.holder_names[k] for k in np.unique(task.train.client)]
  assert [row['client_id'] for row in rows] == expected
  assert {row['size'] for row in rows} == {'3'}
  # Fewer clients than a round has by default: it has all of them, and says so.
  said = f'each round has all {len(expected)} clients, because clients_per_round is 64'
  assert said in run.stdout
  (row,) = launch.table(run.folder)
  assert float(row['client_work/clients']) == len(expected)


@pytest.mark.parametrize('trackers', [(), ('tensorboard',)])
def test_examples_are_on_the_page_only_where_they_may_be_shown(data, trackers):
  task = registry.load('folder', data, 8, folders='client')
  experiment = mock.Mock(task=task)
  experiment.config.trackers, experiment.encoder.field = trackers, 'image'
  assert (run_pages._pictures(experiment, {}) is None) == (not trackers)


@pytest.mark.parametrize(
  ('line', 'said'),
  [
    ('evaluate --fairness --evaluation=methods=one_round/finetune', _SKIPPED),
    ('evaluate --evaluation=baselines=true,methods=federated_linear', _SKIPPED),
    ('predict --images={data}', _FITTED),
    ('export --classifier --out={out}', _FITTED),
    ('export --finetuned --out={out}', _FITTED),
    pytest.param('export --formats=keras', 'Exported: ', marks=pytest.mark.long),
  ],
)
def test_what_a_run_without_labels_is_used_for(runs, data, tmp_path, line, said):
  folder = runs[_USUAL].folder
  if 'evaluate' in line:
    # A run of before there were signals.
    (folder / 'evaluation.json').unlink()
  line = line.format(data=data, out=tmp_path)
  ended = _call(line, f'--run={folder}', f'--data_dir={data}')
  assert said in ended.stdout + ended.stderr
  assert ended.status == (said == _FITTED)
  assert 'signals/spread' in (folder / 'evaluation.json').read_text()


@pytest.mark.parametrize(
  'line',
  [
    'dcco --method=centralized_steps --objective=supervised',
    'fedsup --method=fedsup',
    'fedsup --method=labelled_only',
    'fedsup --method=server_finetuned',
  ],
)
def test_labels_that_a_method_needs_are_missed_before_round_1(data, tmp_path, line):
  ended = _run(line, data, tmp_path / 'run')
  assert ended.status == 1 and not (tmp_path / 'run').exists()
  assert "The task 'folder' has no train labels; " in ended.stderr
