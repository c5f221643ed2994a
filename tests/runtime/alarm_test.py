"""Tests of the collapse alarm."""

import io

import pytest

from tff_ssl.runtime import alarm


def _said(spreads, threshold=0.05):
  stream = io.StringIO()
  watch = alarm.CollapseAlarm(threshold, stream)
  for round, spread in enumerate(spreads, start=1):
    watch.update(round, {} if spread is None else {'client_work/encoding_std': spread})
  return stream.getvalue().splitlines()


def test_it_warns_in_the_round_of_the_collapse():
  (line,) = _said([0.8, 0.06, 0.0123, 0.01])
  assert 'round 3' in line
  assert '0.0123' in line
  assert '0.05' in line


def test_it_warns_again_after_a_recovery():
  assert len(_said([0.04, 0.03, 0.2, 0.04])) == 2


@pytest.mark.parametrize('spreads', [[1.0, 0.05], [None, None], [0.5, 0.0, 0.5]])
def test_it_does_not_warn_of_what_is_no_collapse(spreads):
  assert not _said(spreads)


def test_rounds_without_examples_are_passed_over():
  assert len(_said([0.04, 0.0, None, 0.04])) == 1
