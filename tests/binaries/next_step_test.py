"""The cures that a run's method allows, and their flags."""

import json
import pathlib

import pandas as pd
import pytest

from binaries.experiment import next_step
from tests.binaries import in_process
from tff_ssl.reporting import advice
from tff_ssl.reporting import run_reader

_PRIVATE = '--aggregation=private:noise_multiplier=1,update_clip=1'


def _facts(folder, line, images=8, clients=4, side=8, card=None):
  program, _, flags = line.partition(' ')
  config = in_process.read(program, flags)
  shape = {'network': {'image_shape': [side, side, 3]}}
  (folder / 'encoder.json').write_text(json.dumps({**shape, **(card or {})}))
  counts = {'client_work/examples': [images], 'client_work/clients': [clients]}
  run = run_reader.Run(pathlib.Path(folder), {}, pd.DataFrame(counts), {})
  return next_step.facts(config, run)


@pytest.mark.parametrize(
  'line',
  [
    f'dcco {_PRIVATE}',
    f'fedavg_ssl --objective=byol --encoder=norm=group {_PRIVATE}',
    'fedsup',
    'ssfl',
    'dec_ssl',
    'fedavg_ssl --objective=supervised',
    'dcco --task=digits_halves',
  ],
)
def test_what_was_not_measured_is_not_advised(tmp_path, line):
  assert _facts(tmp_path, line, side=96) == ({}, None)


@pytest.mark.parametrize(
  ('line', 'cure', 'flag'),
  [
    ('dcco --server=learning_rate=0.2', advice.SLOWER, '--server=learning_rate=0.02'),
    (
      'fedavg_ssl --clients=learning_rate=1',
      advice.FASTER,
      '--clients=learning_rate=10',
    ),
    ('dcco --rounds=20', advice.ROUNDS, '--rounds=60 and a new --run_dir'),
    ('fedavg_ssl --rounds=20', advice.ROUNDS, '--rounds=60'),
    ('dcco --clients_per_round=4', advice.IMAGES, '--clients_per_round=128'),
    # All clients there are.
    ('dcco --clients_per_round=5', advice.IMAGES, None),
    (
      'dcco --method=fedavg --objective=cco',
      advice.IMAGES,
      'python -m binaries.dcco --method=dcco',
    ),
    ('fedavg_ssl --objective=simclr', advice.IMAGES, None),
    (
      'fedavg_ssl --objective=byol --encoder=norm=group',
      advice.BATCH_NORM,
      '--encoder=norm=batch',
    ),
    ('fedavg_ssl --objective=byol', advice.BATCH_NORM, None),
    ('dcco', advice.BATCH_NORM, None),
  ],
)
def test_a_cure_has_its_flag_where_the_method_allows_it(tmp_path, line, cure, flag):
  assert _facts(tmp_path, line).flags.get(cure) == flag


def test_images_are_those_of_a_round_or_of_a_client(tmp_path):
  assert _facts(tmp_path, 'dcco').images == 8
  assert _facts(tmp_path, 'dcco --method=fedavg --objective=cco').images == 2
  assert _facts(tmp_path, 'fedavg_ssl --objective=simclr').images is None


@pytest.mark.parametrize(
  ('line', 'side', 'card', 'is_advised'),
  [
    ('dcco', 64, {}, True),
    ('dcco', 63, {}, False),
    ('dcco', 64, {'parent': {}}, False),
    ('dcco', 64, {'network': {'image_shape': [64, 64, 1]}}, False),
    ('dcco', 64, {'network': {'image_shape': ['64', 64, 3]}}, False),
    ('fedavg_ssl --encoder=torch_resnet18', 64, {}, False),
  ],
)
def test_only_photographs_that_start_from_nothing_get_a_backbone(
  tmp_path, line, side, card, is_advised
):
  flags = _facts(tmp_path, line, side=side, card=card).flags
  assert (advice.BACKBONE in flags) == is_advised


def test_a_folder_that_cannot_be_read_gets_no_line(tmp_path):
  assert next_step.of_folder(tmp_path) == ''
