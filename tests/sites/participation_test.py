"""A site's part in a run: what it answers, remembers and refuses."""

import json

import numpy as np
import pytest

from tests.sites import parties
from tests.sites import plain_parts as plain
from tff_ssl.sites import coordinator
from tff_ssl.sites import messages
from tff_ssl.sites import participation

pytestmark = pytest.mark.usefixtures('plain_parts')


@pytest.fixture
def world(tmp_path):
  return parties.World(tmp_path, ['north', 'south'])


class _Coordinator:
  """Writes what a coordinator would, all of it before the site reads."""

  def __init__(self, world):
    self._outbox = world.outbox(parties.COORDINATOR)
    self._inbox = world.inbox(parties.COORDINATOR)
    self.run = self._outbox.send('', messages.OFFER, {'rounds': 2})

  def asks(self, round=1, exchange='mean', value=1.0, **body):
    defaults = {'sites': ['north'], 'counted': {}, 'oldest': {}}
    name = {'mean': 'model', 'train': 'mean'}[exchange]
    return self._outbox.send(
      self.run,
      messages.VALUES,
      {**defaults, 'round': round, 'exchange': exchange, **body},
      {name: np.float32(value)},
    )

  def asks_all(self, round=1, **body):
    return [self.asks(round, exchange, **body) for exchange in ('mean', 'train')]

  def ends(self):
    self._outbox.send(self.run, messages.END, {})

  def got(self):
    """Returns the kind, what it answers, and the sums of each new message of north."""
    got = []
    while (received := self._inbox.take('north', self.run)) is not None:
      message = received.message
      sums = [float(x) for x in message.arrays.get('moved', ())]
      got.append((message.kind, message.answers, sums))
    return got


@pytest.fixture
def asking(world, monkeypatch):
  # A site that waits for more than there is has not done what it should.
  monkeypatch.setattr(coordinator, 'time', parties.Clock())
  return _Coordinator(world)


def _to_the_end(world, asking, cohort_fn=None):
  """Ends the run, in which north then takes part."""
  asking.ends()
  plain.take_part(world.answerer('north'), 'north', cohort_fn)


def test_a_site_joins_answers_and_ends(world, asking):
  questions = asking.asks_all(1, value=2.0)
  _to_the_end(world, asking)
  assert asking.got() == [
    ('join', asking.run, []),
    # The client has 5, its state is 0, then 1; model and mean are 2.
    ('sums', questions[0], [5 + 2, 0]),
    ('sums', questions[1], [5 * 2 + 1, 2]),
  ]


def test_the_newest_of_rounds_that_begin_is_answered(world, asking):
  asking.asks_all(1)
  asking.asks(2)
  last = asking.asks_all(2, value=2.0)
  _to_the_end(world, asking)
  assert [answers for _, answers, _ in asking.got()] == [asking.run, *last]


def test_an_exchange_of_another_round_is_not_that_of_this_one(world, asking):
  first = asking.asks(1)
  asking.asks(2, 'train')
  _to_the_end(world, asking)
  assert [answers for _, answers, _ in asking.got()] == [asking.run, first]


def test_who_is_not_asked_says_that_it_is_back(world, asking):
  asking.asks_all(1, sites=['south'])
  _to_the_end(world, asking)
  assert [kind for kind, _, _ in asking.got()] == ['join', 'join']


def test_states_are_those_of_the_last_round_that_counts(world, asking):
  # Round 2 did not count for the site, and so 3 begins where 1 ended.
  asking.asks_all(1)
  _to_the_end(world, asking)
  for round, counted in ((2, 1), (3, 1), (4, 3)):
    asking.asks_all(round, counted={'north': counted}, oldest={'north': counted})
    _to_the_end(world, asking)
  # Two exchanges a round, each of which adds 1 to the state.
  states = [sums[1] for kind, _, sums in asking.got() if kind == 'sums'][::2]
  assert states == [0, 2, 2, 4]


def test_a_round_that_did_not_count_is_taken_back_at_once(world, asking):
  def watch(round):
    # Round 1 was answered too late: the site is asked again, and has not begun again.
    if round == 1:
      asking.asks_all(2, counted={})
    elif round == 2:
      asking.asks_all(3, counted={'north': 2})
    else:
      asking.ends()

  asking.asks_all(1)
  plain.take_part(world.answerer('north'), 'north', watch=watch)
  states = [sums[1] for kind, _, sums in asking.got() if kind == 'sums'][::2]
  # The answers of round 1 have been dropped.
  assert states == [0, 2]


