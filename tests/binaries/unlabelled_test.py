"""Pictures without any label: every program runs to its end, or refuses them."""

import importlib
import json
import math

import pytest

from tests.binaries import in_process
from tests.binaries import launch
from tests.tasks import fabricate

_PRIVATE = '--aggregation=private:noise_multiplier=1,delta=1e-3,signal_rounds=1'
_PERSONAL = '--evaluation=personal=linear/federated_linear,export_clients=client_0'
# Clients without a state, and with one.
_USUAL = (
  'fedavg_ssl --objective=simclr:projector=8',
  'fedavg_ssl --method=fedbn --objective=simclr:projector=8',
)
_OTHERS = (
  'fedavg_ssl --method=orchestra',
  'fedavg_ssl --method=ssd',
  'fedema --method=fedema',
  'fedema --method=fedca',
  f'ssfl --method=per {_PERSONAL}',
  f'dec_ssl --method=featarc {_PERSONAL}',
  'dec_ssl --method=ring --clients_per_round=',
  'dcco --method=centralized_steps --clients_per_round=',
  'dcco --method=fedsc --aggregation=secure',
  f'dcco --method=dcco --objective=projector=8 {_PRIVATE}',
)
_RUN = ('--task=folder', '--image_size=8', '--rounds=1', '--encoder=conv2:width=0.125')
_SKIPPED = 'No example of folder has a label: probes and accuracies are skipped.\n'
_REFUSED = 'a classifier needs some of both (binaries.embed needs none)'


@pytest.fixture(scope='module')
def call(tmp_path_factory):
  """Returns what runs a command line on twelve pictures."""
  base = tmp_path_factory.mktemp('unlabelled')
  (base / 'data').mkdir()
  for k in range(12):
    (base / f'data/{k}.jpg').write_bytes(fabricate.jpeg(20 * k))

  def run(line, *flags):
    name, *own = line.replace('{base}', str(base)).split()
    flags = (*flags, *own, f'--data_dir={base / "data"}')
    given = [flag for flag in flags if not flag.endswith('=')]
    binary = importlib.import_module(f'binaries.{name}')
    return in_process.run(binary, *given, signals=True)

  return run


@pytest.fixture(scope='module')
def runs(call, tmp_path_factory):
  """Runs by their command lines, each made when it is first asked for."""

  def make(line):
    folder = tmp_path_factory.mktemp('run')
    flags = [*_RUN, launch.FLIP, f'--run_dir={folder}']
    flags += ['--clients_per_round=2'] * ('--clients_per_round=' not in line)
    return call(line, *flags)._replace(folder=folder)

  return launch.Made(make)


@pytest.mark.parametrize(
  'line', [*_USUAL, *(pytest.param(line, marks=pytest.mark.long) for line in _OTHERS)]
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
  assert (ended.folder / 'clients').exists() == ('export_clients' in line)


@pytest.mark.parametrize(
  ('line', 'said'),
  [
    ('evaluate --fairness --evaluation=methods=one_round/finetune', _SKIPPED),
    ('evaluate --evaluation=baselines=true,methods=federated_linear', _SKIPPED),
    ('predict --images={base}/data', _REFUSED),
    ('export --classifier --out={base}/one', _REFUSED),
    ('export --finetuned --out={base}/two', _REFUSED),
    pytest.param('export --formats=keras', 'Exported: ', marks=pytest.mark.long),
  ],
)
def test_what_a_run_without_labels_is_used_for(runs, call, line, said):
  folder = runs[_USUAL[0]].folder
  if 'evaluate' in line:
    # A run of before there were signals.
    (folder / 'evaluation.json').unlink()
  ended = call(line, f'--run={folder}')
  assert said in ended.stdout + ended.stderr
  assert ended.status == (said == _REFUSED)
  if 'evaluate' in line:
    assert 'signals/spread' in (folder / 'evaluation.json').read_text()


@pytest.mark.parametrize('method', ['fedsup', 'fedrgd', 'fedmatch', 'server_finetuned'])
def test_labels_that_a_server_lacks_are_refused_before_round_1(call, tmp_path, method):
  line = f'fedsup --method={method} --run_dir={tmp_path / "run"}'
  ended = call(line, *_RUN)
  assert ended.status == 1 and not (tmp_path / 'run').exists()
  assert "The task 'folder' has no train labels; " in ended.stderr
