"""What the coordinator tells sites of rounds that count, and what it adds up.

Its ends are a stand-in, which says who answers: no file is written but its table.
"""

import numpy as np
import pytest

from tests.sites import plain_parts as plain
from tff_ssl.sites import coordinator
from tff_ssl.sites import masks
from tff_ssl.sites import site_rounds


class _Ends:
  """Sites answer at once: a list for each attempt, with one that is lost within it."""

  def __init__(self, *who, masked=False):
    self.who, self.bodies, self.log, self.masked = list(who), [], [], masked
    self.names = tuple(plain.CLIENTS)
    self._known, self._now = {}, []

  def open(self, offer):
    self.log.append(('open', offer))

  def close_round(self, round):
    self.log.append(('close', round))

  def end(self, body):
    self.log.append(('end', body))

  def ask(self, body, values, first, check):
    self.bodies.append(body)
    if first:
      self._known, self._now = {}, self.who.pop(0)
    elif 'lost' in self._now:
      raise coordinator.AgainError
    self._known |= values
    exchange = plain.build().exchanges[body['exchange']]
    answers, names = {}, [name for name in self._now if name != 'lost']
    for name in names:
      clients = plain.CLIENTS[name]
      # A client's state counts the exchanges.
      own = [float(not first)] * len(clients)
      sums = exchange.partial(self._known, own, clients).sums
      if self.masked:
        others = [each for each in names if each != name]
        sums = masks.mask(sums, name, {each: bytes(32) for each in others})
      check(sums)
      answers[name] = sums
    return answers


def _rounds(tmp_path, *who, masked=False, after=0):
  ends = _Ends(*who, masked=masked)
  rounds = site_rounds.SiteRounds(plain.build(), ends, {'rounds': 9})
  rounds.resume(tmp_path, after)
  return rounds, ends


def _told(ends):
  """Returns what the first exchange of each round tells of counts."""
  return [
    (body['counted'], body['oldest'])
    for body in ends.bodies
    if body['exchange'] == 'mean'
  ]


def _every(others, south):
  return {'east': others, 'north': others, 'south': south}


def test_each_site_is_told_its_own_rounds(tmp_path):
  everyone, two = ['east', 'north', 'south'], ['east', 'north']
  rounds, ends = _rounds(tmp_path, everyone, two, two, everyone, two)
  state = rounds.initialize()
  for round in range(1, 6):
    state = rounds.next(state, round).state
    # The round loop keeps the checkpoints of this and the round before.
    rounds.saved(round - 1)
  assert _told(ends) == [
    ({}, {}),
    # Nobody can go back to round 1 yet: round 0 may come again, and its states.
    (_every(1, 1), {}),
    (_every(2, 1), _every(1, 1)),
    # Of round 2, which is the oldest to come again, south has the states of 1.
    (_every(3, 1), _every(2, 1)),
    (_every(4, 4), _every(3, 1)),
  ]


def test_a_run_that_goes_back_tells_what_counted_then(tmp_path):
  everyone, two = ['east', 'north', 'south'], ['east', 'north']
  rounds, _ = _rounds(tmp_path, everyone, two, everyone)
  state = rounds.initialize()
  for round in (1, 2, 3):
    state = rounds.next(state, round).state
  assert plain.counted(tmp_path) == [everyone, two, everyone]
  again, ends = _rounds(tmp_path, everyone, after=2)
  again.next(state, 3)
  both = {'east': 2, 'north': 2, 'south': 1}
  assert _told(ends) == [(both, both)]
  assert ends.log == [('open', {'rounds': 9}), ('close', 3)]
  again.finish()
  assert ends.log[-1] == ('end', {})


@pytest.mark.parametrize('masked', [False, True])
def test_the_sums_of_those_that_answer_are_a_round(tmp_path, masked):
  names = ['east', 'south']
  rounds, _ = _rounds(tmp_path, names, masked=masked)
  state, metrics = rounds.next(rounds.initialize(), 1)
  (expected,) = plain.alone(1, names)
  assert state == expected
  assert metrics['client_work']['clients'] == 5
  assert metrics['sites'] == {'counted': 2, 'absent': 1}


def test_a_round_that_begins_again_begins_with_the_state_before_it(tmp_path):
  names = ['east', 'south']
  rounds, ends = _rounds(tmp_path, ['east', 'north', 'lost'], names)
  state, _ = rounds.next(rounds.initialize(), 1)
  assert [state] == plain.alone(1, names)
  exchanges = [body['exchange'] for body in ends.bodies]
  assert exchanges == ['mean', 'train', 'mean', 'train']
  assert plain.counted(tmp_path) == [names]


@pytest.mark.parametrize('masked', [False, True])
def test_arrays_that_are_no_sums_are_refused(tmp_path, masked):
  dtype = np.uint64 if masked else np.float32
  right = {'weight': np.zeros([], dtype), 'moved': np.zeros([2], dtype)}
  rounds, ends = _rounds(tmp_path, masked=masked)
  seen = []

  def ask(body, values, first, check):
    check(right)
    for wrong in (
      {'weight': right['weight']},
      {**right, 'more': right['weight']},
      {**right, 'moved': np.zeros([3], dtype)},
      {**right, 'moved': np.zeros([2], np.float64)},
    ):
      with pytest.raises(ValueError, match=r'arrays|argument'):
        check(wrong)
      seen.append(wrong)
    raise KeyboardInterrupt

  ends.ask = ask
  with pytest.raises(KeyboardInterrupt):
    rounds.next(rounds.initialize(), 1)
  assert len(seen) == 4
