"""Tests of rounds with client states: resumed, in any order, refused."""

import collections
import functools
import gc
import pathlib
import signal

import numpy as np
import pytest

from tests import forked
from tests.binaries import launch
from tests.runs import stateful_run
from tff_ssl.federated import packs
from tff_ssl.runs import checkpoints
from tff_ssl.runs import loop
from tff_ssl.runs import round_table
from tff_ssl.runs import state_store
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import cohort_sampling

# Where a run is killed: a function, how often it has been called by then, and whether
# it has done its work. Seven rounds, a checkpoint after each second.
_STAGES = {
  'before the states': (state_store.ClientStates, 'save', 4, False),
  'amid the states': (checkpoints.StateLayout, 'encode', 9, False),
  'after the states': (state_store.ClientStates, 'save', 4, True),
  'before the metrics': (round_table.Table, 'append', 7, False),
  'between the tables': (round_table.Table, 'append', 7, True),
  'before the clients': (round_table.Table, 'extend', 10, False),
  'after the clients': (round_table.Table, 'extend', 10, True),
  'before the checkpoint': (checkpoints.Checkpoints, 'save', 3, False),
  'after the checkpoint': (checkpoints.Checkpoints, 'save', 3, True),
  'amid the pruning': (state_store, '_set', 7, False),
  'after the pruning': (state_store.ClientStates, 'prune', 2, True),
  'before the first states': (state_store.ClientStates, 'resume', 1, False),
  'amid their making': (state_store, '_set', 1, False),
}


def _kill(monkeypatch, owner, name, at, afterwards):
  """Has the `at`th call of a function end everything."""
  original, calls = getattr(owner, name), []

  @functools.wraps(original)
  def function(*args, **kwargs):
    calls.append(name)
    if len(calls) >= at and not (afterwards and len(calls) == at):
      raise stateful_run.Killed
    result = original(*args, **kwargs)
    if len(calls) == at:
      raise stateful_run.Killed
    return result

  def save_no_more(*args):
    if len(calls) >= at:
      raise stateful_run.Killed
    save(*args)

  save = loop._save
  monkeypatch.setattr(owner, name, function)
  # After an error the loop saves what it has; after a SIGKILL nobody does.
  monkeypatch.setattr(loop, '_save', save_no_more)


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory):
  folder = tmp_path_factory.mktemp('runs') / 'uninterrupted'
  return stateful_run.everything(*stateful_run.run(folder)), folder


def test_numbers_are_those_of_states_in_a_dictionary(uninterrupted):
  """The toy's rounds with clients apart, their states held by name."""
  cohorts = cohort_sampling.Cohorts(
    stateful_run.clients()[1], stateful_run.COHORT, seed=3
  )
  states, total = collections.defaultdict(lambda: np.zeros(3)), 1.0
  visits = collections.Counter()
  examples = [[], [0], [1, 2], [], [3], [4, 5]]
  ids = dict(zip(stateful_run.clients()[1], examples, strict=True))
  for round in range(stateful_run.ROUNDS):
    cohort = cohorts(round + 1)
    for name in cohort:
      if ids[name]:
        visits[name] += 1
        states[name] = 0.5 * states[name] + np.mean(ids[name]) + round + total
    total = 0.5 * total + 0.01 * sum(states[name].sum() for name in cohort)
  _, folder = uninterrupted
  assert float(launch.table(folder)[-1]['total']) == pytest.approx(total, rel=1e-5)
  _, stateful = stateful_run.run(folder)
  for name, state in stateful.states_of(ids).items():
    np.testing.assert_allclose(state.kept['vector'], states[name], rtol=1e-5)
    assert state.kept['visits'] == visits[name]
    assert (state.last_round < 0) == (not visits[name])
  # Some clients came back after rounds without them, or this would test little.
  assert 1 < min(visits.values()) < stateful_run.ROUNDS


@pytest.mark.parametrize('stage', _STAGES)
def test_killed_anywhere_it_ends_with_the_same_numbers(
  uninterrupted, tmp_path, monkeypatch, stage
):
  with monkeypatch.context() as patch, pytest.raises(stateful_run.Killed):
    _kill(patch, *_STAGES[stage])
    stateful_run.run(tmp_path)
  expected, folder = uninterrupted
  assert stateful_run.everything(*stateful_run.run(tmp_path)) == expected
  assert launch.table(tmp_path) == launch.table(folder)
  told = [(path / round_table.CLIENTS).read_bytes() for path in (tmp_path, folder)]
  assert told[0] == told[1]


