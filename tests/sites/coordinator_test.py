"""Whom the coordinator asks, and what it makes of answers, step by step.

Nobody waits: the clock is a list of what happens while the coordinator would.
"""

import functools
import json
import re

import numpy as np
import pytest

from tests.sites import parties
from tff_ssl.sites import chains
from tff_ssl.sites import coordinator
from tff_ssl.sites import messages

_OFFER = {'config': {'rounds': 2, 'sizes': (1, 2)}}
_VALUES = {'x': np.zeros([1], 'f4')}


@pytest.fixture
def world(tmp_path):
  return parties.World(tmp_path)


class _Game:
  """A coordinator, and sites that have joined."""

  def __init__(self, monkeypatch, world, joined=parties.NAMES, **settings):
    self.world, self._patch = world, monkeypatch
    self.ends = world.asker(**settings)
    self.masked = settings.get('masked', False)
    self.sites = {}
    self._asked = {}
    self.during(*(functools.partial(self.join, name) for name in joined))
    self.ends.open(_OFFER)

  def during(self, *steps):
    """Says what happens while the coordinator waits next."""
    self._patch.setattr(coordinator, 'time', parties.Clock(*steps))

  def late(self):
    coordinator.time.late()

  def join(self, name):
    self.sites[name] = self.world.answerer(name, self.masked)
    self.sites[name].offer()
    self.sites[name].join({'clients': 1})

  def hear(self, name):
    """Has a site read everything; returns the last question."""
    while (received := self.sites[name]._take()) is not None:
      self._asked[name] = received
    return self._asked[name]

  def answer(self, name, value, question=None):
    """Has a site answer a question, the newest one by default."""
    array = np.array([value], 'f4')
    self.sites[name].answer(question or self.hear(name), {'x': array})

  def decline(self, name, why='too few'):
    self.sites[name].refuse(why, self.hear(name).digest)

  def answers(self, **values):
    """Returns the step in which sites answer."""

    def step():
      for name, value in values.items():
        self.answer(name, value)

    return step

  def ask(self, round=1, exchange='one', first=True, check=bool):
    body = {'round': round, 'exchange': exchange}
    got = self.ends.ask(body, _VALUES, first, check)
    return {name: arrays['x'].item() for name, arrays in got.items()}

  def said(self, pattern):
    return sum(bool(re.search(pattern, text)) for text in self.world.sentences())


@pytest.fixture
def game(monkeypatch, world):
  return _Game(monkeypatch, world, fewest=2)


def test_all_answer_in_the_order_of_their_names(game):
  game.during(game.answers(south=3, east=1), game.answers(north=2))
  assert [*game.ask().items()] == [('east', 1), ('north', 2), ('south', 3)]
  question = game.hear('east').message
  assert question.body == {'round': 1, 'exchange': 'one', 'sites': [*parties.NAMES]}
  np.testing.assert_array_equal(question.arrays['x'], _VALUES['x'])


def test_who_is_late_is_left_out_until_it_is_back(game):
  game.during(game.answers(east=1, north=2), game.late)
  assert game.ask() == {'east': 1, 'north': 2}
  assert game.ends.expected == ('east', 'north')
  question = game.hear('south')
  # The late answer comes in the second exchange, and the site is back in it.
  game.during(
    lambda: game.answer('south', 3, question),
    lambda: game.sites['south'].be_back({'clients': 1}),
    game.answers(east=4, north=5),
  )
  assert game.ask(exchange='two', first=False) == {'east': 4, 'north': 5}
  assert game.said(r'south answered a question that is closed to it \(round 1\)') == 1
  game.during(game.answers(east=1, north=2, south=3))
  assert game.ask(round=2) == {'east': 1, 'north': 2, 'south': 3}


def test_a_site_lost_in_the_second_exchange_begins_the_round_again(game):
  game.during(game.answers(east=1, north=2, south=3))
  game.ask()
  game.during(game.answers(east=4, south=6), game.late)
  with pytest.raises(coordinator.AgainError):
    game.ask(exchange='two', first=False)
  game.during(game.answers(east=1, south=3))
  assert game.ask() == {'east': 1, 'south': 3}


def test_with_fewer_than_the_fewest_the_coordinator_waits_and_says_so_once(game):
  game.during(game.answers(east=1), game.late, game.late, game.answers(south=3))
  assert game.ask() == {'east': 1, 'south': 3}
  assert game.said(r'Waiting for north and south \(one\): 1 of at least 2 sites') == 1


