"""Tests of FedBN: what stays on the client, and what the server averages."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.federated import local_training
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import simsiam
from tff_ssl.settings import learning

_RATE = 0.05
_PLAN = learning.SgdClients(learning_rate=_RATE, epochs=2)
_CONFIG = fedavg.Training(_PLAN, harness.SEED)
_SERVER = learning.SgdServer()
_SIZES = [3, 2, 4]
_MEMBERS = harness.split(_SIZES)
_ROUNDS = [[0, 1], [2, 0], [1, 2]]


@functools.cache
def _objective():
  head = harness.predictor()
  return simsiam.SimSiamObjective(harness.model(batch_norm=True), head)


def _cohort(round, packed=False):
  return harness.cohort([_MEMBERS[k] for k in round], packed=packed)


def _is_local(name):
  return name.startswith('encoder/norm/')


def _by_hand():
  """FedBN with the plain local training of every client, by dictionaries of names."""
  params = _objective().init(tf.constant([harness.SEED, 0]))
  norms, statistics = {}, {}
  train = harness.for_any_size(
    functools.partial(local_training.train, _objective(), _PLAN)
  )
  for number, round in enumerate(_ROUNDS):
    mean = collections.Counter()
    for k in round:
      own = type(params)(params)
      own.update(norms.get(k, {}))
      batch = harness.tensors(harness.take(harness.arrays(), _MEMBERS[k]))
      trained = train(own, batch, harness.round_seed(number), _RATE)
      norms[k] = {n: v for n, v in trained.params.items() if _is_local(n)}
      statistics[k] = batch_norm_statistics.compute(_objective(), trained.params, batch)
      for name, value in trained.params.items():
        mean[name] += _SIZES[k] / sum(_SIZES[j] for j in round) * value
    params = type(params)(
      (name, value if _is_local(name) else mean[name]) for name, value in params.items()
    )
  shared = {name: value for name, value in params.items() if not _is_local(name)}
  return shared, norms, statistics


@pytest.mark.long_for('True')
@pytest.mark.parametrize('packed', [False, True])
def test_rounds_equal_rounds_by_hand(tff_context, packed):
  process = harness.build_fedbn(_objective(), _SERVER, _CONFIG, packed)
  cohorts = [_cohort(round, packed) for round in _ROUNDS]
  states, _ = harness.rounds_of(process, cohorts)
  shared, norms, statistics = _by_hand()
  got = process.get_model_weights(states[-1]).trainable
  assert list(got) == list(shared)
  assert len(norms[0]) == 2  # Scale and shift.
  for name, value in shared.items():
    np.testing.assert_allclose(got[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
  for k in range(3):
    kept = states[-1].clients[100 + _MEMBERS[k][0]].kept
    assert list(kept.params) == list(norms[k])
    for part, wanted in ((kept.params, norms[k]), (kept.statistics, statistics[k])):
      for name, value in wanted.items():
        np.testing.assert_allclose(part[name], value, rtol=1e-3, atol=1e-5)
  # They have gone ways of their own.
  scales = [np.asarray(norms[k]['encoder/norm/gamma']) for k in range(3)]
  assert not np.allclose(scales[0], scales[1], rtol=1e-4)


def test_assembled_is_the_mean_of_clients_or_the_beginning():
  initial = _objective().init(tf.constant([0, 0]))
  shared = {name: value for name, value in initial.items() if not _is_local(name)}
  begun = fedbn.assemble(_objective(), shared, [])
  assert list(begun.trainable) == list(initial)
  for name, value in initial.items():
    np.testing.assert_array_equal(begun.trainable[name], value)
  norms = fedbn.Kept(
    collections.OrderedDict(
      (name, value) for name, value in initial.items() if _is_local(name)
    ),
    begun.non_trainable,
  )
  moved = tf.nest.map_structure(lambda x: np.asarray(x) + 2.0, norms)
  mean = fedbn.assemble(_objective(), shared, [norms, moved])
  for name, value in {**norms.params, **norms.statistics}.items():
    got = {**mean.trainable, **mean.non_trainable}[name]
    np.testing.assert_allclose(got, np.asarray(value) + 1.0, rtol=1e-6)


def test_networks_without_batch_norm_are_refused():
  head = harness.predictor()
  plain = simsiam.SimSiamObjective(harness.model(), head)
  with pytest.raises(ValueError, match='FedBN is given networks without batch norm'):
    processes.build(
      fedbn.fedbn(plain, optimizers.build_optimizer(_SERVER), _CONFIG), harness.ELEMENT
    )
