"""What a person may get wrong in a run, and what is then said."""

import importlib
import os
import re

import pytest

from binaries import dcco
from binaries.building import objectives
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.augment import byol
from tff_ssl.encoders import registry


@pytest.mark.parametrize(
  ('name', 'line', 'said'),
  [
    # What else may be wrong with a flag: command_line_test.
    ('dcco', '--qqq', 'Error: There is no flag --qqq; --help lists'),
    ('dcco', '--run_dir={d}/r --objective=temperature=1', 'the fields are projector, '),
    ('dcco', '--run_dir={d}/r -x', 'There is no flag --x'),
    ('dcco', '--run_dir={d}/r --nodownload=1', 'download'),
    ('dcco', '--run_dir=/proc/run', '/proc/run'),
    ('dcco', f'--run_dir={__file__}/run', f'Error: {__file__}'),
    ('dcco', '--run_dir={d}/r --config={d}/no', '{d}/no'),
    ('dcco', '--run_dir={d}/r --encoder=norm=batch,groups=32', 'groups of --enc'),
    ('fedema', '--run_dir={d}/r --evaluation=export_clients=nobody', 'nobody'),
    ('partition', '--csv={d}/x.png', '.csv'),
  ],
)
def test_a_bad_command_line_ends_in_a_sentence(tmp_path, name, line, said):
  binary = importlib.import_module(f'binaries.{name}')
  ended = in_process.run(binary, *line.replace('{d}', str(tmp_path)).split())
  assert ended.status == 1
  assert ended.stderr.count('\n') == 1
  assert said.replace('{d}', str(tmp_path)) in ended.stderr
  # Nothing is written.
  assert not [*tmp_path.iterdir()]


_NAMES = """
import sys
from binaries import dcco, partition, sweep
from binaries.launching import program
for module, line in (
  (dcco, '--task=digit'),
  (dcco, '--partition=foo'),
  (dcco, '--evaluation=methods=kn'),
  (dcco, '--aggregation=private:update_clip=1'),
  (dcco, '--init_from=notes.txt'),
  (dcco, '--run_dir=notes.txt'),
  (dcco, '--encoder=torch_resnet18 --init_from=short.safetensors'),
  (dcco, '--encoder=resnet18 --init_from=short.safetensors'),
  (partition, '--task=digit'),
  (sweep, '--methods=dcco --task=digit'),
):
  needed = [] if module is not dcco else ['--run_dir=r']
  try:
    program.work(module, [*needed, *line.split()])
  except ValueError as error:
    print(error)
sys.exit('tensorflow' in sys.modules or 'tensorflow_federated' in sys.modules)
"""


def test_wrong_names_and_files_for_folders_need_no_tensorflow(tmp_path):
  (tmp_path / 'notes.txt').touch()
  (tmp_path / 'short.safetensors').write_bytes(b'1234')
  where = {'cwd': tmp_path, 'env': {**os.environ, 'PYTHONPATH': str(launch.ROOT)}}
  ended = launch.python(_NAMES, **where, check=True)
  said = [
    "task is 'digit'; .*Did you mean digits?",
    "The partition is 'foo': it has the unknown kind 'foo'; it must be one of",
    "methods of --evaluation has 'kn'; .*Did you mean knn?",
    '--aggregation=private is given without epsilon',
    'notes.txt.*, which is a file; it must be the folder of a run',
    'notes.txt is a file; it must be a folder',
    'short.safetensors is no whole safetensors file: .* header too small.',
    'with --encoder=resnet18; weights of PyTorch need one of torch_resnet18, ',
    "task is 'digit'",
    "dcco: task is 'digit'",
  ]
  for line, pattern in zip(ended.stdout.splitlines(), said, strict=True):
    assert re.search(pattern, line), line
  left = {path.name for path in tmp_path.iterdir()}
  assert left == {'notes.txt', 'short.safetensors'}


def test_more_clients_than_there_are_is_refused_before_the_folder_is_made(tmp_path):
  folder = tmp_path / 'run'
  with pytest.raises(ValueError, match='clients_per_round is 9999'):
    in_process.call(
      dcco, *launch.SMALL, f'--run_dir={folder}', '--clients_per_round=9999'
    )
  assert not folder.exists()


@pytest.mark.parametrize(
  ('views', 'expected'), [('simclr_no_blur', 'flip'), ('none', 'none')]
)
def test_supervised_trains_on_flips_if_views_are_mirrored(views, expected):
  line = f'--method=centralized_steps --objective=supervised --augmentation={views}'
  config, encoder = in_process.read('dcco', line), registry.build_encoder('mlp', (4,))
  built = objectives.supervised_objective(config, encoder, 2)
  assert built.augmentation == byol.by_name(expected)