def test_a_round_that_waits_begins_again_with_a_site_that_is_back(game):
  game.during(game.answers(east=1, north=2), game.late)
  game.ask()
  game.during(
    game.answers(east=1), game.late, lambda: game.sites['south'].be_back({'clients': 1})
  )
  with pytest.raises(coordinator.AgainError):
    game.ask(round=2)
  game.during(game.answers(east=1, south=3), game.late)
  assert game.ask(round=2) == {'east': 1, 'south': 3}
  assert game.ends.expected == ('east', 'south')


def test_a_declined_round_goes_on_without_the_site_and_the_next_asks_it(game):
  game.during(lambda: game.decline('north'), game.answers(east=1, south=3))
  assert game.ask() == {'east': 1, 'south': 3}
  assert game.said('north is left out of this round: too few') == 1
  game.during(game.answers(east=4, south=6))
  assert game.ask(exchange='two', first=False) == {'east': 4, 'south': 6}
  game.during(game.answers(east=1, north=2, south=3))
  assert game.ask(round=2) == {'east': 1, 'north': 2, 'south': 3}


def test_too_many_that_decline_end_the_run_in_a_sentence(game):
  game.during(
    lambda: game.decline('north'), lambda: game.decline('south'), game.answers(east=1)
  )
  said = '1 sites are left in exchange one, without north and south; there must be at'
  with pytest.raises(ValueError, match=said):
    game.ask()


def test_sums_that_are_none_leave_a_site_out(game):
  def check(arrays):
    if arrays['x'] == 2:
      raise ValueError('The arrays are wrong.')

  game.during(game.answers(east=1, north=2, south=3))
  assert game.ask(check=check) == {'east': 1, 'south': 3}
  assert game.said('north is left out of this round: The arrays are wrong') == 1


def _send(game, name, value, question):
  """Has a site send what `site.Ends` would not."""
  game.sites[name]._outbox.send(
    game.ends.run,
    messages.SUMS,
    {'round': 1, 'exchange': 'one'},
    {'x': np.array([value], 'f4')},
    question.digest,
  )


def test_the_first_answer_counts_and_nobody_answers_unasked(game):
  game.during(game.answers(east=1, north=2), game.late)
  game.ask()
  # South is not asked in this round, and is not among the fewest.
  game.during(
    lambda: _send(game, 'south', 9, game.hear('south')),
    lambda: _send(game, 'east', 1, game.hear('east')),
    lambda: _send(game, 'east', 8, game.hear('east')),
    game.answers(north=2),
  )
  assert game.ask(round=2) == {'east': 1, 'north': 2}


def test_what_is_not_signed_waits_for_the_right_one(game):
  place = game.world.box.path / 'east' / '00000002.message'
  forged = place.with_name('forged')

  def forge():
    game.answer('east', 1)
    forged.write_bytes(place.read_bytes()[:-1] + b'x')
    place.rename(place.with_name('right'))
    forged.rename(place)

  game.during(
    forge,
    game.answers(north=2, south=3),
    lambda: None,
    lambda: place.with_name('right').replace(place),
  )
  assert game.ask() == {'east': 1, 'north': 2, 'south': 3}
  assert game.said('Refused: Message 2 of east is not signed by east') == 1


def test_enough_sites_join_and_others_are_waited_for_until_the_deadline(
  monkeypatch, world
):
  game = _Game(monkeypatch, world, joined=['east', 'south'], fewest=2)
  assert game.ends.expected == ('east', 'south')
  game.during(lambda: game.join('north'), game.answers(east=1, south=3))
  assert game.ask() == {'east': 1, 'south': 3}
  assert game.ends.expected == parties.NAMES


def test_who_has_not_joined_is_named(monkeypatch, world):
  ends = world.asker(deadline=3.0)
  with pytest.raises(TimeoutError):
    monkeypatch.setattr(coordinator, 'time', parties.Clock())
    ends.open(_OFFER)
  sentence = 'Waiting for east and north and south to join.'
  assert world.sentences().count(sentence) == 1


def _refuse(world, name, why):
  ends = world.answerer(name)
  ends.offer()
  ends.refuse(why)
  return ends


def test_a_run_that_too_many_refuse_is_not_begun(monkeypatch, world):
  ends = world.asker(fewest=2)
  clock = parties.Clock(
    lambda: _refuse(world, 'east', 'another version'),
    lambda: _refuse(world, 'north', 'no'),
  )
  monkeypatch.setattr(coordinator, 'time', clock)
  with pytest.raises(ValueError, match='is refused by east and north, so that'):
    ends.open(_OFFER)
  assert 'east refuses: another version' in world.sentences()


