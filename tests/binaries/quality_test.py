"""Signals of quality in runs: the light on terminal and card, secure and refused."""

import json

import numpy as np
import pytest

from binaries import fedavg_ssl
from binaries.building import data
from binaries.experiment import quality
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import registry as encoder_registry
from tff_ssl.evaluation import signals
from tff_ssl.reporting import verdict

_FLAGS = (
  *launch.SMALL,
  '--objective=simclr:projector=8/8',
  '--rounds=1',
  '--evaluation=methods=knn,signals_every=1',
  # More than 32 bits.
  '--seed=4294967296',
)


@pytest.fixture(scope='module')
def plain(tmp_path_factory):
  folder = tmp_path_factory.mktemp('quality') / 'run'
  return in_process.run(fedavg_ssl, *_FLAGS, f'--run_dir={folder}', signals=True)


def _numbers(folder):
  return json.loads((folder / 'evaluation.json').read_text())


def test_run_has_signals_a_light_and_an_interval_on_terminal_and_card(plain):
  assert plain.status == 0, plain.stderr
  numbers, card = _numbers(plain.folder), (plain.folder / 'encoder.md').read_text()
  for name in signals.NAMES:
    assert np.isfinite(numbers[f'signals/{name}'])
    assert np.isfinite(numbers[f'random_encoder/signals/{name}'])
  light = verdict.traffic_light(numbers)
  # One round of four clients of four images changes hardly anything.
  assert light.word == 'undertrained'
  assert f'Without labels: yellow, undertrained: {light.why}.' in plain.stdout
  assert f'- Without labels: yellow, undertrained: {light.why}.' in card
  assert numbers['tested/cases'] == 359
  low, accuracy, high = (
    numbers[f'knn/10%/accuracy{end}'] for end in ('/low', '', '/high')
  )
  assert low < accuracy < high
  for text in (plain.stdout, card):
    assert 'by 359 test cases; worse than its own pixels (' in text
    assert ', not better than an untrained encoder (' in text
  assert numbers['random_encoder/knn/10%/accuracy'] == pytest.approx(
    accuracy - numbers['knn/10%/accuracy/gain']
  )
  assert 'What knn 10% confuses' in card
  advised = 'Next: more rounds, because it had only 1 (--rounds=3 and a new --run_dir).'
  assert advised in plain.stdout
  assert f'- {advised}' in card
  total = sum(v for k, v in numbers.items() if k.startswith('knn/10%/confusion/'))
  assert total == pytest.approx(359)


def test_signals_are_columns_only_if_asked_every_few_rounds(plain):
  header = (plain.folder / 'metrics.csv').read_text().split('\n')[0].split(',')
  assert [name for name in header if name.startswith('signals/')] == [
    f'signals/{name}' for name in signals.NAMES
  ]
  assert not [name for name in header if name.endswith('/low')]
  row = (plain.folder / 'metrics.csv').read_text().split('\n')[1].split(',')
  by_name = dict(zip(header, row, strict=True))
  assert float(by_name['signals/rank']) == _numbers(plain.folder)['signals/rank']


def test_clients_encode_images_as_they_hold_them():
  config = in_process.read('dcco', '--partition=rotation:clients=2')
  task = registry.load('digits')
  partition = data.partition(config, task)
  encoder = encoder_registry.build_encoder('conv2', task.image_shape, 0.125)
  views = quality.Views(config, task, encoder, partition)
  expected = task.train.image.copy()
  # The second of two clients has half a turn.
  second = partition['client_1']
  expected[second] = expected[second, ::-1, ::-1]
  np.testing.assert_array_equal(views.inputs, expected)


def test_private_runs_and_two_modalities_have_no_signals_and_say_why():
  flags = '--aggregation=private --aggregation=noise_multiplier=1,update_clip=1'
  private = in_process.read('dcco', flags)
  reason = quality.skipped(private, 'image')
  assert reason.endswith('; signal_rounds of --aggregation=private says how much is')
  private = in_process.read('dcco', f'{flags},signal_rounds=1')
  assert quality.skipped(private, 'image') is None
  assert 'two modalities' in quality.skipped(private, 'left')
  plain = in_process.read('dcco')
  assert 'two modalities' in quality.skipped(plain, 'left')
  assert quality.skipped(plain, 'features') is None
