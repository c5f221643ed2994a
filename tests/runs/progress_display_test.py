"""The time left of a run, by a clock that the test sets."""

import io
import sys

import pytest

from tff_ssl.runs import progress_display


@pytest.fixture
def clock(monkeypatch):
  """The clock of the lines, as a list of one number."""
  now = [50.0]
  monkeypatch.setattr(progress_display.time, 'monotonic', lambda: now[0])
  return now


def test_time_left_excludes_evaluations(clock, capsys):
  shown = progress_display.create(20, 0)
  for round in range(1, 5):
    # A round of two seconds, and behind the second one a minute of evaluation.
    clock[0] += 2 + 60 * (round == 2)
    shown.update(round, {'loss': 1.0}, 60.0 * (round == 2))
  assert capsys.readouterr().err.splitlines() == [
    'round 2/20, loss 1, 2.00 s/round, 00:36 left',
    'round 4/20, loss 1, 2.00 s/round, 00:32 left',
  ]


def test_so_it_is_on_a_terminal(monkeypatch):
  class Terminal(io.StringIO):
    def isatty(self):
      return True

  now = [50.0]
  monkeypatch.setattr(sys, 'stderr', Terminal())
  shown = progress_display.create(20, 0)
  shown._bar._time = lambda: now[0]
  shown._bar.start_t = shown._bar.last_print_t = now[0]
  for round in range(1, 11):
    now[0] += 2 + 60 * (round == 5)
    shown.update(round, {}, 60.0 * (round == 5))
  left = shown._bar.format_dict
  shown.close()
  assert left['n'] == 10
  assert left['elapsed'] == pytest.approx(20)
