"""What a person may get wrong, and what is then said."""

import json
import re

import pytest

from binaries import dcco
from binaries.building import data
from tests.binaries import in_process
from tests.binaries import launch


@pytest.fixture
def other_run(tmp_path):
  """The folder of a run of which only config.json is left."""
  folder = tmp_path / 'other'
  folder.mkdir()
  (folder / 'config.json').write_text(
    json.dumps({'config': {'method': {'kind': 'dcco'}}})
  )
  return folder


@pytest.mark.parametrize(
  'arguments, message',
  [
    (['--objective=temperature=1'], 'the fields are projector, off_diagonal_weight'),
    (
      ['--method=centralized_steps', '--objective=supervised:projector=8/8'],
      "has 'projector=8/8'; the fields are labels.",
    ),
    (
      ['--method=centralized_steps', '--clients=local_steps=2'],
      '--clients is given with --method=centralized_steps',
    ),
    (
      ['--encoder=norm=batch'],
      'norm of --encoder is batch; it must be group for --met',
    ),
    (['--task=digits', '--data_dir=/data'], '--data_dir is given with --task=digits'),
    (
      ['--runtime=address=there:1'],
      "has 'address=there:1'; the fields are packs, part",
    ),
    (['--objective=spectral:off_diagonal_weight=3'], 'the fields are projector, mu.'),
    (['--objective=mu=3'], 'the fields are projector, off_diagonal_weight'),
    (['--method=fedsc', '--objective=cco'], 'fedsc in binaries.dcco has spectral.'),
    (['--server=momentum=0.5'], "has 'momentum=0.5'; the fields are"),
    (['--server=weight_decay=0.5'], "has 'weight_decay=0.5'; the fields are"),
    (['--server=factor=0.5'], 'it is for schedule=steps only'),
    (['--rounds=5', '--server=warmup_rounds=5'], 'warmup_steps is 5'),
    (['--partition=dirichlet:examples=4'], 'lacks alpha'),
    (
      ['--objective=projector=8/wide'],
      "has projector='8/wide'; it must be a whole num",
    ),
    (
      ['--evaluation=methods=knn/svm'],
      "methods of --evaluation has 'svm'; it must be one of knn",
    ),
    (['--evaluation=label_fractions=0.1/2'], 'it must be a number in (0, 1]'),
    (['--evaluation=label_fractions='], 'label_fractions of --evaluation is empty'),
    (['--objective=encoding_norm=-1'], 'it must be a number above 0, or none'),
    (['--objective=spectral:mu=0'], "has mu='0'; it must be a number above 0"),
    (['--objective=simclr:temperature=0'], "has temperature='0'; it must be a number"),
    (['--objective=off_diagonal_weight=-1'], 'it must be a number at least 0'),
  ],
)
def test_wrong_flags_are_refused_before_data_are_loaded(
  tmp_path, monkeypatch, arguments, message
):
  monkeypatch.setattr(data, 'load_task', pytest.fail)
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
  with pytest.raises(ValueError, match='is a run with method=dcco, not'):
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
