"""Coordinator and sites in threads: killed, lost, frozen, twice there; the same result.

A kill is an error before a write, before each of them in turn: what is on the disk is
what a SIGKILL leaves.
"""

import collections
import os
import threading
import time

import pytest

from tests.sites import parties
from tests.sites import plain_parts as plain
from tff_ssl.sites import chains
from tff_ssl.sites import coordinator
from tff_ssl.sites import mailbox as mailbox_lib
from tff_ssl.sites import messages
from tff_ssl.storage import files

pytestmark = pytest.mark.usefixtures('plain_parts')
_ROUNDS = 2


class _KilledError(BaseException):
  """Nothing catches it but the test."""


class _Killer:
  """Counts the writes of the party whose thread has a name, and kills it at one."""

  def __init__(self, monkeypatch, victim):
    self.victim, self.at, self.writes = victim, None, 0
    for owner, name in [
      (files, 'write'),
      (chains.Outbox, '_write_down'),
      (mailbox_lib.Mailbox, 'drop'),
    ]:
      monkeypatch.setattr(owner, name, self._counting(getattr(owner, name)))

  def _counting(self, write):
    def counted(*arguments):
      if threading.current_thread().name == self.victim:
        self.writes += 1
        if self.writes == self.at:
          raise _KilledError
      return write(*arguments)

    return counted


@pytest.fixture
def quick(monkeypatch):
  """Looks into the mailbox often, and leaves files to the kernel: no power fails."""
  monkeypatch.setattr(coordinator, '_LONGEST_PAUSE', 0.02)
  monkeypatch.setattr(os, 'fsync', lambda _: None)


@pytest.fixture
def sent(monkeypatch):
  """Returns all contents that were ever put, by sender and number."""
  contents = collections.defaultdict(set)
  put = mailbox_lib.Mailbox.put

  def remembered(self, sender, number, content):
    put(self, sender, number, content)
    contents[sender, number].add(content)

  monkeypatch.setattr(mailbox_lib.Mailbox, 'put', remembered)
  return contents


def _site(world, name, masked=False):
  return plain.Thread(
    lambda: plain.take_part(world.answerer(name, masked), name), name=name
  )


def _coordinator(world, masked=False, rounds=_ROUNDS, **settings):
  result = []

  def run():
    ends = world.asker(masked=masked, **settings)
    folder = world.folder(parties.COORDINATOR)
    result.append(plain.coordinate(ends, folder, rounds))

  return plain.Thread(run, name=parties.COORDINATOR), result


def _run(world, killer, masked):
  """Runs all parties, and the victim again once it was killed; returns the result."""
  main, result = _coordinator(world, masked)
  threads = {name: _site(world, name, masked) for name in world.names}
  threads[parties.COORDINATOR] = main
  try:
    threads[killer.victim].end()
  except _KilledError:
    if killer.victim == parties.COORDINATOR:
      threads[killer.victim], result = _coordinator(world, masked)
    else:
      threads[killer.victim] = _site(world, killer.victim, masked)
  for thread in threads.values():
    thread.end()
  return result[0]


def _assert_answered_once(world, sent):
  """Asserts that no number and no question has two contents of a sender."""
  keys = world.keys(world.names[0])
  answers = collections.Counter()
  for (sender, number), contents in sent.items():
    (content,) = contents
    message = messages.decode(content, sender, number, keys)
    if message.kind == messages.SUMS:
      answers[sender, message.answers] += 1
  assert set(answers.values()) == {1}


@pytest.mark.parametrize(
  ('victim', 'masked', 'step', 'fewest_writes'),
  [
    (parties.COORDINATOR, False, 1, 20),
    ('north', False, 1, 15),
    ('north', True, 3, 15),
  ],
  ids=['coordinator', 'site', 'masked'],
)
def test_a_kill_before_any_write_changes_nothing(
  tmp_path, monkeypatch, quick, sent, victim, masked, step, fewest_writes
):
  names = ('north', 'south')
  (*_, expected) = plain.alone(_ROUNDS, names)
  killer = _Killer(monkeypatch, victim)
  at, parties_of_all = 0, parties.World(tmp_path / 'keys', names)
  while killer.at is None or killer.writes >= killer.at:
    killer.writes, killer.at = 0, at or None
    sent.clear()
    world = parties_of_all.anew(tmp_path / str(at))
    assert _run(world, killer, masked) == expected, at
    _assert_answered_once(world, sent)
    for name in (*names, parties.COORDINATOR):
      log = chains.read_log(world.folder(name) / chains.OUTBOX)
      assert [line['digest'] for line in log] == [
        messages.digest(content)
        for (sender, _), contents in sorted(sent.items())
        if sender == name
        for content in contents
      ]
    assert plain.counted(world.folder(parties.COORDINATOR)) == _ROUNDS * [[*names]]
    at += step
  assert at > fewest_writes


def test_a_site_that_is_back_goes_on_from_the_round_that_counted(tmp_path, quick):
  world = parties.World(tmp_path)
  rounds, late, back = 12, threading.Event(), threading.Event()

  def lose(round):
    if round == 2:
      late.wait(30)
    if round > 2:
      back.set()
    return plain.CLIENTS['south']

  threads = [_site(world, name) for name in ('east', 'north')]
  threads.append(
    plain.Thread(lambda: plain.take_part(world.answerer('south'), 'south', lose))
  )
  ends = world.asker(fewest=2, deadline=0.5)
  folder = world.folder(parties.COORDINATOR)

  def slow(round):
    if 6 <= round < 9:
      time.sleep(0.1)
    if round == 6:
      late.set()
    if round == 9:
      assert back.wait(30)

  result = plain.coordinate(ends, folder, rounds, each=slow)
  for thread in threads:
    thread.end()
  counted = plain.counted(folder)
  assert ['south' in own for own in counted][:3] == [True, False, False]
  assert 'south' in counted[-1]
  assert result == plain.alone(rounds, lambda round: counted[round - 1])[-1]
