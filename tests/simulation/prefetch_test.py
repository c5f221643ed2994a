import os
import signal
import threading

import pytest

from tests.binaries import launch
from tests.execution import counting
from tff_ssl.runs import interruption
from tff_ssl.simulation import prefetch

# Reached only by a test that fails.
PATIENCE = 30.0


def threads():
  return [t.name for t in threading.enumerate() if t.name.startswith('prefetch')]


def recording(calls):
  """A cohort is its round's number, and calls are recorded."""

  def cohort_fn(round):
    calls.append(round)
    return round

  return cohort_fn


def test_a_cohort_is_prepared_while_the_round_before_it_runs():
  started, running, overlapped = threading.Event(), threading.Event(), []

  def cohort_fn(round):
    if round == 2:
      started.set()
      # If round 1 waited for it, it would wait in vain.
      overlapped.append(running.wait(PATIENCE))
    return round

  with prefetch.Prefetcher(cohort_fn, 2) as cohorts:
    assert cohorts(1) == 1
    # If it began with round 2, this would be in vain.
    assert started.wait(PATIENCE)
    running.set()
    assert cohorts(2) == 2
  assert overlapped == [True]


def test_the_loop_prepares_ahead(tmp_path):
  prepared = {round: threading.Event() for round in range(1, 5)}

  class Waiting(counting.Counting):
    def next(self, state, cohort):
      if cohort < 4:
        assert prepared[cohort + 1].wait(PATIENCE)
      return super().next(state, cohort)

  def cohort_fn(round):
    prepared[round].set()
    return round

  counting.run(tmp_path, Waiting(), 4, cohort_fn)


def test_no_more_than_one_is_prepared_ahead():
  calls, prepared = [], threading.Event()

  def cohort_fn(round):
    calls.append(round)
    if round == 4:
      prepared.set()
    return round

  with prefetch.Prefetcher(cohort_fn, 9) as cohorts:
    cohorts(3)
    assert prepared.wait(PATIENCE)
  assert calls == [3, 4]


@pytest.mark.parametrize('rounds', [[1, 3, 2], [2, 2], [5, 4, 1]])
def test_any_order_gives_the_same_cohorts(rounds):
  with prefetch.Prefetcher(lambda round: -round, 5) as cohorts:
    assert [cohorts(round) for round in rounds] == [-round for round in rounds]


def fail_at_3(round):
  if round == 3:
    raise ZeroDivisionError('in round 3')
  return round


def test_an_error_is_raised_at_its_round():
  with prefetch.Prefetcher(fail_at_3, 5) as cohorts:
    assert [cohorts(1), cohorts(2)] == [1, 2]
    with pytest.raises(ZeroDivisionError, match='in round 3'):
      cohorts(3)
    assert cohorts(4) == 4


def test_an_error_of_a_round_that_does_not_come_is_none():
  with prefetch.Prefetcher(fail_at_3, 5) as cohorts:
    assert cohorts(2) == 2


def test_the_loop_keeps_the_rounds_before_an_error(tmp_path):
  with pytest.raises(ZeroDivisionError):
    counting.run(tmp_path, counting.Counting(), 6, fail_at_3, checkpoint_every=100)
  assert (tmp_path / 'checkpoints' / 'round_00000002.npz').exists()
  assert [row['round'] for row in launch.table(tmp_path)] == ['1', '2']
  assert threads() == []


def test_a_resumed_run_prepares_its_own_rounds_alone(tmp_path):
  first, second, third = [], [], []
  counting.run(tmp_path, counting.Counting(), 2, recording(first))
  counting.run(tmp_path, counting.Counting(), 5, recording(second))
  counting.run(tmp_path, counting.Counting(), 5, recording(third))
  assert (first, second, third) == ([1, 2], [3, 4, 5], [])


@pytest.mark.parametrize('signals', [0, 1, 2], ids=['end', 'ctrl-c', 'abandon'])
def test_the_loop_leaves_no_thread(tmp_path, signals):
  seen = []

  def event():
    seen.extend(threads())
    for _ in range(signals):
      os.kill(os.getpid(), signal.SIGINT)

  algorithm = counting.Counting(event, at=3)
  if signals:
    with pytest.raises(interruption.Interrupted):
      counting.run(tmp_path, algorithm)
  else:
    counting.run(tmp_path, algorithm)
  assert len(seen) == 1
  assert threads() == []


def test_closing_waits_for_what_is_being_prepared():
  started, release = threading.Event(), threading.Event()

  def cohort_fn(round):
    if round == 2:
      started.set()
      release.wait(PATIENCE)
    return round

  cohorts = prefetch.Prefetcher(cohort_fn, 2)
  cohorts(1)
  assert started.wait(PATIENCE)
  closer = threading.Thread(target=cohorts.close)
  closer.start()
  assert closer.is_alive()
  release.set()
  closer.join(PATIENCE)
  assert not closer.is_alive()
  assert threads() == []
  cohorts.close()
  with pytest.raises(RuntimeError):
    cohorts(2)


def test_the_thread_starts_with_the_first_cohort():
  with prefetch.Prefetcher(fail_at_3, 5):
    assert threads() == []
