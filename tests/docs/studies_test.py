"""A study of a run: its rounds are repeated, and end where it ended."""

import csv
import json
import re
import shutil

import pytest

from binaries import fedavg_ssl
from binaries.config import aggregations
from docs.studies import __main__ as study
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.computing import kinds

_FLAGS = (
  launch.APART,
  launch.FLIP,
  '--objective=supervised',
  '--task=digits',
  '--encoder=conv2:width=0.125',
  '--partition=skew:beta=0,clients=3',
  '--participation=1',
  '--clients=sgd:epochs=2,batch_size=256,learning_rate=0.1',
  '--rounds=3',
  '--evaluation=methods=knn',
)


# Its runs take long, and only those who keep the pages run it.
pytestmark = pytest.mark.long


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  folder = tmp_path_factory.mktemp('study') / 'run'
  ended = in_process.run(fedavg_ssl, f'--run_dir={folder}', *_FLAGS, folder=folder)
  assert ended.status == 0, ended.stderr
  return folder


def test_its_rounds_end_at_its_checkpoint(run, tmp_path, capsys):
  out = tmp_path / 'out'
  arguments = ['--study_rounds=1,3', '--study_clients=2', '--study_images=40']
  in_process.call(study, f'--runs={run}', f'--out={out}', *arguments)
  shown = capsys.readouterr().out
  gap = re.search(
    r'after round 3 the repeated weights differ from the checkpoint by (\S+) of their '
    r'norm',
    shown,
  )
  assert float(gap.group(1)) < 1e-4
  with (out / 'study.csv').open() as file:
    rows = list(csv.DictReader(file))
  pairs = {(row['one'], row['other']) for row in rows if row['quantity'] == 'distance'}
  assert pairs == {
    ('global', 'client_0'),
    ('global', 'client_1'),
    ('client_0', 'client_1'),
  }
  assert {row['round'] for row in rows} == {'1', '3'}
  assert all(float(row['value']) > 0 for row in rows)
  cka = [float(row['value']) for row in rows if row['quantity'] == 'cka']
  assert max(cka) < 1 + 1e-9
  for name in ('study.png', 'map.png'):
    assert (out / name).read_bytes().startswith(b'\x89PNG')


def test_without_checkpoints_nothing_is_said_of_them(run, tmp_path, capsys):
  shutil.copytree(run, tmp_path / 'run')
  shutil.rmtree(tmp_path / 'run' / 'checkpoints')
  out = tmp_path / 'out'
  arguments = ['--study_rounds=1', '--study_clients=1', '--study_images=10']
  in_process.call(study, f'--runs={tmp_path / "run"}', f'--out={out}', *arguments)
  assert 'of their norm' not in capsys.readouterr().out
  assert (out / 'study.csv').is_file()


def test_private_runs_are_refused(run, tmp_path):
  config = json.loads((run / 'config.json').read_text())
  private = aggregations.Private(update_clip=1.0, noise_multiplier=1.0)
  config['config']['aggregation'] = kinds.to_json(private)
  (tmp_path / 'config.json').write_text(json.dumps(config))
  with pytest.raises(ValueError, match='--aggregation=private; a study'):
    in_process.call(study, f'--runs={tmp_path}', f'--out={tmp_path / "out"}')


def test_bad_input_is_named(run, tmp_path):
  for arguments, message in (
    ([], '--runs is not given'),
    ([f'--runs={tmp_path}'], 'config.json'),
    ([f'--runs={run}', f'--out={run}'], 'it must be a new folder or that of a study'),
    (
      [f'--runs={run}', '--study_rounds=0'],
      '--study_rounds=0 is given: it must be a whole number at least 1',
    ),
    ([f'--runs={run}', '--study_rounds=9'], 'study_rounds has 9; .* has 3 rounds'),
    ([f'--runs={run}', '--rounds=9'], 'There is no flag --rounds'),
  ):
    with pytest.raises(ValueError, match=message):
      in_process.call(study, *arguments)
