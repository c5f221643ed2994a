"""A million clients that keep a state: what they take, and a run that resumes."""

import time
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from tests.runs import stateful_run
from tff_ssl.partition import partitions
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.runs import state_store
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

COUNT = 1_000_000
COHORT = 100
# No byte of them is read.
PIXELS = np.broadcast_to(np.zeros([1, 1, 1, 1], np.uint8), [COUNT, 1, 1, 1])


class Registered:
  """Clients of one image each, as a run has them."""

  def __init__(self, count):
    example_ids = np.arange(count)
    self.partition = partitions.from_sizes(example_ids, np.ones(count, np.int64))
    self.data = client_data.ArrayClientData(PIXELS[:count], example_ids, self.partition)
    self.clients = simulated_clients.Clients(self.data, num_packs=2)
    self.cohorts = cohort_sampling.Cohorts(self.data.ids, COHORT, seed=3)

  def rounds(self):
    return stateful_rounds.StatefulRounds(stateful_run.Process(), self.clients)

  def run(self, folder, rounds):
    """Runs so many rounds; returns the server's state and those of all cohorts."""
    stateful = self.rounds()
    with run_folder.RunFolder(folder, {}) as opened:
      state = loop.run(
        stateful,
        lambda round: stateful.cohort(self.cohorts(round)),
        opened,
        rounds,
        checkpoint_every=2,
        progress=False,
      )
    names = sorted({name for round in range(rounds) for name in self.cohorts(round)})
    own = stateful.states_of(names)
    return [np.asarray(x).tolist() for x in tf.nest.flatten((state, own))]


@pytest.fixture(scope='module')
def million():
  tracemalloc.start()
  try:
    found = Registered(COUNT)
    found.clients.index('client_999999')
    found.cohorts(0)
    held, peak = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  return found, held, peak


def test_registering_takes_its_arrays_alone(million):
  _, held, peak = million
  # Ids, positions and starts of 8 bytes each; sorting takes some more for a moment. A
  # list of strings alone would be 65 bytes a client.
  assert held < 30 * COUNT
  assert peak < 70 * COUNT


def test_ten_rounds_go_on_where_they_stopped(million, tmp_path, monkeypatch):
  found, _, _ = million
  expected = found.run(tmp_path / 'whole', 10)

  # Dead before the states of round 8 are written.
  save = state_store.ClientStates.save

  def die(self, round, states):
    if round == 8:
      raise stateful_run.Killed
    save(self, round, states)

  with monkeypatch.context() as patched:
    patched.setattr(state_store.ClientStates, 'save', die)
    with pytest.raises(stateful_run.Killed):
      found.run(tmp_path / 'torn', 10)
  assert found.run(tmp_path / 'torn', 10) == expected
  # Neither checkpoint nor store hold what has not taken part.
  size = sum(path.stat().st_size for path in (tmp_path / 'torn').rglob('*.*'))
  assert size < 2_000_000
  for name in ('metrics.csv', 'clients.csv'):
    whole = (tmp_path / 'whole' / name).read_bytes()
    assert (tmp_path / 'torn' / name).read_bytes() == whole


def test_a_round_does_not_walk_over_the_population(million):
  found, _, _ = million

  def seconds(registered):
    stateful = registered.rounds()
    taken = []
    for round in range(20):
      started = time.process_time()
      cohort = stateful.cohort(registered.cohorts(round))
      for pack in cohort.members:
        for name in pack:
          registered.clients.index(name)
      taken.append(time.process_time() - started)
    return min(taken)

  # A walk over a million ids is 0.1 s and more; of both, 0.02 s.
  assert seconds(found) < 2 * seconds(Registered(1000)) + 0.01
