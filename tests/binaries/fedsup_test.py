"""Runs of methods with labels at the server, and what they warn of.

All of digits is loaded: what is small is the model.
"""

import json
import shutil

import numpy as np
import pytest

from binaries import evaluate
from binaries import fedsup
from binaries.experiment import messages
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.objectives import supervised
from tff_ssl.settings import learning

_SMALL = (
  '--task=digits',
  launch.FLIP,
  '--encoder=conv2:width=0.125',
  '--evaluation=methods=knn',
)
_CLIENTS = ('--partition=iid:clients=20', '--clients=epochs=1,batch_size=32')
_FEDMATCH = '--method=fedmatch:helper_interval=2'
_RUNS = {
  'fedsup': (*_CLIENTS, '--objective=projector=8/8', launch.APART),
  'fixmatch': (*_CLIENTS, '--method=server_finetuned', '--objective=fixmatch'),
  'fedrgd': (*_CLIENTS, '--method=fedrgd'),
  'fedmatch': (*_CLIENTS, _FEDMATCH, '--objective=threshold=0.2', launch.APART),
  'labelled_only': ('--method=labelled_only',),
}
_ROUNDS = 2


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  """Returns runs by method, each made when it is first asked for."""
  base, flags = tmp_path_factory.mktemp('fedsup'), (*_SMALL, f'--rounds={_ROUNDS}')

  def run(name):
    return in_process.run(fedsup, *flags, *_RUNS[name], f'--run_dir={base / name}')

  return launch.Made(run)


@pytest.mark.long_for('fedsup', 'fedrgd', 'fedmatch', 'labelled_only')
@pytest.mark.parametrize('name', _RUNS)
def test_a_run_is_complete(runs, name):
  run = runs[name]
  assert run.status == 0, run.stderr
  rows = launch.table(run.folder)
  for row in rows:
    assert np.isfinite(float(row['server_work/loss']))
    assert row['server_work/examples'] == '145'
    assert float(row['student/accuracy']) > 0
    assert ('teacher/accuracy' in row) == (name == 'fedsup')
    if name != 'labelled_only':
      assert np.isfinite(float(row['client_work/loss']))
      assert row['client_work/clients'] == '5'
      assert float(row['client_work/bytes_up']) > 0
      assert 'client_work/gradient_diversity' in row
  evaluation = json.loads((run.folder / 'evaluation.json').read_text())
  assert evaluation['labels/100%'] == 145
  assert evaluation['knn/100%/accuracy'] > 0.2
  assert (run.folder / 'encoder.keras').exists()


@pytest.mark.long
def test_a_run_without_any_pseudo_label_warns(runs):
  """No probability of ten classes reaches 0.95 in so few rounds; 0.2 some do."""
  said = {name: runs[name].stderr for name in ('fixmatch', 'fedmatch', 'fedsup')}
  rows = launch.table(runs['fixmatch'].folder)
  assert [float(row['client_work/pseudo_labelled']) for row in rows] == [0] * _ROUNDS
  assert (
    'Warning: no image of a client had a pseudo-label in any of '
    f'{_ROUNDS} rounds' in said['fixmatch']
  )
  assert '--objective=threshold=0.95' in said['fixmatch']
  assert 'pseudo-label' not in said['fedmatch']
  assert 'pseudo-label' not in said['fedsup']


@pytest.mark.parametrize(
  ('norm', 'examples', 'said'),
  [
    ('batch', 20, 'a batch of 4 of the 20 examples at the server'),
    # The last one is left out; 24 are a batch of 16 and one of 8.
    ('batch', 17, ''),
    ('batch', 24, ''),
    ('batch', 5, 'a batch of 5 of the 5 examples at the server'),
    ('group', 20, ''),
  ],
)
def test_small_batches_at_the_server_are_reported(capsys, norm, examples, said):
  encoder = registry.build_encoder('conv2', (8, 8, 1), 0.125, normalization=norm)
  head = projector.build_linear(encoder.output_dim, 10)
  objective = supervised.SupervisedObjective(encoder, head, augment.by_name('none'))
  plan = learning.ServerLabels(batch_size=16)
  messages.warn_of_server_batches(server_training.as_clients(plan), objective, examples)
  told = capsys.readouterr().err
  assert bool(told) == bool(said)
  assert said in told


def test_evaluate_uses_the_labels_of_the_server_alone(runs, tmp_path):
  run = shutil.copytree(runs['fixmatch'].folder, tmp_path / 'run')
  before = json.loads((run / 'evaluation.json').read_text())
  in_process.call(evaluate, f'--run={run}', '--evaluation=methods=knn/one_round')
  after = json.loads((run / 'evaluation.json').read_text())
  assert {name: after[name] for name in before} == before
  added = {name.split('/')[0] for name in after.keys() - before}
  assert added == {'lda', 'ridge'}
  with pytest.raises(ValueError, match='server_finetuned only the server has labels'):
    in_process.call(evaluate, f'--run={run}', '--evaluation=methods=federated_linear')
