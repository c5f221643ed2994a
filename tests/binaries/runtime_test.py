"""Programs that execute computations without a worker."""

import json

import psutil
import pytest

from binaries import evaluate
from tests.binaries import in_process
from tests.binaries import take_away
from tff_ssl.execution import contexts


def test_a_run_in_this_process_is_evaluated_without_a_worker(tmp_path, monkeypatch):
  kept = tmp_path / 'run'
  take_away.make(kept, '--objective=simclr:projector=8/8', '--encoder=norm=group')
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
