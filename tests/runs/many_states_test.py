"""What rounds with client states cost among many registered clients."""

import tracemalloc

from tests.runs import stateful_run
from tff_ssl.runs import state_store
from tff_ssl.runs import stateful_rounds


def test_many_registered_clients_cost_nothing(tmp_path):
  """100,000 clients, 50 rounds of 10: memory of a round and size of the file."""
  peaks = {}
  for count in (600, 100_000):
    folder = tmp_path / str(count)
    _, stateful = stateful_run.run(folder, 50, 10, size=10, count=count)
    # At most 500 rows of 20 bytes and a client id.
    assert (folder / state_store.NAME).stat().st_size < 200_000
    population, ids = stateful_run.clients(count)
    stateful = stateful_rounds.StatefulRounds(stateful_run.Process(), population)
    stateful.resume(folder, 50)
    population.index(ids[0])  # Sorts the ids, once.
    state = stateful.initialize()
    tracemalloc.start()
    stateful.next(state, stateful.cohort(ids[-10:]))
    peaks[count] = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
  # A list of 100,000 clients would take 800,000 bytes.
  assert max(peaks.values()) < 200_000, peaks
