"""Batch norm of clients that keep a model: whose population statistics are where."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import framework
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import la_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.encoders import predictor
from tff_ssl.federated import client_states
from tff_ssl.federated import server
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import byol
from tff_ssl.objectives import simsiam
from tff_ssl.settings import learning
from tff_ssl.settings import personal

_CONFIG = fedavg.Training(learning.SgdClients(learning_rate=0.1), seed=harness.SEED)
_HEADS = harness.model(batch_norm=True), predictor.build_predictor(harness.DIMENSION, 8)
_SIMSIAM = simsiam.SimSiamObjective(*_HEADS)
_BYOL = byol.ByolObjective(*_HEADS)
_PERSONAL = {
  'per': per_ssfl.client_function(_SIMSIAM, personal.Per(), _CONFIG),
  'bilevel': bilevel_ssfl.client_function(_SIMSIAM, personal.Bilevel(), _CONFIG),
}


def _examples(positions):
  return harness.tensors(harness.take(harness.arrays(), positions))


def _shared(objective):
  return {
    'params': server.initial_weights(objective, harness.SEED).trainable,
    'seed': harness.round_seed(0),
    'rate': tf.constant(0.1),
    'round': tf.constant(0),
  }


def _state(kept):
  return client_states.ClientState(tf.constant(0), tf.constant(-1), kept)


def _after(shared, update):
  return collections.OrderedDict(
    (name, shared['params'][name] - value) for name, value in update.items()
  )


def _assert_same(got, expected):
  assert expected
  for name, value in expected.items():
    np.testing.assert_allclose(got[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.long_for('bilevel')
@pytest.mark.parametrize('name', _PERSONAL)
def test_each_of_two_models_has_the_population_that_it_makes(name):
  function, examples = _PERSONAL[name], _examples(range(5))
  shared = _shared(_SIMSIAM)
  first = function.first(shared)
  _assert_same(first, batch_norm_statistics.initial(_SIMSIAM))
  means, kept = function.client_fn(shared, _state(first), examples)
  theirs = _after(shared, means['update'])
  _assert_same(
    means['statistics'], batch_norm_statistics.compute(_SIMSIAM, theirs, examples)
  )
  own = batch_norm_statistics.without_statistics(_SIMSIAM, kept)
  assert list(own) == list(theirs)
  _assert_same(kept, batch_norm_statistics.compute(_SIMSIAM, own, examples))
  # A client that comes back trains its parameters, and not its statistics.
  shared['params'] = theirs
  _, again = function.client_fn(shared, _state(kept), _examples([5, 6]))
  assert list(again) == list(kept)
  later = batch_norm_statistics.without_statistics(_SIMSIAM, again)
  _assert_same(again, batch_norm_statistics.compute(_SIMSIAM, later, _examples([5, 6])))
  different = [
    harness.relative(again[x], kept[x]) > 1e-3
    for x in batch_norm_statistics.initial(_SIMSIAM)
  ]
  assert any(different)


def _own(kept):
  return framework.personal_model({}, _state(kept)._replace(last_round=0))


@pytest.mark.long_for('online')
@pytest.mark.parametrize('averaged', ['online', 'target'])
def test_the_population_is_that_of_the_encoder_that_is_averaged(averaged):
  config = personal.FedEMA(averaged)
  networks = online_networks.Networks(_BYOL, config)
  function = framework.client_function(
    networks, _CONFIG, fedema.online_update_of(config)
  )
  shared, examples = _shared(_BYOL), _examples(range(5))
  first = function.first(shared)
  _assert_same(_own(first), batch_norm_statistics.initial(_BYOL))
  means, kept = function.client_fn(shared, _state(first), examples)
  sent = _after(shared, means['update'])
  _assert_same(
    means['statistics'], batch_norm_statistics.compute(_BYOL, sent, examples)
  )
  # A client's own encoder is the online one, with the population that it makes.
  own = _own(kept)
  assert set(own) == set(kept['networks']) | set(batch_norm_statistics.initial(_BYOL))
  _assert_same(own, batch_norm_statistics.compute(_BYOL, kept['networks'], examples))
  if averaged == online_networks.TARGET:
    different = [
      harness.relative(own[x], y) > 1e-3 for x, y in means['statistics'].items()
    ]
    assert any(different)
  _, again = function.client_fn(shared, _state(kept), _examples([5, 6]))
  later = batch_norm_statistics.compute(_BYOL, again['networks'], _examples([5, 6]))
  _assert_same(_own(again), later)


def test_an_adapted_model_has_the_population_of_its_client():
  everything = batch_norm_statistics.begin(_SIMSIAM, _shared(_SIMSIAM)['params'])
  adapt = la_ssfl.la_ssfl(_SIMSIAM, rate=0.1)
  examples = _examples(range(4))
  adapted = adapt(everything, examples)
  own = batch_norm_statistics.without_statistics(_SIMSIAM, adapted)
  assert any(np.any(own[name] != everything[name]) for name in own)
  _assert_same(adapted, batch_norm_statistics.compute(_SIMSIAM, own, examples))
  nothing = adapt(everything, _examples([]))
  _assert_same(nothing, everything)
