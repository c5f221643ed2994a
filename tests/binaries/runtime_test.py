"""Programs that execute computations without a worker."""

import json

import numpy as np
import psutil
import pytest

from binaries import dcco
from binaries import evaluate
from binaries import fedavg_ssl
from tests.binaries import in_process
from tests.binaries import launch
from tests.binaries import take_away
from tff_ssl.execution import contexts

_FLAGS = (
  *launch.SMALL,
  launch.APART,
  '--objective=projector=8/8',
  '--evaluation=methods=knn',
)


_SIMCLR = ('--objective=simclr:projector=8/8', '--encoder=norm=group')


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A run of two rounds, which starts no process."""
  folder = tmp_path_factory.mktemp('in_process') / 'run'
  before = set(psutil.Process().children())
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(contexts, 'local', pytest.fail)
    ended = _run(folder, '--rounds=2')
  assert ended.status == 0, ended.stderr
  assert set(psutil.Process().children()) <= before
  return ended


def _run(folder, *flags):
  return in_process.run(dcco, *_FLAGS, *flags, f'--run_dir={folder}')


@pytest.mark.long
def test_its_numbers_are_those_of_a_worker(run, tmp_path):
  worker = _run(tmp_path / 'run', '--runtime=worker', '--rounds=2')
  assert worker.status == 0, worker.stderr
  for row, expected in zip(
    launch.table(run.folder), launch.table(worker.folder), strict=True
  ):
    assert row.keys() == expected.keys()
    for name in row:
      if name.startswith('client_work'):
        # Adam's second step enlarges what differs in the last digits of the first.
        np.testing.assert_allclose(float(row[name]), float(expected[name]), rtol=2e-3)


@pytest.mark.long
def test_its_memory_is_that_of_the_driver(run):
  row = launch.table(run.folder, 'system.csv')[-1]
  assert float(row['driver_mib']) > 0
  assert float(row['cpu_seconds']) > 0
  assert 'worker_mib' not in row


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
