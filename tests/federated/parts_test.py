"""Rounds from partial sums of parts of the cohort, against the process's own rounds."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.divergence_aware import follower
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import skellam
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.federated import optimizers
from tff_ssl.federated import parts
from tff_ssl.federated import phase_graph

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


def _two_parts(packed):
  return [harness.cohort(own, packed=packed) for own in (_CLIENTS[:3], _CLIENTS[3:])]


@pytest.mark.long
@pytest.mark.parametrize(('packed', 'merged'), [(False, True), (True, False)])
def test_sums_of_two_parts_are_a_round(tff_context, packed, merged):
  process = harness.build_dcco(optimizer=harness.ADAM, packed=packed)
  cohort = harness.cohort(_CLIENTS, packed=packed)
  states, metrics = harness.rounds_of(process, [cohort] * 2)
  built = _dcco_parts(packed)
  state = built.initialize()
  cohorts = _two_parts(packed)
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
  state, cohort = built.initialize(), harness.cohort(_CLIENTS[:2])
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


def _private_step(packed):
  """Returns how far two parts of four clients, clipped to 0.5, move the weights."""
  private = aggregations.private(1e-9, update_clip=0.5, statistics_clip=1e4)
  optimizer = optimizers.build_optimizer(harness.SGD)
  algorithm = fedavg.fedavg(follower.Follower(), optimizer)
  spec = harness.PACKS if packed else harness.ELEMENT
  built = _parts(algorithm, spec, private)
  start = state = built.initialize()
  cohorts = _two_parts(packed)
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


def _distributed(noise_multiplier):
  """Returns noise of parties; some clients are clipped."""
  return aggregations.distributed(noise_multiplier, 64.0, 64.0, None, 4, 8)


def _at_parties(noise_multiplier, packed, algorithm=_DCCO, parties=2):
  """Returns the parts of an algorithm's rounds, with noise of each party."""
  spec = harness.PACKS if packed else harness.ELEMENT
  graph = phase_graph.Graph(algorithm, spec, _distributed(noise_multiplier))
  return parts.build_parts(graph, parties)


@pytest.mark.parametrize('packed', [False, True])
def test_parties_add_the_noise_and_receive_adds_none(tff_context, packed):
  # Adam would enlarge small differences.
  optimizer = optimizers.build_optimizer(harness.SGD)
  algorithm = dcco.dcco(harness.cco(), optimizer, seed=harness.SEED)
  built = _at_parties(1e-6, packed, algorithm)
  private = aggregations.private(1e-9, 64.0, 64.0)
  central = _parts(algorithm, harness.PACKS if packed else harness.ELEMENT, private)
  # States fit those of the process, so that a run may go on in either way.
  whole = phase_graph.Graph(algorithm, harness.ELEMENT, _distributed(1e-6))
  assert built.initialize.type_signature.result.member == whole.state_type.member
  cohorts = _two_parts(packed)
  weights = []
  for each in (built, central):
    state, known = each.initialize(), collections.OrderedDict()
    for exchange in each.exchanges.values():
      sums = _sums(exchange, state, known, cohorts)
      total = tf.nest.map_structure(np.add, *sums)
      state, _ = exchange.receive(state, [total])
    weights.append(harness.flat(each.get_model_weights(state).trainable))
  # A quantum is 64 / 2^16, of sums over 12 examples.
  assert 0 < harness.relative(*weights) < 1e-4


def test_each_party_adds_its_share_of_the_noise(tff_context):
  parties, multiplier = 3, 2.0
  built = _at_parties(multiplier, False, parties=parties)
  exchange = built.exchanges['statistics']
  state, cohort = built.initialize(), harness.cohort(_CLIENTS[:2])
  sums = _sums(exchange, state, collections.OrderedDict(), [cohort] * 60)
  draws = np.stack([harness.flat(own['statistics']) for own in sums])
  spread = np.sqrt(np.mean(np.var(draws, axis=0, ddof=1)))
  quanta = skellam.QUANTA * multiplier
  # Of more than a thousand draws: six times the error of the estimate.
  assert draws.size > 1000
  assert spread == pytest.approx(quanta / np.sqrt(parties), rel=0.13)
  # Metrics, which `distributed` has no norm for, do not leave in any total.
  np.testing.assert_array_equal(harness.flat(sums[0]['metrics']), 0)
  assert sums[0]['weight'] == 3


def test_parties_need_noise_that_is_distributed():
  private = aggregations.private(1.0, update_clip=1.0, statistics_clip=1.0)
  graph = phase_graph.Graph(_DCCO, harness.ELEMENT, private)
  with pytest.raises(ValueError, match='parties is 2; it must be None'):
    parts.build_parts(graph, parties=2)
