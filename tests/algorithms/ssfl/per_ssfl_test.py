"""Tests of Per-SSFL and BiLevel-SSFL; their global model is FedAvg's: limits_test."""

import collections
import functools

import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.ssfl import ssfl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.federated import client_states
from tff_ssl.federated import local_training
from tff_ssl.federated import processes
from tff_ssl.objectives import byol
from tff_ssl.settings import learning
from tff_ssl.settings import personal

_BUILD = {'per': ssfl.build_per, 'bilevel': ssfl.build_bilevel}


@pytest.fixture(scope='module')
def plain(tff_context):
  """Returns the weights of FedAvg with SimSiam after each round."""
  process = ssfl.build_fedavg()
  states, _ = harness.rounds_of(process, ssfl.cohorts())
  return [process.get_model_weights(state).trainable for state in states]


@pytest.fixture(scope='module')
def alone(plain):
  """Returns what clients have that train by themselves.

  From the global model of their first round, with no more regard for it.
  """
  train = harness.for_any_size(
    functools.partial(local_training.train, ssfl.objective(), ssfl.CONFIG.clients)
  )
  own = {}
  for number, round in enumerate(ssfl.ROUNDS):
    for k in round:
      own[k] = train(
        own.get(k, tf.nest.map_structure(tf.constant, plain[number])),
        ssfl.examples(k),
        harness.round_seed(number),
        ssfl.CONFIG.rate(tf.constant(number)),
      ).params
  return own


@pytest.mark.long_for('bilevel')
@pytest.mark.parametrize('name', _BUILD)
def test_weight_0_is_training_by_oneself(plain, alone, name):
  states, _ = harness.rounds_of(_BUILD[name](0.0), ssfl.cohorts())
  start = harness.flat(plain[0])
  assert len(alone) == len(states[-1].clients) == 4
  for k, params in alone.items():
    got, expected = harness.flat(ssfl.kept(states[-1], k)), harness.flat(params)
    assert harness.relative(got - start, expected - start) < 1e-4


def test_two_rounds_of_bilevel_by_hand():
  """One step a round: w - rate (g(w) + lambda (w - w_global)), plain gradients."""
  rate, weight = 0.125, 0.75
  function = bilevel_ssfl.client_function(
    ssfl.objective(), personal.Bilevel(weight), fedavg.Training()
  )
  rounds = [ssfl.objective().init(tf.constant([5, number])) for number in range(2)]
  kept = own = rounds[0]
  for number, params in enumerate(rounds):
    seed = harness.round_seed(number)
    shared = {'params': params, 'seed': seed, 'rate': tf.constant(rate)}
    state = client_states.ClientState(0, number - 1, kept)
    means, kept = function.client_fn(shared, state, ssfl.examples(0))
    with tf.GradientTape() as tape:
      tape.watch(own)
      loss, _ = ssfl.objective().loss(own, ssfl.examples(0), seed)
    gradient = tape.gradient(loss, own)
    assert float(means['metrics']['personal_loss']) == pytest.approx(float(loss))
    own = collections.OrderedDict(
      (name, value - rate * (gradient[name] + weight * (value - params[name])))
      for name, value in own.items()
    )
  start = harness.flat(rounds[0])
  got, expected = harness.flat(kept) - start, harness.flat(own) - start
  assert harness.relative(got, expected) < 1e-5


def test_invalid_settings_are_refused():
  near = fedavg.Training(learning.SgdClients(learning_rate=1.0, proximal_weight=0.1))
  with pytest.raises(
    ValueError, match=r'proximal_weight is 0.1; for Per-SSFL it must be 0'
  ):
    per_ssfl.per_ssfl(ssfl.objective(), None, training=near)
  with pytest.raises(ValueError, match=r'BiLevel-SSFL is a ByolObjective'):
    processes.build(
      bilevel_ssfl.bilevel_ssfl(byol.ByolObjective(harness.model(), None), None),
      harness.ELEMENT,
    )