def test_a_row_for_each_client_of_a_round_that_counted(uninterrupted):
  _, folder = uninterrupted
  rows = launch.table(folder, round_table.CLIENTS)
  cohorts = cohort_sampling.Cohorts(
    stateful_run.clients()[1], stateful_run.COHORT, seed=3
  )
  # Clients 0 and 3 have no examples.
  expected = [
    (str(round), name)
    for round in range(1, stateful_run.ROUNDS + 1)
    for name in cohorts(round)
    if int(name.split()[1]) % 3
  ]
  assert [(row['round'], row['client']) for row in rows] == expected
  seen = collections.Counter()
  for row in rows:
    seen[row['client']] += 1
    assert row['late'] == ('' if seen[row['client']] == 1 else row['sum'])
  _, stateful = stateful_run.run(folder)
  for name, state in stateful.states_of(seen).items():
    last = [row for row in rows if row['client'] == name][-1]
    assert float(last['sum']) == pytest.approx(np.sum(state.kept['vector']), rel=1e-6)


def test_a_sigkill_amid_a_transaction(uninterrupted, tmp_path):
  killed = forked.Process('tests.runs.stateful_run', str(tmp_path))
  _, errors = killed.communicate()
  assert killed.returncode == -signal.SIGKILL, errors
  assert len(launch.table(tmp_path)) < stateful_run.ROUNDS
  expected, folder = uninterrupted
  assert stateful_run.everything(*stateful_run.run(tmp_path)) == expected
  assert launch.table(tmp_path) == launch.table(folder)


def test_an_error_after_the_states_were_written(uninterrupted, tmp_path, monkeypatch):
  """The loop then saves the round before, of which the states must be too."""
  with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
    original = round_table.Table.append

    def append(self, round, values):
      if round == 4:
        raise ZeroDivisionError
      original(self, round, values)

    patch.setattr(round_table.Table, 'append', append)
    stateful_run.run(tmp_path)
  assert (tmp_path / 'checkpoints' / 'round_00000003.npz').exists()
  assert stateful_run.everything(*stateful_run.run(tmp_path)) == uninterrupted[0]


def test_the_older_checkpoint_can_be_resumed_from(uninterrupted, tmp_path):
  stateful_run.run(tmp_path)
  saved = sorted((tmp_path / 'checkpoints').iterdir())
  assert len(saved) == 2
  saved[-1].unlink()
  assert stateful_run.everything(*stateful_run.run(tmp_path)) == uninterrupted[0]


def test_a_run_does_not_go_on_without_its_states(tmp_path):
  stateful_run.run(tmp_path, rounds=4)
  (tmp_path / state_store.NAME).unlink()
  before = (tmp_path / 'metrics.csv').read_bytes()
  with pytest.raises(ValueError, match='sqlite is missing or empty'):
    stateful_run.run(tmp_path)
  assert (tmp_path / 'metrics.csv').read_bytes() == before


@pytest.mark.parametrize('num_packs', [1, 2, 3])
def test_the_order_of_client_ids_does_not_matter(tmp_path, num_packs):
  """States follow the client, whatever pack and place it is in."""
  results = []
  for name, step in (('there', 1), ('back', -1)):
    population, ids = stateful_run.clients(num_packs=num_packs)
    stateful = stateful_rounds.StatefulRounds(stateful_run.Process(), population)
    (tmp_path / name).mkdir()
    stateful.resume(tmp_path / name, 0)
    state = stateful.initialize()
    for cohort in (ids[1:3], ids[:5], ids[2:], [ids[5], ids[1]]):
      state = stateful.next(state, stateful.cohort(cohort[::step])).state
    results.append(stateful_run.everything(state, stateful))
  assert results[0] == results[1]


