"""Tests of Per-SSFL and BiLevel-SSFL: their global model, and their limits."""

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import ssfl
from tff_ssl.algorithms import bilevel_ssfl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import local_plan
from tff_ssl.algorithms import local_training
from tff_ssl.algorithms import per_ssfl
from tff_ssl.objectives import byol

_BUILD = {'per': ssfl.build_per, 'bilevel': ssfl.build_bilevel}


@pytest.fixture(scope='module')
def plain(tff_context):
  """Returns states and metrics of FedAvg with SimSiam."""
  process = ssfl.build_fedavg()
  states, metrics = harness.rounds_of(process, ssfl.cohorts())
  weights = [process.get_model_weights(state).trainable for state in states]
  return weights, [m['client_work'] for m in metrics]


@pytest.mark.parametrize('name', _BUILD)
@pytest.mark.parametrize('weight', [0.0, 0.5])
def test_the_global_model_is_fedavg_s(plain, name, weight):
  """Bit for bit, whatever the personal models do."""
  process = _BUILD[name](weight)
  states, metrics = harness.rounds_of(process, ssfl.cohorts())
  for state, expected in zip(states, plain[0], strict=True):
    np.testing.assert_array_equal(
      harness.weights(process, state), harness.flat(expected)
    )
  for got, expected in zip(metrics, plain[1], strict=True):
    for metric, value in expected.items():
      if not metric.startswith('bytes'):
        assert got['client_work'][metric] == pytest.approx(value, rel=1e-6), metric
    assert got['client_work']['personal_loss'] != 0
    assert got['client_work']['personal_encoding_std'] > 0


@pytest.mark.parametrize('name', _BUILD)
def test_weight_0_is_training_by_oneself(plain, name):
  """From the global model of the first round, with no more regard for it."""
  states, _ = harness.rounds_of(_BUILD[name](0.0), ssfl.cohorts())
  own = {}
  for number, round in enumerate(ssfl.ROUNDS):
    for k in round:
      own[k] = local_training.train(
        ssfl.objective(),
        ssfl.CONFIG.local,
        own.get(k, tf.nest.map_structure(tf.constant, plain[0][number])),
        ssfl.examples(k),
        harness.round_seed(number),
        ssfl.CONFIG.rate(tf.constant(number)),
      ).params
  for k, params in own.items():
    got, expected = harness.flat(ssfl.kept(states[-1], k)), harness.flat(params)
    start = harness.flat(plain[0][0])
    assert harness.relative(got - start, expected - start) < 1e-4


@pytest.mark.parametrize('name', _BUILD)
def test_the_weight_changes_personal_models(tff_context, name):
  own = []
  for weight in (0.0, 0.5):
    states, _ = harness.rounds_of(_BUILD[name](weight), ssfl.cohorts())
    own.append(harness.flat(ssfl.kept(states[-1], 0)))
  assert harness.relative(own[1], own[0]) > 1e-4


def test_two_rounds_of_bilevel_by_hand(tff_context):
  """One step a round: w - rate (g(w) + lambda (w - w_global)), plain gradients."""
  rate, weight = 0.125, 0.75
  config = fedavg.FedAvgConfig(
    local_plan.LocalPlan(), client_learning_rate=rate, seed=harness.SEED
  )
  process = ssfl.build_bilevel(weight, config=config)
  states, _ = harness.rounds_of(process, ssfl.cohorts([[0, 1], [0, 1]]))
  weights = [process.get_model_weights(s).trainable for s in states]
  own = weights[0]
  for number in range(2):
    with tf.GradientTape() as tape:
      own = {name: tf.constant(value) for name, value in own.items()}
      tape.watch(own)
      loss, _ = ssfl.objective().loss(own, ssfl.examples(0), harness.round_seed(number))
    gradient = tape.gradient(loss, own)
    own = {
      name: value - rate * (gradient[name] + weight * (value - weights[number][name]))
      for name, value in own.items()
    }
  start = harness.flat(weights[0])
  got = harness.flat(ssfl.kept(states[-1], 0)) - start
  expected = harness.flat([own[name] for name in weights[0]]) - start
  assert harness.relative(got, expected) < 1e-4


def test_what_can_not_be_is_refused():
  with pytest.raises(ValueError, match=r'consensus_weight is -1; .* at least 0'):
    per_ssfl.PerSSFLConfig(consensus_weight=-1)
  with pytest.raises(ValueError, match=r'proximity_weight is -1; .* at least 0'):
    bilevel_ssfl.BiLevelConfig(proximity_weight=-1)
  near = fedavg.FedAvgConfig(local_plan.LocalPlan(proximal_weight=0.1))
  with pytest.raises(ValueError, match=r'proximal_weight is 0.1; Per-SSFL has none'):
    per_ssfl.PerSSFLConfig(near)
  with pytest.raises(ValueError, match=r'BiLevel-SSFL is a ByolObjective'):
    bilevel_ssfl.build_bilevel_ssfl(
      byol.ByolObjective(harness.model(), None), harness.ELEMENT, None
    )
