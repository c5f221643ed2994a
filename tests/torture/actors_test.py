"""A run in which an actor dies in each round equals an undisturbed run.

`make kill-campaign`. docs/machines.md has the counts that it prints.
"""

import random
import threading
import time

import psutil
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

  def kill(victim: psutil.Process) -> None:
    victim.kill()
    tally['actors: killed'] += 1

  def disturb() -> None:
    for killer in killers[-1:]:
      killer.join()
    # A round takes some hundredths of a second: in it, before it, or after it.
    victim = rng.choice(_all_actors())
    killers.append(threading.Timer(0.1 * rng.random(), kill, [victim]))
    killers[-1].start()

  began = time.monotonic()
  with contexts.ray(actors=_ACTORS, optimize_graphs=False):
    happens = dict.fromkeys(range(1, rounds + 1), disturb)
    got = run.metrics(tmp_path / 'disturbed', rounds, happens)
    killers[-1].join()
  tally['actors: rounds'] = rounds
  tally['actors: seconds'] = round(time.monotonic() - began, 1)
  assert got == expected
  assert tally['actors: killed'] == rounds
  assert in_actors.of_ray() == []


def _all_actors() -> list[psutil.Process]:
  """Waits until Ray has started again the actor that was killed."""
  deadline = time.monotonic() + 120
  while len(found := in_actors.actors()) < _ACTORS:
    assert time.monotonic() < deadline
    time.sleep(0.05)
  return found