def test_a_site_that_has_refused_may_join_after_all(monkeypatch, world):
  def think_again():
    world.answerer('east').offer()
    again = world.answerer('east')
    again.offer()
    again.join({'clients': 2})
    again.join({'clients': 2})

  steps = [functools.partial(_refuse, world, 'east', 'no'), think_again]
  monkeypatch.setattr(coordinator, 'time', parties.Clock(*steps))
  ends = world.asker(names=['east'])
  with pytest.raises(ValueError, match='is refused by east'):
    ends.open(_OFFER)
  ends.open(_OFFER)
  assert ends.joined['east']['clients'] == 2
  assert world.box.numbers('east') == [1, 2]


def test_a_coordinator_that_begins_again_knows_who_has_joined(game):
  game.during(game.answers(east=1, north=2, south=3))
  game.ask()
  again = game.world.asker(fewest=2)
  again.open(_OFFER)
  assert (again.run, again.expected) == (game.ends.run, parties.NAMES)
  assert len(again._inbox._links) == 0
  # Its questions go on where they were; answers to those of before are not used.
  game.ends = again
  game.during(game.answers(east=4, north=5, south=6))
  assert game.ask() == {'east': 4, 'north': 5, 'south': 6}
  assert game.said(r'answered a question that is closed to it') == 3


def test_another_offer_than_sites_have_agreed_to_is_refused(game):
  again = game.world.asker(fewest=2)
  with pytest.raises(
    ValueError, match='has an offer that differs in config; a run goes'
  ):
    again.open({'config': {'rounds': 3, 'sizes': [1, 2]}})
  (game.world.box.path / parties.COORDINATOR / '00000001.message').unlink()
  with pytest.raises(ValueError, match=r'The offer has gone from .*box; it'):
    again.open(_OFFER)


def test_a_new_run_does_not_go_on_with_the_mailbox_of_another(game, tmp_path):
  log = game.world.folder(parties.COORDINATOR) / chains.OUTBOX
  log.unlink()
  # A kill between the offer and its line.
  assert game.world.asker(fewest=2).run == game.ends.run
  game.during(game.answers(east=1, north=2, south=3))
  game.ask()
  log.unlink()
  with pytest.raises(ValueError, match='has messages of another run; a run must have'):
    game.world.asker(fewest=2)


def test_messages_that_nobody_needs_are_dropped(game):
  for round in range(1, 6):
    for exchange in ('one', 'two'):
      game.during(game.answers(east=1, north=2, south=3))
      game.ask(round, exchange, first=exchange == 'one')
    game.ends.close_round(round)
    for ends in game.sites.values():
      ends.end_round()
  # The offer, and rounds 3 to 5: the next question says that those of 3 go.
  assert game.world.box.numbers(parties.COORDINATOR) == [1, 6, 7, 8, 9, 10, 11]
  assert game.world.box.numbers('east') == [1, 8, 9, 10, 11]
  game.ends.end({})
  game.ends.end({})
  assert game.world.box.numbers(parties.COORDINATOR) == [1, 8, 9, 10, 11, 12]
  read = json.loads((game.world.folder(parties.COORDINATOR) / 'read.json').read_text())
  assert {name: number for name, (number, _) in read.items()} == dict.fromkeys(
    parties.NAMES, 11
  )


def test_masks_are_those_of_the_sites_of_the_question(monkeypatch, world):
  game = _Game(monkeypatch, world, fewest=2, masked=True)
  game.during(game.answers(east=1, north=2), game.late)
  # A total without one of them is none: the round begins again.
  with pytest.raises(coordinator.AgainError):
    game.ask()
  sums = {}
  game.during(game.answers(east=1, north=2))
  body = {'round': 1, 'exchange': 'one'}
  got = game.ends.ask(body, _VALUES, True, sums.update)
  assert [*got] == ['east', 'north']
  total = sum(int(own['x'].item()) for own in got.values()) % 2**64
  assert total == 3 * 2**32
  assert game.hear('east').message.body['masks'].keys() == {'east', 'north'}


def test_a_site_whose_key_for_masks_is_none_does_not_join(monkeypatch, world):
  def join(name, key):
    ends = world.answerer(name)
    ends.offer()
    ends._outbox.send(ends.run, messages.JOIN, {'mask': key}, answers=ends.run)

  steps = [
    functools.partial(join, 'east', None),
    functools.partial(join, 'north', ['00' * 32, '00' * 64]),
  ]
  monkeypatch.setattr(coordinator, 'time', parties.Clock(*steps))
  ends = world.asker(masked=True)
  with pytest.raises(TimeoutError):
    ends.open(_OFFER)
  assert not ends.joined
  for name in ('east', 'north'):
    said = f'{name} cannot join: The key of {name} for masks is not one that'
    assert sum(text.startswith(said) for text in world.sentences()) == 1


def test_a_key_that_is_missing_is_named_at_once(world):
  with pytest.raises(ValueError, match=r'There is no key west\.pub'):
    world.asker(names=['east', 'west'])
