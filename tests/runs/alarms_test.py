"""Tests of the alarms."""

import contextlib
import io

import pytest

from tff_ssl.runs import alarms

_STDERR = contextlib.redirect_stderr


def _said(spreads, threshold=0.05):
  watch = alarms.CollapseAlarm(threshold)
  with _STDERR(io.StringIO()) as stream:
    for round, spread in enumerate(spreads, start=1):
      metrics = {} if spread is None else {'client_work/encoding_std': abs(spread)}
      # Minus zero: of a round without examples.
      metrics['client_work/examples'] = 0 if str(spread) == '-0.0' else 9
      watch.update(round, metrics)
  return stream.getvalue().splitlines()


def test_collapse_alarm_warns_in_the_round_of_the_collapse():
  (line,) = _said([0.8, 0.06, 0.0123, 0.01])
  assert 'round 3' in line
  assert '0.0123' in line
  assert '0.05' in line


def test_collapse_alarm_warns_again_after_recovery():
  assert len(_said([0.04, 0.03, 0.2, 0.04])) == 2


@pytest.mark.parametrize('spreads', [[1.0, 0.05], [None, None], [0.5, -0.0, 0.5]])
def test_collapse_alarm_is_silent_without_collapse(spreads):
  assert not _said(spreads)


def test_rounds_without_examples_are_passed_over():
  assert len(_said([0.04, -0.0, None, 0.04])) == 1


def test_a_spread_of_exactly_0_is_a_collapse():
  (line,) = _said([0.5, 0.0, 0.0])
  assert 'round 2' in line


def _mixing(rounds, all_kept='all are kept'):
  """Returns what is said of (mu, returning) of each round, and at the end."""
  watch = alarms.MixingAlarm(all_kept, 'none was kept')
  rows = [{'client_work/mu': mu, 'client_work/returning': r} for mu, r in rounds]
  with _STDERR(io.StringIO()) as during:
    for round, row in enumerate(rows, start=1):
      watch.update(round, row)
  text = [{name: str(value) for name, value in row.items()} for row in rows]
  with _STDERR(io.StringIO()) as after:
    alarms.MixingAlarm(all_kept, 'none was kept').finish(text)
  return during.getvalue().splitlines(), after.getvalue().splitlines()


def test_mixing_alarm_warns_once_of_mu_1():
  during, after = _mixing([(0.0, 0.0), (0.7, 1.0), (1.0, 1.0), (1.0, 1.0)])
  assert during == ['warning: in round 3 all are kept']
  assert not after


@pytest.mark.parametrize('rounds', [[(0.0, 0.0), (0.99, 1.0)], [(1.0, 0.0)]])
def test_mixing_alarm_is_silent_for_other_mus(rounds):
  assert not _mixing(rounds)[0]


def test_mixing_alarm_is_silent_for_requested_mu_1():
  assert not _mixing([(1.0, 1.0)], all_kept=None)[0]


def test_mixing_alarm_warns_at_the_end_of_mu_0():
  assert _mixing([(0.0, 0.0), (0.0, 1.0)]) == ([], ['warning: none was kept'])
  assert _mixing([(0.0, 0.0), (0.0, 1.0), (0.1, 1.0)]) == ([], [])
  assert _mixing([]) == ([], [])


def _nothing(rows):
  watch = alarms.NothingAlarm()
  with _STDERR(io.StringIO()) as stream:
    for round, row in enumerate(rows, start=1):
      watch.update(round, {f'client_work/{name}': n for name, n in row.items()})
  return stream.getvalue().splitlines()


def test_first_round_without_training_is_reported_with_reasons():
  nothing = {'examples': 0, 'empty_clients': 3, 'nonfinite_clients': 2}
  (line,) = _nothing([{'examples': 5, 'empty_clients': 3}, nothing, nothing])
  assert 'round 2' in line
  assert '3 without an example that enters the loss' in line
  assert '2 with something that is not finite' in line


def test_nothing_alarm_is_silent_if_rounds_learn():
  assert not _nothing([{'examples': 1, 'empty_clients': 3}, {'loss': 0.5}])


def test_outlying_and_nonfinite_clients_are_counted_once_until_there_are_none(capsys):
  watch = alarms.OutlierAlarm()
  rows = [(0, 0), (2, 0), (1, 3), (0, 0), (1, 0), (1, 1)]
  for round, (outlying, nonfinite) in enumerate(rows, start=1):
    counts = {'outlying_clients': outlying, 'nonfinite_clients': nonfinite}
    # Where no client counts, `NothingAlarm` says why.
    numbers = {'clients': 9, 'examples': int(round < 6), **counts}
    watch.update(round, {f'client_work/{name}': n for name, n in numbers.items()})
  far = 'clients came with an update over 64 times as long as the median'
  left_out = 'clients came with something that is not finite, left out'
  assert capsys.readouterr().err.splitlines() == [
    f'warning: in round 2 2 of 9 {far}',
    f'warning: in round 3 3 of 9 {left_out}',
    f'warning: in round 5 1 of 9 {far}',
  ]
