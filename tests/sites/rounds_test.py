"""Rounds of real methods at three sites, against the same parts in one process.

And what has left the sites then: every byte of the mailbox is looked at.
"""

import functools

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.sites import one_process
from tests.sites import parties
from tests.sites import plain_parts as plain
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import parts as parts_lib
from tff_ssl.federated import phase_graph
from tff_ssl.objectives import byol
from tff_ssl.runs import stateful_rounds
from tff_ssl.settings import learning
from tff_ssl.simulation import simulated_clients
from tff_ssl.sites import chains
from tff_ssl.sites import messages
from tff_ssl.sites import participation
from tff_ssl.sites import site_rounds

_ROUNDS = 2
# Positions of each client of each site, by ids that nothing else contains.
_PATIENTS = {
  'east': {'patient-17': [0, 1], 'patient-4': [2, 3, 4]},
  'north': {'patient-99': [5, 6, 7]},
  'south': {'patient-3': [8, 9], 'patient-5': [10, 11]},
}


def _graph(method):
  if method == 'dcco':
    return harness.build_dcco(optimizer=harness.ADAM, packed=True).graph
  objective = byol.ByolObjective(harness.model(), None)
  config = fedavg.Training(learning.SgdClients(learning_rate=0.1), seed=harness.SEED)
  built = harness.build_fed_ssl(objective, harness.ADAM, config, packed=True)
  return built.process.graph


@pytest.fixture(scope='module', autouse=True)
def _built_once():
  """All parties have the same computations, which are traced and compiled once."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(parts_lib, 'build_parts', functools.cache(parts_lib.build_parts))
    yield


def _parties(graph):
  """Returns how many sites add the noise of a process; None: none does."""
  return len(parties.NAMES) if graph.aggregation.packs.unmasked else None


@functools.cache
def _arrays():
  """Returns examples whose labels and ids are numbers that nothing else has."""
  arrays = harness.arrays()
  arrays['label'] = 7_654_321 + 37 * np.arange(harness.NUM_EXAMPLES, dtype=np.int32)
  arrays['example_id'] += 10**12
  return arrays


def _clients(name):
  arrays = _arrays()
  held = {
    patient: harness.take(arrays, positions)
    for patient, positions in _PATIENTS[name].items()
  }
  return simulated_clients.Clients(
    tff.simulation.datasets.TestClientData(held), num_packs=1
  )


def _take_part(world, name, graph, masked, context):
  with tff.framework.get_context_stack().install(context.tff_context):
    ends = world.answerer(name, masked)
    ends.offer()
    process = participation.Answering(graph, ends, _parties(graph))
    clients = _clients(name)
    rounds, cohort = participation.PlainRounds(process), clients.cohort
    if graph.algorithm.is_stateful:
      rounds = stateful_rounds.StatefulRounds(process, clients)
      cohort = rounds.cohort
    participation.take_part(
      ends,
      process,
      rounds,
      lambda _: cohort(_PATIENTS[name]),
      {'clients': len(clients.ids)},
      lambda _: None,
    )


def _coordinate(world, graph, masked, context, result):
  with tff.framework.get_context_stack().install(context.tff_context):
    ends = world.asker(masked=masked)
    built = parts_lib.build_parts(graph, _parties(graph))
    rounds = site_rounds.SiteRounds(built, ends, {'rounds': _ROUNDS})
    state = rounds.initialize()
    rounds.resume(world.folder(parties.COORDINATOR), 0)
    for round in range(1, _ROUNDS + 1):
      state, metrics = rounds.next(state, round)
      result.append({group: dict(own) for group, own in metrics.items()})
    rounds.finish()
    result.append(harness.weights(built, state))


def _at_sites(world, graph, context, masked=False):
  """Returns the model after the rounds at sites, and the metrics of each."""
  result = []
  threads = [
    plain.Thread(_take_part, world, name, graph, masked, context)
    for name in world.names
  ]
  threads.append(plain.Thread(_coordinate, world, graph, masked, context, result))
  for thread in threads:
    thread.end()
  *told, weights = result
  return weights, told


@functools.cache
def _in_one_process(graph):
  """Returns the model and metrics, and the clients' states by site: no message."""
  built = parts_lib.build_parts(graph, None)
  clients = {name: _clients(name) for name in parties.NAMES}
  rounds = one_process.rounds(built, clients, lambda name, _: _PATIENTS[name], _ROUNDS)
  states, told, kept = zip(*rounds, strict=True)
  return harness.weights(built, states[-1]), told, kept[-1]


def _assert_told(got, expected):
  for at_sites, alone in zip(got, expected, strict=True):
    assert at_sites.pop('sites') == {'counted': 3, 'absent': 0}
    for of_phase in alone:
      for group, own in of_phase.items():
        for name, value in own.items():
          if group == 'client_work':
            np.testing.assert_array_equal(at_sites[group][name], value)


def _assert_equals_one_process(world, graph, context):
  """Compares a run at sites; returns its weights, its metrics and clients' states."""
  got, told = _at_sites(world, graph, context)
  expected, known, states = _in_one_process(graph)
  assert got.tobytes() == expected.tobytes()
  _assert_told(told, known)
  return got, told, states


