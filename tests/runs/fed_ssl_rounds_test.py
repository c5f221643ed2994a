"""FedSSL in the round loop, its clients' states in the run folder."""

import numpy as np
import pytest

from tests import tiny
from tests.algorithms import harness
from tff_ssl.algorithms import fed_ssl
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import byol
from tff_ssl.objectives import target
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import simulated_clients


@pytest.mark.long
@pytest.mark.parametrize('first_target', target.FIRST)
def test_fed_byol_resumed(tff_context, tmp_path, first_target):
  """A real process: two rounds and two more are four; packs or not, the same."""
  results = []
  for num_packs, legs in ((2, [4]), (2, [2, 4]), (0, [4])):
    folder = tmp_path / f'{num_packs} {len(legs)}'
    for rounds in legs:
      clients = simulated_clients.Clients(tiny.clients(), num_packs=num_packs)
      process = processes.build(
        fed_ssl.fed_ssl(
          byol.ByolObjective(harness.model(), None),
          optimizers.build_optimizer(harness.SGD),
          first_target=first_target,
        ),
        clients.element_spec,
      )
      stateful = stateful_rounds.StatefulRounds(process, clients)
      with run_folder.RunFolder(folder, {}) as opened:
        state = loop.run(
          stateful,
          # Alice is in all rounds, Bob in every other.
          lambda round, run=stateful: run.cohort(['bob', 'alice'][round % 2 :]),
          opened,
          rounds,
          progress=False,
        )
    states = stateful.states_of(['alice', 'bob'])
    assert [states[name].last_round for name in states] == [3, 3]
    weights = stateful.get_model_weights(state).trainable
    results.append(harness.flat([weights, *(own.kept for own in states.values())]))
  np.testing.assert_array_equal(results[0], results[1])
  np.testing.assert_allclose(results[0], results[2], rtol=1e-4, atol=1e-6)
