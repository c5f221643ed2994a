"""The cures that a run's method allows, and their flags."""

import pathlib

import pandas as pd
import pytest

from binaries.experiment import next_step
from tests.binaries import in_process
from tff_ssl.reporting import advice
from tff_ssl.reporting import run_reader

_GROUP = 'fedavg_ssl --objective=byol --encoder=norm=group'
_PRIVATE = '--aggregation=private:noise_multiplier=1,update_clip=1'
_DCCO = 'python -m binaries.dcco --method=dcco'
_SIZE = '--task=cifar10 --image_size'
_LITE0 = '--encoder=torch_efficientnet_lite0 after make lite0'


def _cures(line, init_from=None, examples=8):
  program, _, flags = line.partition(' ')
  counts = {'client_work/examples': [examples], 'client_work/clients': [4]}
  config = {'config': {'init_from': init_from}}
  run = run_reader.Run(pathlib.Path('run'), config, pd.DataFrame(counts), {})
  return next_step.cures(in_process.read(program, flags), run)


@pytest.mark.parametrize(
  'line',
  [
    f'dcco {_PRIVATE}',
    f'{_GROUP} {_PRIVATE}',
    'fedsup',
    'ssfl',
    'dec_ssl',
    'fedavg_ssl --objective=supervised',
    'dcco --task=digits_halves',
  ],
)
def test_what_was_not_measured_is_not_advised(line):
  assert _cures(line) == ({}, None)


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
    # There are four clients.
    ('dcco --clients_per_round=5', advice.IMAGES, None),
    (_GROUP, advice.IMAGES, None),
    (_GROUP, advice.BATCH_NORM, '--encoder=norm=batch'),
    ('fedavg_ssl --objective=byol', advice.BATCH_NORM, None),
    ('dcco', advice.BATCH_NORM, None),
    (f'dcco {_SIZE}=63', advice.BACKBONE, None),
    ('dcco --task=cifar10', advice.BACKBONE, None),
    ('dcco --task=stl10', advice.BACKBONE, _LITE0),
    ('dcco --task=stl10 --image_size=32', advice.BACKBONE, None),
    (f'fedavg_ssl {_SIZE}=64 --encoder=torch_resnet18', advice.BACKBONE, None),
  ],
)
def test_a_cure_has_its_flag_where_the_method_allows_it(line, cure, flag):
  assert _cures(line)[0].get(cure) == flag


def test_images_are_those_of_a_round_or_of_a_client():
  assert _cures('dcco')[1] == 8
  flags, images = _cures('dcco --method=fedavg --objective=cco')
  assert (flags[advice.IMAGES], images) == (_DCCO, 2)


@pytest.mark.parametrize(
  ('objective', 'examples', 'images'),
  [('simclr', 4, 1), ('simclr', 8, None), ('simsiam', 4, None)],
)
def test_contrast_needs_dcco_where_clients_have_one_image(objective, examples, images):
  flags, found = _cures(f'fedavg_ssl --objective={objective}', examples=examples)
  assert (flags.get(advice.IMAGES), found) == (images and _DCCO, images)


def test_only_a_run_that_starts_from_nothing_gets_a_backbone(tmp_path):
  assert advice.BACKBONE in _cures(f'dcco {_SIZE}=64')[0]
  assert advice.BACKBONE not in _cures(f'dcco {_SIZE}=64', 'runs/first')[0]
  assert next_step.of_folder(tmp_path) == ''
