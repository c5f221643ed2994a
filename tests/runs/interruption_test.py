"""Signals to a run whose round takes long."""

import os
import signal
import time

import pytest

from tests.execution import counting
from tff_ssl.runs import interruption


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_round_that_takes_long_is_abandoned(tmp_path, capsys, monkeypatch, number):
  monkeypatch.setattr(interruption, '_PATIENCE', 0.2)
  before = signal.getsignal(signal.SIGALRM)

  def hang():
    os.kill(os.getpid(), number)
    time.sleep(60)

  started = time.monotonic()
  with pytest.raises(interruption.Interrupted) as stopped:
    counting.run(tmp_path, counting.Counting(hang, at=3), checkpoint_every=100)
  assert time.monotonic() - started < 10
  assert stopped.value.code == 128 + number
  assert 'stopped after round 2 of 6' in capsys.readouterr().err
  assert signal.getsignal(signal.SIGALRM) is before
  assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
  assert counting.run(tmp_path, counting.Counting())['count'] == 6


def test_last_save_is_not_interrupted(monkeypatch):
  monkeypatch.setattr(interruption, '_PATIENCE', 0.05)
  seen = []
  before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
  with interruption.Interruption() as signals:
    os.kill(os.getpid(), signal.SIGTERM)
    signals.end_countdown()
    time.sleep(0.2)
  # Nor is it forgotten.
  assert seen == [signals.number] == [signal.SIGTERM]
  signal.signal(signal.SIGTERM, before)
