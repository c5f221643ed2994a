"""FedEMA's program: a run and its clients, and what is refused."""

import json
import sqlite3

import numpy as np
import pytest
import tensorflow as tf

from binaries import fedema
from binaries.building import algorithms
from binaries.building import stateful
from binaries.config import run_config
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import registry
from tff_ssl.settings import personal

_FLAGS = (
  '--task=digits',
  launch.FLIP,
  '--encoder=conv2:norm=group,width=0.125',
  '--objective=projector=8/8,predictor_width=8',
  '--partition=classes:per_client=2,clients=5',
  '--clients_per_round=3',
  '--clients=epochs=1,batch_size=64',
  '--rounds=5',
  '--evaluation=methods=knn,every=2,export_clients=client_3',
)


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
  folder = tmp_path_factory.mktemp('fedema') / 'whole'
  return in_process.run(fedema, *_FLAGS, f'--run_dir={folder}')


def test_a_run_tells_of_each_client(whole):
  assert whole.status == 0, whole.stderr
  # At an evaluation a client that was absent has a row too.
  rows = [row for row in launch.table(whole.folder, 'clients.csv') if row['mu']]
  assert [row['round'] for row in rows] == [str(r) for r in range(1, 6) for _ in '123']
  met = {}
  for row in rows:
    before = met.get(row['client'])
    if before is None:
      assert (row['mu'], row['divergence'], row['lambda']) == ('0.0', '', '')
    else:
      scaler, divergence = float(row['lambda']), float(row['divergence'])
      assert float(row['mu']) == pytest.approx(min(scaler * divergence, 1.0))
      if before == '':
        assert float(row['mu']) == pytest.approx(0.7)
      else:
        assert row['lambda'] == before
    met[row['client']] = row['lambda']
  assert len(met) == 5
  # With 15 visits of 5 clients some come back twice: their mu is measured.
  assert len({row['mu'] for row in rows}) > 2
  last = launch.table(whole.folder)[-1]
  known = [row for row in rows if row['round'] == '5' and row['divergence']]
  mean = float(last['client_work/divergence'])
  told = [float(row['divergence']) for row in known]
  assert min(told) * 0.999 <= mean <= max(told) * 1.001


def test_own_encoders_are_evaluated_with_the_global_one(whole):
  metrics = {row['round']: row for row in launch.table(whole.folder)}
  clients = launch.table(whole.folder, 'clients.csv')
  for round, row in metrics.items():
    told = [x['knn/10%/accuracy'] for x in clients if x['round'] == round]
    if round in ('1', '3'):
      assert not any(told)
      assert not row['personal/knn/10%/accuracy']
      continue
    assert len(told) == 5
    accuracies = [float(x) for x in told]
    assert float(row['personal/knn/10%/accuracy']) == pytest.approx(np.mean(accuracies))
    assert 0.1 < float(row['fairness/knn/10%/accuracy/mean']) <= 1
    assert len(set(accuracies)) > 1
  assert 'global mean' in whole.stdout


def _stored(folder, client):
  """Reads what a client was left with last, by name."""
  with sqlite3.connect(folder / 'client_states.sqlite') as connection:
    ((layout,),) = connection.execute("SELECT value FROM meta WHERE name = 'layout'")
    ((state,),) = connection.execute(
      'SELECT state FROM states WHERE client = ? ORDER BY round DESC LIMIT 1', [client]
    )
  arrays, start = {}, 0
  for name, (dtype, shape) in json.loads(layout).items():
    size = np.prod(shape, dtype=int)
    arrays[name] = np.frombuffer(state, dtype, size, start).reshape(shape)
    start += arrays[name].nbytes
  assert start == len(state)
  return arrays


def test_an_exported_encoder_is_the_online_one_that_the_client_keeps(whole):
  folder = whole.folder / 'clients' / 'client_3'
  card = json.loads((folder / 'encoder.json').read_text())
  assert (card['client'], card['algorithm']) == ('client_3', 'fedema')
  prefix = 'kept/networks/encoder/'
  params = {
    name.split(prefix)[1]: value
    for name, value in _stored(whole.folder, 'client_3').items()
    if prefix in name
  }
  encoder = registry.build_encoder('conv2', (8, 8, 1), 0.125)
  expected = encoder.to_keras(params).get_weights()
  got, shared = (
    tf.keras.models.load_model(path / 'encoder.keras', compile=False).get_weights()
    for path in (folder, whole.folder)
  )
  assert len(got) == len(expected) > 0
  for own, kept in zip(got, expected, strict=True):
    np.testing.assert_array_equal(own, kept)
  assert any(np.abs(x - y).max() > 1e-4 for x, y in zip(got, shared, strict=True))


@pytest.mark.parametrize(
  ('line', 'norm'),
  [
    ('', 'l2'),
    ('--method=scaler=0.8', 'conv_mean'),
    ('--method=scaler=0.8,divergence_norm=l2', 'l2'),
    ('--method=divergence_norm=conv_mean', 'conv_mean'),
    ('--method=divergence_of=training', 'conv_mean'),
    ('--method=divergence_of=training,divergence_norm=l2', 'l2'),
  ],
)
def test_the_norm_goes_with_the_scaler(line, norm):
  assert in_process.checked('fedema', line).method.used_norm == norm


