"""Programs that execute computations without a worker."""

import json

import psutil
import pytest

from binaries import evaluate
from binaries import fedavg_ssl
from tests.binaries import in_process
from tests.binaries import launch
from tests.binaries import take_away
from tff_ssl.execution import contexts

_SIMCLR = ('--objective=simclr:projector=8/8', '--encoder=norm=group')


@pytest.fixture(scope='module')
def kept(tmp_path_factory):
  """The folder of a run in this process, made without the rounds."""
  folder = tmp_path_factory.mktemp('kept') / 'run'
  take_away.make(folder, *_SIMCLR)
  return folder


def test_in_process_runs_do_not_resume_with_a_worker(kept):
  """The last digits of its numbers are others."""
  own = '--rounds=2', '--seed=0', *launch.SMALL, *_SIMCLR
  said = 'is a run with runtime=in_process, not runtime=worker: '
  with pytest.raises(ValueError, match=said):
    in_process.call(fedavg_ssl, *own, '--runtime=worker', f'--run_dir={kept}')


def test_it_is_evaluated_without_a_worker(kept, monkeypatch):
  monkeypatch.setattr(contexts, 'local', pytest.fail)
  before = set(psutil.Process().children())
  in_process.finished(
    evaluate,
    f'--run={kept}',
    '--evaluation=methods=federated_linear,label_fractions=1',
    '--federated=rounds=2',
  )
  assert set(psutil.Process().children()) <= before
  found = json.loads((kept / 'evaluation.json').read_text())
  assert any('federated_linear' in name for name in found)