def test_the_evaluated_model_takes_the_first_clients_that_have_taken_part(
  tmp_path, monkeypatch
):
  monkeypatch.setattr(stateful_rounds, '_MOST_EVALUATED', 2)
  process = stateful_run.Process()
  process.get_model_weights = lambda _: 7
  process.graph.algorithm.evaluated = lambda weights, kept: (
    weights,
    [int(own['visits']) for own in kept],
  )
  population, ids = stateful_run.clients()
  stateful = stateful_rounds.StatefulRounds(process, population)
  stateful.resume(tmp_path, 0)
  state = stateful.initialize()
  assert stateful.get_model_weights(state) == (7, [])
  # Clients 0 and 3 have no examples: they never take part.
  for cohort, visits in (([0, 4], [1]), ([3, 4, 5], [2, 1]), ([1, 5], [1, 2])):
    state = stateful.next(state, stateful.cohort([ids[k] for k in cohort])).state
    assert stateful.get_model_weights(state) == (7, visits)


def test_rounds_that_are_dropped_close_the_file_of_their_states(tmp_path):
  def is_open():
    path, links = tmp_path / state_store.NAME, pathlib.Path('/proc/self/fd').iterdir()
    return any(link.exists() and link.samefile(path) for link in links)

  population, _ = stateful_run.clients()
  gc.disable()
  try:
    stateful = stateful_rounds.StatefulRounds(stateful_run.Process(), population)
    stateful.resume(tmp_path, 0)
    assert is_open()
    # At once, whoever looks for cycles.
    del stateful
    assert not is_open()
  finally:
    gc.enable()


def test_bad_cohorts():
  population, ids = stateful_run.clients()
  stateful = stateful_rounds.StatefulRounds(stateful_run.Process(), population)
  with pytest.raises(ValueError, match='names a client twice'):
    stateful.cohort([ids[1], ids[1]])
  with pytest.raises(ValueError, match="there is no client 'carol'"):
    stateful.cohort(['carol'])
  with pytest.raises(RuntimeError, match='`resume` opens them'):
    stateful.next(stateful.initialize(), stateful.cohort(ids[:2]))
  sending = stateful_rounds.StatefulRounds(stateful_run.Process(), population, 60)
  with pytest.raises(ValueError, match='of 3 clients take 72 bytes: TFF can send 60'):
    sending.cohort(ids[:3])


def test_states_of_others_are_refused(tmp_path):
  class Confused(stateful_run.Process):
    def next(self, state, states, data):
      output = super().next(state, states, data)
      own = packs.unstack(output.client_states[0])
      own[0] = own[0]._replace(client=np.int32(0))
      return output._replace(
        client_states=[packs.stack(own), *output.client_states[1:]]
      )

  population, ids = stateful_run.clients()
  stateful = stateful_rounds.StatefulRounds(Confused(), population)
  stateful.resume(tmp_path, 0)
  with pytest.raises(RuntimeError, match='states of clients other'):
    stateful.next(stateful.initialize(), stateful.cohort(ids[1:5]))


def _state(seed):
  rng = np.random.default_rng(seed)
  weights = collections.OrderedDict(b=rng.normal(size=[2, 3]), a=np.int32(seed))
  return (np.int32(seed), weights, ())


def _same(stack, states):
  expected = packs.stack(states)
  np.testing.assert_array_equal(stack[0], expected[0])
  assert list(stack[1]) == ['b', 'a']
  for name, value in expected[1].items():
    assert stack[1][name].dtype == value.dtype
    np.testing.assert_array_equal(stack[1][name], value)


def test_stacks_are_those_of_packs_whatever_was_there():
  stacks = stateful_rounds.StateStacks(_state(0))
  for count in (3, 2, 5, 1):
    states = [_state(10 * count + k) for k in range(count)]
    _same(stacks.fill(0, count, iter(states)), states)


def test_places_are_apart_and_memory_is_used_again():
  stacks = stateful_rounds.StateStacks(_state(0))
  first, second = [_state(1), _state(2)], [_state(3)]
  one = stacks.fill(0, 2, first)
  other = stacks.fill(1, 1, second)
  _same(one, first)
  _same(other, second)
  again = stacks.fill(0, 1, [_state(4)])
  assert np.shares_memory(again[1]['b'], one[1]['b'])
  assert not np.shares_memory(again[1]['b'], other[1]['b'])
