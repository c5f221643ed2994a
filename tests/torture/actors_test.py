"""A run in which an actor dies in each round equals an undisturbed run.

`make kill-campaign`. docs/machines.md has the counts that it prints.
"""

import random
import threading
import time

import pytest

from tests.execution import in_actors
from tests.torture import trials
from tff_ssl.execution import contexts

pytestmark = pytest.mark.torture
_ACTORS = 2


def test_deaths_of_actors_change_nothing(pytestconfig, tff_context, tmp_path, tally):
  rounds, rng = trials.counts(pytestconfig)['actors'], random.Random(0)
  run = in_actors.Run()
  expected = run.metrics(tmp_path / 'undisturbed', rounds)
  killers: list[threading.Thread] = []

  def kill() -> None:
    moment, deadline = rng.random(), time.monotonic() + 120
    while time.monotonic() < deadline:
      if busy := in_actors.actors('ray::_Actor.partial'):
        # Anywhere in a part, which takes some hundredths of a second.
        time.sleep(0.03 * moment)
        rng.choice(busy).kill()
        tally['actors: killed'] += 1
        return

  def disturb() -> None:
    for killer in killers:
      killer.join()
    killers.append(threading.Thread(target=kill, daemon=True))
    killers[-1].start()

  began = time.monotonic()
  with contexts.ray(actors=_ACTORS, optimize_graphs=False):
    happens = dict.fromkeys(range(1, rounds + 1), disturb)
    got = run.metrics(tmp_path / 'disturbed', rounds, happens)
    killers[-1].join()
  tally['actors: rounds'] = rounds
  tally['actors: seconds'] = round(time.monotonic() - began, 1)
  assert got == expected
  assert in_actors.of_ray() == []
