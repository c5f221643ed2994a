"""Workers that say nothing, as real ones that are stopped."""

import os
import signal
import time

import pytest
import tensorflow_federated as tff

from tests.execution import processes
from tff_ssl.execution import contexts
from tff_ssl.execution import worker_health
from tff_ssl.execution import worker_process


def _three():
  return tff.federated_computation(lambda: tff.federated_value(3, tff.SERVER))()


@pytest.fixture
def impatient(monkeypatch):
  for name, seconds in (('_EVERY', 0.1), ('_PATIENCE', 0.3), ('_SILENT', 0.5)):
    monkeypatch.setattr(worker_health, name, seconds)


def test_a_worker_that_is_stopped_ends_the_call_that_waits_for_it(impatient):
  with contexts.local(1, optimize_graphs=False) as opened:
    assert _three() == 3
    os.kill(opened.worker_pid, signal.SIGSTOP)
    before = time.monotonic()
    for _ in range(2):
      with pytest.raises(worker_process.LostError, match='has not answered for'):
        _three()
    assert time.monotonic() - before < 10


def test_a_worker_that_answers_is_not_given_up(impatient, worker_context):
  silent = []
  watch = worker_health.Watch(worker_context.address, silent.append)
  time.sleep(1.5)
  watch.stop()
  assert silent == []


def test_a_worker_that_is_gone_is_given_up_once(impatient):
  silent = []
  worker = worker_process.Worker(1, 1)
  watch = worker_health.Watch(worker.address, silent.append)
  worker.stop()
  processes.wait_for(lambda: silent)
  time.sleep(0.5)
  watch.stop()
  assert len(silent) == 1
  assert silent[0] > 0.5
