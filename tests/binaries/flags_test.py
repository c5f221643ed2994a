"""What a person may get wrong, and what is then said."""

import json
import re

import pytest

from binaries import dcco
from binaries.methods import objectives
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.augment import configs
from tff_ssl.encoders import mlp


@pytest.fixture
def other_run(tmp_path):
  """The folder of a run of which only config.json is left."""
  folder = tmp_path / 'other'
  folder.mkdir()
  (folder / 'config.json').write_text(json.dumps({'flags': {'algorithm': 'dcco'}}))
  return folder


@pytest.mark.parametrize(
  'arguments, message',
  [
    (['--method=dcco', '--objective=temperature=1'], 'it is for fedavg_nt_xent only'),
    (
      ['--method=centralized_steps', '--objective=supervised:projector=8/8'],
      '--objective=projector is given with',
    ),
    (
      ['--method=centralized_steps', '--objective=cco', '--clients=local_steps=2'],
      '--clients=local_steps is given with',
    ),
    (['--encoder=norm=batch'], 'encoder_norm is batch; it must be group for DCCO and'),
    (['--task=digits', '--data_dir=/data'], '--data_dir is given with --task=digits'),
    (
      ['--runtime=in_process', '--runtime=worker:address=there:1'],
      '--runtime=address is given with --runtime=in_process; it is for worker only.',
    ),
    (
      ['--objective=spectral:off_diagonal_weight=3'],
      '--objective=off_diagonal_weight is given with --objective=spectral',
    ),
    (['--objective=mu=3'], '--objective=mu is given with --objective=cco'),
    (['--frozen_statistics'], 'frozen_statistics is True'),
    (['--method=fedsc', '--objective=cco'], '--objective is given with'),
    (
      ['--evaluation=supervised_steps=3'],
      'supervised_steps is given without --evaluation=baselines=true',
    ),
    (['--server=momentum=0.5'], 'momentum is 0.5; only sgd and lars'),
    (['--server=weight_decay=0.5'], 'weight_decay is 0.5; only lars and adamw'),
    (['--server=factor=0.5'], 'it is for steps only'),
    (['--rounds=5', '--server=warmup_rounds=5'], 'warmup_steps is 5'),
    (['--partition=dirichlet:examples=4'], 'lacks alpha'),
    (['--objective=projector=8/wide'], "projector is '8,wide'"),
    (
      ['--evaluation=methods=knn/svm'],
      "evaluation_methods has 'svm'; it must be one of knn",
    ),
    (['--evaluation=methods=linear,knn_k=5'], '--evaluation=knn_k is given, but'),
    (['--evaluation=label_fractions=0.1/2'], "label_fractions is '0.1,2'"),
    (['--evaluation=label_fractions='], "label_fractions is ''"),
    (['--objective=encoding_norm=-1'], 'encoding_norm is -1.0; it must be positive'),
    (['--objective=spectral:mu=0'], 'spectral_mu is 0.0; it must be'),
    (['--method=fedavg', '--objective=simclr:temperature=0'], 'temperature is 0.0'),
    (['--objective=off_diagonal_weight=-1'], 'off_diagonal_weight is -1.0; it must be'),
  ],
)
def test_wrong_flags_are_refused_before_data_are_loaded(
  tmp_path, monkeypatch, arguments, message
):
  monkeypatch.setattr(dcco.common, 'load_task', pytest.fail)
  folder = tmp_path / 'run'
  with pytest.raises(ValueError, match=re.escape(message)):
    in_process.call(dcco, f'--run_dir={folder}', *arguments)
  assert not folder.exists()


@pytest.mark.parametrize(
  'arguments, message',
  [
    (['--clients_per_round=9999'], 'clients_per_round is 9999'),
    (['--objective=projector=8/0'], 'widths is (8, 0); each must be at least 1'),
    (['--clients=learning_rate=0'], 'client_learning_rate is 0.0'),
    (
      ['--method=centralized_steps', '--objective=supervised:labels=0'],
      'fraction is 0.0',
    ),
  ],
)
def test_mismatched_flags_are_refused_before_the_folder_is_made(
  tmp_path, arguments, message
):
  folder = tmp_path / 'run'
  with pytest.raises(ValueError, match=re.escape(message)):
    in_process.call(dcco, *launch.SMALL, f'--run_dir={folder}', *arguments)
  assert not folder.exists()


@pytest.mark.parametrize('arguments', [[], ['--run_dir=']])
def test_run_dir_is_needed(arguments):
  with pytest.raises(ValueError, match='--run_dir is not given'):
    in_process.call(dcco, *arguments)


def test_folder_of_another_run_is_refused_by_the_flag_that_differs(other_run):
  before = sorted(other_run.iterdir())
  with pytest.raises(ValueError, match='is a run with --method=dcco, not --algo'):
    in_process.call(
      dcco, f'--run_dir={other_run}', '--method=fedavg', '--objective=cco'
    )
  assert sorted(other_run.iterdir()) == before


def test_folder_of_other_things_is_left_as_it_is(tmp_path):
  (tmp_path / 'thesis.tex').touch()
  with pytest.raises(ValueError, match=r"holds 'thesis\.tex' but no config\.json"):
    in_process.call(dcco, f'--run_dir={tmp_path}')
  assert [path.name for path in tmp_path.iterdir()] == ['thesis.tex']


def test_an_error_is_one_sentence_and_status_1(tmp_path):
  wrong = in_process.run(dcco, f'--run_dir={tmp_path}/run', '--objective=temperature=1')
  assert (wrong.status, wrong.stdout) == (1, '')
  assert wrong.stderr == (
    'Error: --objective=temperature is given with --method=dcco; '
    'it is for fedavg_nt_xent only.\n'
  )
  unknown = in_process.run(dcco, '--qqq')
  assert unknown.status == 1
  assert unknown.stderr.startswith('Error: There is no flag --qqq; --help lists')
  assert unknown.stderr.count('\n') == 1


def test_supervised_trains_on_flips_or_on_whole_views():
  encoder = mlp.build_encoder('mlp', (4,))
  found = {}
  for kind in ('flips', 'views'):
    with in_process.parsed(
      '--augmentation=simclr_no_blur', f'--supervised_augmentation={kind}'
    ):
      found[kind] = objectives.labelled(encoder, 2).augmentation
  assert found == {
    kind: configs.by_name(name)
    for kind, name in (('flips', 'flip'), ('views', 'simclr_no_blur'))
  }
