"""Tests of FedSC: clients against NumPy's mixture of matrices, and against DCCO."""

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.aggregators import combine
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.algorithms.statistics import fedsc
from tff_ssl.federated import client_states
from tff_ssl.losses import spectral
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning

_OBJECTIVE = statistics.StatisticsObjective(
  harness.model(), spectral.SpectralLoss(mu=0.5)
)
_SENT = {
  'statistics': combine.STATISTICS,
  'metrics': combine.METRICS,
  'update': combine.UPDATE,
}
_SEED = tf.constant([5, 6])
_SIZES = (1, 2, 5, 4)


def _batches(sizes=_SIZES):
  return [
    harness.tensors(harness.take(harness.arrays(), positions))
    for positions in harness.split(sizes)
  ]


def _matrix(statistics):
  return statistics['correlation'].numpy()


def _shared(params, correlation, examples, collected=3, round=4):
  return {
    'params': params,
    'seed': _SEED,
    'round': tf.constant(round),
    'correlation': tf.constant(correlation),
    'num_examples': tf.constant(float(examples)),
    'collected': tf.constant(collected),
  }


_ONE_STEP = learning.StepClients()


def _state(correlation, examples, last_round):
  kept = {'correlation': tf.constant(correlation), 'num_examples': float(examples)}
  return client_states.ClientState(0, tf.constant(last_round), kept)


def _visit(shared, state, batch, steps=_ONE_STEP):
  function = fedsc.client_function(_OBJECTIVE, steps)
  return harness.visit(function, _SENT, shared, batch, state)


def _step(params, batch, mixture):
  """Returns the gradient of -2 tr R_k+ + 2 tr(R_k M), M fixed."""
  with tf.GradientTape() as tape:
    tape.watch(params)
    own = _OBJECTIVE.statistics(params, batch, _SEED)
    loss = -2 * own['agreement'] + 2 * tf.reduce_sum(own['correlation'] * mixture)
  return harness.flat(tape.gradient(loss, params))


@pytest.mark.parametrize('steps', [_ONE_STEP, learning.StepClients(0.1, 3)])
def test_with_fresh_statistics_it_is_dcco(steps):
  """All were in the round before, at the same weights and with the same views."""
  params = _OBJECTIVE.init(_SEED)
  batches = _batches()
  whole = harness.tensors(harness.arrays())
  fresh = _OBJECTIVE.statistics(params, whole, _SEED)
  shared = _shared(params, _matrix(fresh), 12)
  train = dcco.train(_OBJECTIVE, steps)
  total = 0.0
  for batch, size in zip(batches, _SIZES, strict=True):
    own = _matrix(_OBJECTIVE.statistics(params, batch, _SEED))
    result, _ = _visit(shared, _state(own, size, 3), batch, steps)
    expected = train.client_fn({**shared, 'statistics': fresh}, batch)['update']
    got = harness.flat(result.means['update'])
    assert harness.relative(got, harness.flat(expected)) < 1e-4
    total = total + size / 12 * got
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, _ = _OBJECTIVE.loss(params, whole, _SEED)
  union = harness.flat(tape.gradient(loss, params))
  assert (harness.relative(total, union) < 1e-5) == (steps is _ONE_STEP)


@pytest.mark.parametrize('last_round', [-1, 2, 3])
def test_a_client_takes_out_what_it_has_sent_itself(last_round):
  params = _OBJECTIVE.init(_SEED)
  batch = _batches()[2]
  generator = np.random.default_rng(0)
  known, before = generator.normal(size=(2, 4, 4)).astype(np.float32) / 10
  state = _state(before, 3, last_round)
  result, after = _visit(_shared(params, known, 20), state, batch)
  was_there = last_round == 3
  others = (20 * known - 3 * before) / 17 if was_there else known
  share = 5 / (5 + (17 if was_there else 20))
  own = _matrix(_OBJECTIVE.statistics(params, batch, _SEED))
  expected = _step(params, batch, share * own + (1 - share) * others)
  assert harness.relative(harness.flat(result.means['update']), expected) < 1e-5
  np.testing.assert_allclose(result.means['statistics']['correlation'], own, rtol=1e-6)
  np.testing.assert_allclose(after.kept['correlation'], own, rtol=1e-6)
  assert int(after.last_round) == 4
  assert float(after.kept['num_examples']) == 5


def test_in_the_first_round_a_client_contrasts_its_own_alone():
  params = _OBJECTIVE.init(_SEED)
  batch = _batches()[2]
  zeros = np.zeros((4, 4), np.float32)
  shared = _shared(params, zeros, 0, collected=-1, round=0)
  result, _ = _visit(shared, _state(zeros, 0, -1), batch)
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, _ = _OBJECTIVE.loss(params, batch, _SEED)
  expected = harness.flat(tape.gradient(loss, params))
  assert harness.relative(harness.flat(result.means['update']), expected) < 1e-5


def test_rounds_share_the_matrix_of_the_round_before(tff_context):
  config = (learning.StepClients(0.5), harness.SEED)
  sgd = learning.SgdServer()
  process = harness.build(fedsc.fedsc, _OBJECTIVE, sgd, config)
  split = harness.split(_SIZES)
  cohorts = [harness.cohort(c) for c in (split[:3], [[], []], split[1:])]
  states, metrics = harness.rounds_of(process, cohorts)
  kept = [state.server.extra for state in states]
  params = process.get_model_weights(states[0]).trainable
  seen = harness.tensors(harness.take(harness.arrays(), range(8)))
  sent = _OBJECTIVE.statistics(params, seen, harness.round_seed(0))
  np.testing.assert_allclose(kept[1]['correlation'], _matrix(sent), rtol=1e-4)
  loss = float(_OBJECTIVE.loss_of(sent))
  assert metrics[0]['client_work']['loss'] == pytest.approx(loss, rel=1e-4)
  # A round without examples changes nothing.
  assert int(kept[2]['collected']) == 0
  np.testing.assert_array_equal(kept[2]['correlation'], kept[1]['correlation'])
  assert int(kept[3]['collected']) == 2
  assert float(kept[3]['num_examples']) == 11
  # The third round, by hand: two clients of it were in the first.
  params = tf.nest.map_structure(
    tf.constant, process.get_model_weights(states[2]).trainable
  )
  before, mean = kept[1]['correlation'], 0.0
  seed = harness.round_seed(2)
  for positions in split[1:]:
    n = len(positions)
    batch = harness.tensors(harness.take(harness.arrays(), positions))
    own = states[1].clients.get(100 + positions[0])
    took_out = own.kept['correlation'] if own else 0.0
    m = n if own else 0
    others = (8 * before - m * took_out) / (8 - m)
    with tf.GradientTape() as tape:
      tape.watch(params)
      local = _OBJECTIVE.statistics(params, batch, seed)
      matrix = local['correlation']
      q = n / (n + 8 - m)
      loss = (
        -2 * local['agreement']
        + q * tf.reduce_sum(matrix**2)
        + 2 * (1 - q) * tf.reduce_sum(matrix * others)
      )
    mean = mean + n / 11 * harness.flat(tape.gradient(loss, params))
  step = harness.weights(process, states[2]) - harness.weights(process, states[3])
  assert harness.relative(step, 0.5 * mean) < 1e-4
