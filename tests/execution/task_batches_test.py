"""Who is given which part of a round, and what becomes of those that are lost."""

import pytest

from tff_ssl.execution import task_batches

_HOSTS = ('a', 'b')


def _batch(count=2):
  return task_batches.Batch([lambda k=k: k for k in range(count)], max_losses=2)


def _take(parts, host, connected=_HOSTS, silent=(), now=0.0):
  return parts.take(host, connected, silent, now, patience=10.0)


def test_results_are_in_the_order_of_the_tasks():
  parts = _batch(3)
  assert [_take(parts, host) for host in ('a', 'b', 'a')] == [0, 1, 2]
  for place in (2, 0, 1):
    assert not parts.is_done
    parts.succeeded(place, 'b' if place == 1 else 'a', f'result {place}', 1.0)
  assert parts.is_done
  assert parts.results() == ['result 0', 'result 1', 'result 2']
  assert parts.repeated == 0


def test_a_lost_task_is_given_to_the_next_host():
  parts = _batch()
  assert _take(parts, 'a') == 0
  parts.lost(0, 'a')
  assert [_take(parts, 'b'), _take(parts, 'b')] == [0, 1]
  assert parts.repeated == 1


def test_a_task_is_not_given_again_to_a_host_that_failed_in_it():
  parts = _batch(1)
  assert _take(parts, 'a') == 0
  parts.failed(0, 'a', ValueError('garbage'))
  assert _take(parts, 'a') is None
  assert _take(parts, 'b') == 0
  parts.succeeded(0, 'b', 'right', 1.0)
  assert parts.results() == ['right']


def test_with_no_other_host_it_is_tried_again_and_then_is_an_error():
  parts = _batch(1)
  for _ in range(task_batches.TRIES):
    assert not parts.is_done
    assert _take(parts, 'a', connected=('a',)) == 0
    parts.failed(0, 'a', ValueError('wrong shape'))
  assert parts.is_done
  with pytest.raises(RuntimeError, match='Part 1 of 1 failed on a, a, a: ValueError'):
    parts.results()


def test_a_task_that_loses_every_host_is_blamed_in_the_end():
  parts = _batch(1)
  for _ in range(3):
    assert not parts.is_done
    assert _take(parts, 'a') == 0
    parts.lost(0, 'a')
  with pytest.raises(RuntimeError, match=r'sent out 3 times.*too large for the hosts'):
    parts.results()


def test_an_idle_host_takes_over_from_a_silent_one_and_the_first_result_counts():
  parts = _batch(1)
  assert _take(parts, 'a') == 0
  assert _take(parts, 'b', now=1.0) is None
  assert _take(parts, 'b', silent=['a'], now=1.0) == 0
  # Once more is of no use.
  assert _take(parts, 'c', connected=('a', 'b', 'c'), silent=['a', 'b']) is None
  assert parts.succeeded(0, 'b', 'first', 2.0) == {'a'}
  assert parts.succeeded(0, 'a', 'second', 3.0) == set()
  parts.lost(0, 'a')
  assert parts.results() == ['first']


def test_an_idle_host_takes_over_from_one_that_is_slower_by_far_than_others():
  parts = _batch(2)
  assert [_take(parts, 'a'), _take(parts, 'b')] == [0, 1]
  # All may be slow: nothing is done yet.
  assert _take(parts, 'c', now=50.0) is None
  parts.succeeded(1, 'b', 1, 20.0)
  assert _take(parts, 'b', now=59.0) is None
  assert _take(parts, 'b', now=61.0) == 0


def test_the_loss_of_one_of_two_that_are_at_it_is_no_matter():
  parts = _batch(1)
  assert _take(parts, 'a') == 0
  assert _take(parts, 'b', silent=['a']) == 0
  parts.lost(0, 'a')
  assert _take(parts, 'c') is None
  parts.lost(0, 'b')
  assert _take(parts, 'c') == 0