def test_statistics_and_training_equal_one_process_to_the_bit(tmp_path, tff_context):
  graph, world = _graph('dcco'), parties.World(tmp_path)
  got, told, _ = _assert_equals_one_process(world, graph, tff_context)
  assert len(np.unique(got)) > 100
  assert told[0]['client_work']['clients'] == 5
  _assert_nothing_but_sums_left(world, graph)


def test_masked_sums_change_no_more_than_their_rounding(tmp_path, tff_context):
  graph = _graph('dcco')
  world = parties.World(tmp_path)
  got, _ = _at_sites(world, graph, tff_context, masked=True)
  expected, _, _ = _in_one_process(graph)
  assert 0 < np.abs(got - expected).max() < 1e-6
  _assert_nothing_but_sums_left(world, graph)


@pytest.mark.parametrize('of_sites', [False, True])
def test_clients_of_private_runs_are_clipped_at_their_sites(
  tmp_path, tff_context, of_sites
):
  algorithm = harness.build_dcco(packed=True).graph.algorithm

  def clipped(*norms: float, of_sites: bool = False) -> phase_graph.Graph:
    # Noise is drawn afresh each time: there is next to none.
    if of_sites:
      private = aggregations.distributed(1e-9, *norms, None, 5, 3)
    else:
      private = aggregations.private(1e-9, *norms)
    return phase_graph.Graph(algorithm, harness.PACKS, private)

  world = parties.World(tmp_path)
  graph = clipped(0.5, 5.0, of_sites=of_sites)
  got, _ = _at_sites(world, graph, tff_context, masked=of_sites)
  expected, _, _ = _in_one_process(clipped(0.5, 5.0))
  # With noise of the sites sums are in steps of their norm / 2^16.
  assert np.abs(got - expected).max() < (3e-5 if of_sites else 1e-7)
  unclipped, _, _ = _in_one_process(clipped(1e4, 1e4))
  assert np.abs(got - unclipped).max() > 1e-4


def test_states_stay_at_their_sites_and_equal_one_process(tmp_path, tff_context):
  graph, world = _graph('fed_ssl'), parties.World(tmp_path)
  _, _, states = _assert_equals_one_process(world, graph, tff_context)
  for name in parties.NAMES:
    clients = _clients(name)
    rounds = stateful_rounds.StatefulRounds(
      participation.Answering(graph, world.answerer(name)), clients
    )
    rounds.resume(world.folder(name), _ROUNDS)
    stored = rounds.states_of(_PATIENTS[name])
    assert len(states[name]) == len(clients.ids)
    for own in states[name].values():
      other = stored[clients.ids[int(own.client)]]
      assert harness.flat(other).tobytes() == harness.flat(own).tobytes()
      assert own.last_round == _ROUNDS - 1
  _assert_nothing_but_sums_left(world, graph)


def _assert_nothing_but_sums_left(world, graph):
  """Looks at every byte of the mailbox, and compares it with what logs say."""
  contents = {}
  for path in world.box.path.rglob('*'):
    if path.is_file():
      assert path.suffix == '.message'
      contents[path.parent.name, int(path.stem)] = path.read_bytes()
  for name in world.names:
    left = [content for (sender, _), content in contents.items() if sender == name]
    log = chains.read_log(world.folder(name) / chains.OUTBOX)
    sent = [messages.digest(content) for content in left]
    # The log has those that nobody needs any more, too.
    assert sorted(sent) == sorted(
      line['digest'] for line in log if (name, line['number']) in contents
    )
    assert [line['number'] for line in log] == [*range(1, len(log) + 1)]
    rounds = [line.get('round') for line in log]
    exchanges = len(graph.algorithm.exchanges)
    assert rounds == [None, *exchanges * [1], *exchanges * [2]]
  everything = b''.join(contents.values())
  for secret in _secrets(world):
    assert secret not in everything
  # Such bytes would be found.
  assert any(secret in everything + b'patient-17' for secret in _secrets(world))


def _secrets(world):
  """Returns what must never leave a site, as bytes of the forms that it may have."""
  secrets, arrays = [], _arrays()
  for name in world.names:
    secrets.append(str(world.folder(name)).encode())
    for patient, positions in _PATIENTS[name].items():
      own = harness.take(arrays, positions)
      secrets.append(patient.encode())
      secrets += [
        own['label'].astype(dtype).tobytes() for dtype in ('<i4', '<i8', 'f4')
      ]
      secrets += [own['example_id'].astype(dtype).tobytes() for dtype in ('<i8', '<f8')]
      # Each row of pixels alone, as numbers in [0, 1], to 255 and as bytes.
      rows = own['image'].reshape(-1, own['image'].shape[2])
      secrets += [(scale * row).tobytes() for row in rows for scale in (1, 255)]
      secrets += [np.rint(255 * row).astype(np.uint8).tobytes() for row in rows]
  assert min(map(len, secrets)) >= 8
  return secrets
