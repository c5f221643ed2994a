"""Tests of FedSSL: what stays on the client between rounds, and whose it is."""

import collections
import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import byol
from tff_ssl.objectives import moco
from tff_ssl.settings import learning
from tff_ssl.settings import objectives

_RATE, _EPOCHS = 0.05, 2
_CONFIG = fedavg.Training(
  learning.SgdClients(learning_rate=_RATE, epochs=_EPOCHS), seed=harness.SEED
)
_SERVER = learning.SgdServer()
_SIZES = [2, 1, 1, 1]
_MEMBERS = harness.split(_SIZES)
# Clients come back after rounds without them, in other places.
_ROUNDS = [[0, 1, 2], [3, 2], [1, 0, 3], [3], [2, 3, 0]]


@functools.cache
def _byol():
  return byol.ByolObjective(
    harness.model(), harness.predictor(), objectives.Byol(target_momentum=0.5)
  )


@functools.cache
def _moco():
  return moco.MocoObjective(
    harness.model(),
    objectives.MocoV2(temperature=0.5, target_momentum=0.5, queue_size=6),
  )


def _build(objective, packed=False):
  return harness.build_fed_ssl(objective, _SERVER, _CONFIG, packed)


def _cohort(round, packed=False):
  return harness.cohort([_MEMBERS[k] for k in round], packed=packed)


@functools.cache
def _by_hand(objective, reset=()):
  """FedSSL with plain gradients; returns the weights and each client's state."""
  params = objective.init(tf.constant([harness.SEED, 0]))
  states = {}
  for number, round in enumerate(_ROUNDS):
    seed, mean = harness.round_seed(number), collections.Counter()
    for k in round:
      own, state = params, dict(states.get(k, objective.init_state(params)))
      for name, value in objective.init_state(params).items():
        if name.split('/')[0] in reset:
          state[name] = value
      batch = harness.tensors(harness.take(harness.arrays(), _MEMBERS[k]))
      own, states[k], _ = harness.epochs_of_sgd(
        objective, own, state, batch, seed, _EPOCHS, _RATE
      )
      share = _SIZES[k] / sum(_SIZES[j] for j in round)
      for name, value in own.items():
        mean[name] += share * value
    params = type(params)((name, mean[name]) for name in params)
  return harness.flat(params), states


@pytest.mark.long_for('_moco', 'False')
@pytest.mark.parametrize('objective', [_byol, _moco])
@pytest.mark.parametrize('packed', [False, True])
def test_states_follow_the_client(tff_context, objective, packed):
  """Rounds of changing clients, in changing places, against rounds by hand."""
  process = _build(objective(), packed)
  cohorts = [_cohort(round, packed) for round in _ROUNDS]
  states, _ = harness.rounds_of(process, cohorts)
  weights, expected = _by_hand(objective())
  start, end = (harness.weights(process, s) for s in (states[0], states[-1]))
  assert harness.relative(end - start, weights - start) < 1e-3
  for k, kept in expected.items():
    own = states[-1].clients[100 + _MEMBERS[k][0]]
    assert own.last_round == max(r for r, round in enumerate(_ROUNDS) if k in round)
    assert list(own.kept) == list(kept)
    assert harness.relative(harness.flat(own.kept), harness.flat(kept)) < 1e-4
  # With a fresh state in every round the numbers would be others.
  plain = harness.build_fedavg(objective(), _SERVER, _CONFIG)
  forgotten, _ = harness.rounds_of(plain, map(_cohort, _ROUNDS))
  assert harness.relative(
    harness.weights(plain, forgotten[-1]) - start, end - start
  ) > (1e-2)


@pytest.mark.long
def test_key_networks_can_start_each_round_as_the_global_ones(tff_context):
  """The authors' Fed-MoCo; the queue stays on the client."""
  reset = ('target',)
  build = functools.partial(fed_ssl.fed_ssl, reset=reset)
  process = harness.build(build, _moco(), _SERVER, _CONFIG)
  states, _ = harness.rounds_of(process, [_cohort(round) for round in _ROUNDS])
  weights, expected = _by_hand(_moco(), reset)
  other, _ = _by_hand(_moco())
  start, end = (harness.weights(process, s) for s in (states[0], states[-1]))
  assert harness.relative(end - start, weights - start) < 1e-3
  assert harness.relative(end - start, other - start) > 1e-3
  for k, kept in expected.items():
    own = states[-1].clients[100 + _MEMBERS[k][0]].kept
    assert set(own) == set(kept)
    assert int(own['count']) == int(kept['count']) > _SIZES[k]
    for name in kept:
      np.testing.assert_allclose(own[name], kept[name], rtol=1e-3, atol=1e-4)


def test_what_is_not_kept_cannot_be_reset():
  with pytest.raises(ValueError, match="reset has 'queue'; of what a client keeps, it"):
    processes.build(
      fed_ssl.fed_ssl(_byol(), optimizers.build_optimizer(_SERVER), reset=('queue',)),
      harness.ELEMENT,
    )


def test_a_trained_target_would_not_stay_on_its_client_and_is_refused():
  trained = objectives.Byol(stop_gradient=False)
  objective = dataclasses.replace(_byol(), settings=trained)
  optimizer = optimizers.build_optimizer(_SERVER)
  with pytest.raises(ValueError, match='ByolObjective trains its target, which'):
    fed_ssl.fed_ssl(objective, optimizer)
  fixed = dataclasses.replace(trained, target_trained=False)
  fed_ssl.fed_ssl(dataclasses.replace(objective, settings=fixed), optimizer)


def test_clients_come_last():
  parameter = _build(_byol()).process.next.type_signature.parameter
  assert [str(part.placement) for part in parameter] == ['SERVER', 'CLIENTS', 'CLIENTS']
