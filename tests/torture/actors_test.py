"""A run in which an actor dies in each round equals an undisturbed run.

`make kill-campaign`. docs/machines.md has the counts that it prints.
"""

import contextlib
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
    # It may be one that an earlier round has killed.
    with contextlib.suppress(psutil.NoSuchProcess):
      victim.kill()
      tally['actors: killed'] += 1

  def disturb() -> None:
    if victims := in_actors.actors():
      # A round takes some hundredths of a second, and as long as an actor needs that
      # was killed in the one before.
      moment = rng.choice((0.03, 3.0)) * rng.random()
      killers.append(threading.Timer(moment, kill, [rng.choice(victims)]))
      killers[-1].start()

  began = time.monotonic()
  with contexts.ray(actors=_ACTORS, optimize_graphs=False):
    happens = dict.fromkeys(range(1, rounds + 1), disturb)
    got = run.metrics(tmp_path / 'disturbed', rounds, happens)
    for killer in killers:
      killer.join()
  tally['actors: rounds'] = rounds
  tally['actors: seconds'] = round(time.monotonic() - began, 1)
  assert got == expected
  assert in_actors.of_ray() == []
