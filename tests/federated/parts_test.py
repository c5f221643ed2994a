"""Rounds from partial sums of parts of the cohort, against the process's own rounds."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import with_states
from tests.algorithms.divergence_aware import follower
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.federated import client_states
from tff_ssl.federated import optimizers
from tff_ssl.federated import parts
from tff_ssl.federated import phase_graph
from tff_ssl.federated import processes
from tff_ssl.settings import learning

_CLIENTS = harness.split([1, 2, 5, 4])
_OPTIMIZER = optimizers.build_optimizer(harness.ADAM)
_DCCO = dcco.dcco(harness.cco(), _OPTIMIZER, seed=harness.SEED)


@functools.cache
def _dcco_parts(packed):
  return _parts(_DCCO, harness.PACKS if packed else harness.ELEMENT)


def _parts(algorithm, spec, aggregation=None):
  return parts.build_parts(phase_graph.Graph(algorithm, spec, aggregation, True))


def _sums(exchange, state, known, cohorts):
  """Returns the sums of parts; adds what the exchange broadcasts to what is known."""
  known.update(exchange.broadcast(state))
  return [exchange.partial(known, cohort).sums for cohort in cohorts]


def _cohort(clients, packed):
  make = harness.packed_cohort if packed else harness.cohort
  return make(clients)


@pytest.mark.long
@pytest.mark.parametrize(('packed', 'merged'), [(False, True), (True, False)])
def test_sums_of_two_parts_are_a_round(tff_context, packed, merged):
  process = harness.build_dcco(optimizer=harness.ADAM, packed=packed)
  states, metrics = harness.rounds_of(process, [_cohort(_CLIENTS, packed)] * 2)
  built = _dcco_parts(packed)
  state = built.initialize()
  cohorts = [_cohort(clients, packed) for clients in (_CLIENTS[:3], _CLIENTS[3:])]
  for expected_state, expected in zip(states[1:], metrics, strict=True):
    known = collections.OrderedDict()
    for exchange in built.exchanges.values():
      sums = _sums(exchange, state, known, cohorts)
      if merged:
        sums = [tf.nest.map_structure(np.add, *sums)]
      state, got = exchange.receive(state, sums)
    weights = harness.flat(built.get_model_weights(state).trainable)
    assert harness.relative(weights, harness.weights(process, expected_state)) < 1e-5
    for name, value in expected['client_work'].items():
      if name != 'bytes_down':  # Each computation tells the model.
        assert got['client_work'][name] == pytest.approx(value, rel=1e-4), name


def test_a_part_depends_on_its_clients_alone(tff_context):
  """So that one which was lost can be computed again."""
  built = _dcco_parts(False)
  exchange = built.exchanges['statistics']
  state, cohort = built.initialize(), _cohort(_CLIENTS[:2], False)
  first, again = _sums(exchange, state, collections.OrderedDict(), [cohort] * 2)
  tf.nest.map_structure(np.testing.assert_array_equal, first, again)
  # Sums, not means: 3 examples.
  assert first['weight'] == 3
  objective, params = harness.cco(), built.get_model_weights(state).trainable
  mean = objective.statistics(
    params,
    harness.tensors(harness.take(harness.arrays(), [*_CLIENTS[0], *_CLIENTS[1]])),
    harness.round_seed(0),
    objective.reference(params, harness.round_seed(0)),
  )
  np.testing.assert_allclose(
    first['statistics']['mean_f'], 3 * mean['mean_f'], rtol=1e-4
  )


def test_clients_with_a_state_keep_it_in_parts(tff_context):
  config = fedavg.Training(learning.SgdClients(learning_rate=0.1), seed=harness.SEED)
  objective = follower.Follower()
  process = processes.build(
    fed_ssl.fed_ssl(objective, _OPTIMIZER, config), harness.ELEMENT
  )
  whole = with_states.WithStates(process, packed=False)
  cohort = _cohort(_CLIENTS, False)
  expected = whole.next(whole.initialize(), cohort).state
  algorithm = fed_ssl.fed_ssl(objective, _OPTIMIZER, config)
  built = _parts(algorithm, harness.ELEMENT)
  blank = client_states.blank_state(built.client_state_type)
  state, kept = built.initialize(), {}
  (exchange,) = built.exchanges.values()
  sums, known = [], exchange.broadcast(state)
  for members in ((0, 1), (2, 3)):
    states = [blank._replace(client=np.int32(_CLIENTS[k][0] + 100)) for k in members]
    partial = exchange.partial(known, states, [cohort[k] for k in members])
    kept.update({int(own.client): own for own in partial.client_states})
    sums.append(partial.sums)
  state, _ = exchange.receive(state, sums)
  got = harness.flat(built.get_model_weights(state).trainable)
  assert harness.relative(got, harness.weights(whole, expected)) < 1e-5
  assert kept.keys() == expected.clients.keys()
  for client, own in expected.clients.items():
    tf.nest.map_structure(np.testing.assert_array_equal, kept[client], own)


def _private_step(packed):
  """Returns how far two parts of four clients, clipped to 0.5, move the weights."""
  private = aggregations.private(1e-9, update_clip=0.5, statistics_clip=1e4)
  optimizer = optimizers.build_optimizer(harness.SGD)
  algorithm = fedavg.fedavg(follower.Follower(), optimizer)
  spec = harness.PACKS if packed else harness.ELEMENT
  built = _parts(algorithm, spec, private)
  start = state = built.initialize()
  cohorts = [_cohort(clients, packed) for clients in (_CLIENTS[:3], _CLIENTS[3:])]
  known = collections.OrderedDict()
  for exchange in built.exchanges.values():
    state, _ = exchange.receive(state, _sums(exchange, state, known, cohorts))
  before, after = (
    harness.flat(built.get_model_weights(s).trainable) for s in (start, state)
  )
  return np.linalg.norm(before - after) / harness.SGD.learning_rate


def test_private_clips_each_client_and_adds_noise_once(tff_context):
  # Four clients over 12 examples.
  assert 0.005 < _private_step(packed=False) <= 4 * 0.5 / 12 * 1.001


@pytest.mark.long
def test_private_clips_each_client_of_a_pack(tff_context):
  apart, packed = (_private_step(is_packed) for is_packed in (False, True))
  assert packed == pytest.approx(apart, rel=1e-2)


def test_secure_sums_have_no_parts():
  algorithm = fedavg.fedavg(follower.Follower(), _OPTIMIZER)
  with pytest.raises(ValueError, match='acts on each client'):
    _parts(algorithm, harness.ELEMENT, aggregations.secure(1.0, 8))
  masked = aggregations.distributed(1.0, 1.0, 1.0, None, 4, 8)
  with pytest.raises(ValueError, match='sums of parts have no masks'):
    _parts(algorithm, harness.ELEMENT, masked)