@pytest.mark.parametrize('first_target', ['copy', 'online'])
def test_what_fed_byol_shares_reaches_its_algorithm(monkeypatch, first_target):
  given = []
  monkeypatch.setattr(
    stateful.fed_ssl, 'fed_ssl', lambda *_, first_target: given.append(first_target)
  )
  monkeypatch.setattr(
    stateful.fedema, 'fedema', lambda *arguments: given.append(arguments[2])
  )
  for averaged in ('online', 'target'):
    line = f'--method=fed_byol:averaged={averaged},first_target={first_target}'
    config = in_process.checked('fedema', line)
    algorithms.of(config).build(config, None)
  # No mu applies.
  mixed = personal.FedEMA(
    averaged='target', first_target=first_target, scaler=0.0, divergence_norm='l2'
  )
  assert given == [first_target, mixed]


@pytest.mark.parametrize(
  'line',
  [
    '--method=replaced=none',
    '--method=replaced=target,tau=0.5',
    '--method=tau=0.5 --objective=predictor=false',
    '--method=fedu:replaced=target',
  ],
)
def test_mu_may_apply_to_some_networks_or_be_that_of_the_paper(line):
  assert in_process.checked('fedema', line)


_SHORT = (
  launch.APART,
  launch.FLIP,
  '--task=digits',
  '--encoder=conv2:width=0.125',
  '--objective=projector=8/8,predictor_width=8',
  '--partition=iid:clients=5',
  '--data=at_most=8',
  '--participation=1',
  '--rounds=3',
  '--evaluation=methods=knn',
)


@pytest.mark.long
@pytest.mark.parametrize(
  ('flag', 'said'),
  [
    # A first divergence of more than a thousandth makes mu 1.
    ('--method=scaler=1000', 'warning: in round 2 mu is 1 for every returning client'),
    ('--method=tau=0', 'the run is bit for bit that of --method=fed_byol'),
    ('--method=fedu:threshold=1e6', 'the run is bit for bit that of --method=fed_byol'),
  ],
  ids=('scaler', 'tau of 0', 'fedu'),
)
def test_mu_of_0_or_1_raises_the_alarm(tmp_path, flag, said):
  folder = tmp_path / 'run'
  ended = in_process.finished(fedema, *_SHORT, flag, f'--run_dir={folder}')
  warned = [line for line in ended.stderr.splitlines() if line.startswith('warning')]
  mixing = [line for line in warned if 'mu is 1' in line or 'bit for bit' in line]
  assert len(mixing) == 1
  assert said in mixing[0]


_NARROW = 'conv2:width=0.125,norm=batch'


def _base_run(folder, rounds=2, encoder=_NARROW, width=0.125):
  """Makes what is read of a run, after its second round."""
  (folder / 'checkpoints').mkdir(parents=True)
  config = in_process.read('fedavg_ssl', f'--encoder={encoder} --rounds={rounds}')
  own = {'config': run_config.to_json(config)}
  (folder / 'config.json').write_text(json.dumps(own))
  network = registry.build_encoder('conv2', (8, 8, 1), width, normalization='batch')
  arrays = {
    f'state/{algorithms.ENCODER}/{name}': value.numpy()
    for name, value in network.init((1, 2)).items()
  }
  np.savez(folder / 'checkpoints' / 'round_00000002.npz', **arrays)
  return folder


def test_base_models_that_do_not_fit_are_one_sentence(tmp_path):
  early = _base_run(tmp_path / 'early', rounds=3)
  group = _base_run(tmp_path / 'group', encoder='conv2:width=0.125,norm=group')
  pooled = _base_run(tmp_path / 'pooled', encoder='torch_vit_tiny')
  narrow = _base_run(tmp_path / 'narrow', width=0.0625)
  fedca = '--method=fedca --clients_per_round=5 --objective=alignment_weight=1'
  aligned = f'{fedca} --encoder={_NARROW} --method=alignment_run='
  wrong = {
    f'--method=fedca:alignment_run={narrow}': (
      f'alignment_run of --method is {narrow} without alignment_weight of --objective; '
    ),
    f'{aligned}{tmp_path}/none': f'{tmp_path}/none is not a run: there is no such',
    f'{aligned}{early}': f'{early} has 2 of 3 rounds; the base model must come',
    f'{aligned}{group}': (
      f'{group} is a run with --encoder=conv2:width=0.125; the base model must have '
      '--encoder=conv2:width=0.125,norm=batch, as the clients have.'
    ),
    # Of the same names and shapes.
    f'{fedca} --encoder=torch_vit_tiny:pool=mean --method=alignment_run={pooled}': (
      f'{pooled} is a run with --encoder=torch_vit_tiny; the base model must have '
      '--encoder=torch_vit_tiny:pool=mean, as the clients have.'
    ),
    f'{aligned}{narrow}': (
      f'The shape of stage1/conv/kernel of the encoder of {narrow} is (3, 3, 1, 4); '
      'it must be (3, 3, 1, 8)'
    ),
  }
  said = in_process.said(
    fedema, [f'--run_dir={tmp_path}/wrong {line}' for line in wrong]
  )
  for line, sentence in wrong.items():
    assert said[f'--run_dir={tmp_path}/wrong {line}'].startswith(sentence), line
  assert not (tmp_path / 'wrong').exists()