def test_states_are_stored_before_the_last_answer_leaves(world, asking, monkeypatch):
  questions = asking.asks_all(1)
  asking.ends()

  def full(self):
    raise OSError(28, 'No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(plain.KeptRounds, '_write', full)
    with pytest.raises(OSError, match='No space left'):
      plain.take_part(world.answerer('north'), 'north')
  assert [answers for _, answers, _ in asking.got()] == [asking.run, questions[0]]
  plain.take_part(world.answerer('north'), 'north')
  assert [answers for _, answers, _ in asking.got()] == [questions[1]]


def test_a_round_that_rules_forbid_is_declined_and_the_next_is_not(world, asking):
  def cohort(round):
    if round == 1:
      raise participation.DeclinedError('1 clients would take part.')
    return [5.0]

  question = asking.asks(1)
  _to_the_end(world, asking, cohort)
  asking.asks_all(2)
  _to_the_end(world, asking, cohort)
  got = asking.got()
  assert got[1] == ('refuse', question, [])
  refusal = messages.decode(world.box.get('north', 2), 'north', 2, world.keys('south'))
  assert refusal.body == {'why': '1 clients would take part.', 'round': 1}
  assert [kind for kind, _, _ in got] == ['join', 'refuse', 'sums', 'sums']


@pytest.mark.parametrize(
  'change',
  [
    {'round': '1'},
    {'sites': None},
    {'sites': {'north': 1}},
    {'counted': 3},
    {'counted': {'north': '3'}},
    {'oldest': 3},
    {'oldest': {'north': None}},
  ],
  ids=str,
)
def test_a_question_that_says_nothing_is_a_sentence(world, asking, change):
  asking.asks(**change)
  with pytest.raises(
    ValueError, match='A question has no round, sites, counted and ol'
  ):
    plain.take_part(world.answerer('north'), 'north')


def test_values_of_another_type_are_a_sentence_for_both(world, asking):
  question = asking.asks(value=[1.0, 2.0])
  with pytest.raises(ValueError, match=r'argument is float32\[2\]; it must be float32'):
    plain.take_part(world.answerer('north'), 'north')
  assert asking.got()[1] == ('refuse', question, [])


@pytest.mark.parametrize('masked', [False, True])
def test_a_question_that_breaks_what_was_offered_is_not_answered(world, asking, masked):
  asking.asks_all(**({} if masked else {'masks': {}}))
  said = 'sums must be masked' if masked else 'sums must not be masked'
  with pytest.raises(ValueError, match=said):
    plain.take_part(world.answerer('north', masked=masked), 'north')
  assert not any(kind == 'sums' for kind, _, _ in asking.got())


def test_the_coordinator_is_no_site_to_share_masks_with(world, asking):
  keys = {name: world.keys(name) for name in (parties.COORDINATOR, 'south')}
  masks = {name: own.mask_key(asking.run, name) for name, own in keys.items()}
  asking.asks(sites=['north', parties.COORDINATOR], masks=masks)
  asking.asks(exchange='train')
  with pytest.raises(
    ValueError, match='coordinator is among the sites; it must not be'
  ):
    plain.take_part(world.answerer('north', masked=True), 'north')
  with pytest.raises(ValueError, match='The name of a site is coordinator'):
    world.answerer(parties.COORDINATOR)


def test_what_is_read_is_remembered_and_nothing_is_sent_twice(world, asking):
  for round in (1, 2, 3):
    asking.asks_all(round, counted={'north': round - 1})
    _to_the_end(world, asking)
  assert json.loads((world.folder('north') / 'read.json').read_text()) == {
    parties.COORDINATOR: [10, asking._outbox.last.digest]
  }
  kinds = [kind for kind, _, _ in asking.got()]
  assert kinds == ['join', *6 * ['sums']]


def test_an_offer_that_has_gone_is_missed(world, asking):
  _to_the_end(world, asking)
  (world.box.path / parties.COORDINATOR / '00000001.message').unlink()
  with pytest.raises(ValueError, match=r'The offer has gone from .*; it must stay'):
    plain.take_part(world.answerer('north'), 'north')


def test_what_comes_first_must_be_an_offer(world):
  world.outbox(parties.COORDINATOR).send('', messages.END, {})
  with pytest.raises(ValueError, match='is of kind end; it must be an offer'):
    world.answerer('north').offer()
