"""Tests of FedEMA and FedU against rounds in NumPy, and of what they send."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.divergence_aware import diverging
from tests.algorithms.divergence_aware import follower
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import fedu
from tff_ssl.algorithms.divergence_aware import framework
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.objectives import byol
from tff_ssl.objectives import simsiam
from tff_ssl.settings import learning
from tff_ssl.settings import objectives
from tff_ssl.settings import personal

_SERVER = learning.SgdServer()
_PACKED = (
  'autoscaler',
  'an online first target',
  'set in the first round',
  'of the training',
  'fedu by a quantile',
)


def _build(config, objective=None, packed=False):
  is_ema = isinstance(config, personal.FedEMA)
  return harness.build(
    fedema.fedema if is_ema else fedu.fedu,
    objective or follower.Follower(),
    _SERVER,
    (config, diverging.TRAINING),
    packed,
  )


def _cohort(round, packed=False):
  return harness.cohort([diverging.MEMBERS[k] for k in round], packed=packed)


def _key(k):
  return 100 + diverging.MEMBERS[k][0]


@functools.cache
def _reference(name):
  reference = diverging.Reference(diverging.CONFIGS[name])
  for number, cohort in enumerate(diverging.ROUNDS):
    reference.round(number, cohort)
  return reference


def _tensors(networks):
  shapes = {
    name: (1, 1, 1, 2) if follower.ENCODER in name else (2,) for name in networks
  }
  return collections.OrderedDict(
    (name, tf.constant(np.reshape(value, shapes[name]), tf.float32))
    for name, value in networks.items()
  )


@pytest.mark.parametrize('name', diverging.CONFIGS)
def test_a_client_receives_and_sends_what_its_options_say(name):
  config, generator = diverging.CONFIGS[name], np.random.default_rng(0)
  reference = diverging.Reference(config)
  reference.model = {n: 0.3 * generator.normal(size=2) for n in follower.ONLINE}
  own = {n: 0.3 * generator.normal(size=2) for n in follower.begin(reference.model)}
  reference.clients, reference.moved, reference.mean = {0: own}, {0: 0.4}, 0.3
  expected = reference.receive(0, 1)
  method = fedema if isinstance(config, personal.FedEMA) else fedu
  update = method.online_update_of(config)
  networks = online_networks.Networks(follower.Follower(), config)
  received, kept = _tensors(reference.model), _tensors(own)
  distance = online_networks.NORMS[update.norm](networks.measured(received), kept)
  if config.divergence_of == online_networks.TRAINING:
    distance = tf.constant(0.4)
  shares = update.shares(distance, tf.zeros([]), {framework.THRESHOLD: 0.3})
  got = networks.receive(received, kept, shares.encoder, shares.predictor)
  assert got.keys() == expected.keys()
  for part, value in expected.items():
    np.testing.assert_allclose(np.ravel(got[part]), value, rtol=1e-5, err_msg=part)
  for part, value in networks.sent(kept).items():
    of_target = config.averaged == 'target' and part != follower.PREDICTOR
    wanted = own[f'target/{part}' if of_target else part]
    np.testing.assert_allclose(np.ravel(value), wanted, rtol=1e-6)
  first = networks.in_round(networks.objective, tf.constant(True))
  assert float(first.momentum) == (0.0 if config.first_target == 'online' else 0.5)


# Above are all options; through TFF averaged targets, lambdas of the first round, the
# authors' divergence and the quantile, apart or packed.
@pytest.mark.long_for(
  'of the encoder alone-False',
  'set in the first round-True',
  'constant, of the predictor alone-False',
  'averaged targets as targets-False',
  'alone-False',
  'an online first target-False',
  'autoscaler-True',
  'a large constant scaler-False',
  'a constant scaler by l2-False',
  'an online first target-True',
  'of the training-False',
  'of the training, by l2-False',
  'fedu, of the training-False',
  'fedu by a quantile-True',
)
@pytest.mark.parametrize(
  ('name', 'packed'),
  [*((name, False) for name in diverging.CONFIGS), *((name, True) for name in _PACKED)],
)
def test_rounds_against_numpy(tff_context, name, packed):
  reference, process = _reference(name), _build(diverging.CONFIGS[name], packed=packed)
  state = process.initialize()
  for number, cohort in enumerate(diverging.ROUNDS):
    state, metrics = process.next(state, _cohort(cohort, packed))
    wanted = {k: reference.log[number, k] for k in cohort}
    for k in cohort:
      told = process.process.graph.algorithm.client_report(state.clients[_key(k)].kept)
      for number_name, value in told.items():
        assert value == pytest.approx(wanted[k][number_name], rel=1e-4), (k, told)
    old = [k for k in cohort if wanted[k]['divergence'] is not None]
    size = sum(diverging.SIZES[k] for k in old)
    work = metrics['client_work']
    total = sum(diverging.SIZES[k] for k in cohort)
    assert work['returning'] == pytest.approx(size / total)
    if reference.thresholds:
      assert work['threshold'] == pytest.approx(reference.thresholds[number], rel=1e-4)
    for number_name in ('mu', 'divergence'):
      summed = sum(diverging.SIZES[k] * wanted[k][number_name] for k in old)
      mean = summed / max(size, 1)
      assert work[number_name] == pytest.approx(mean, rel=1e-4)
  model = process.get_model_weights(state).trainable
  for part, value in reference.model.items():
    np.testing.assert_allclose(np.ravel(model[part]), value, rtol=1e-4, atol=1e-6)
  for k, networks in reference.clients.items():
    own = state.clients[_key(k)].kept['networks']
    assert own.keys() == networks.keys()
    for part, value in networks.items():
      np.testing.assert_allclose(np.ravel(own[part]), value, rtol=1e-4, atol=1e-6)


@functools.cache
def _byol(stop_gradient=True):
  settings = objectives.Byol(target_momentum=0.5, stop_gradient=stop_gradient)
  return byol.ByolObjective(harness.model(), harness.predictor(), settings)


@pytest.mark.long
def test_a_target_that_is_trained_stays_with_its_client(tff_context):
  process = _build(personal.FedEMA(scaler=0.5), _byol(stop_gradient=False))
  states, _ = harness.rounds_of(process, map(_cohort, diverging.ROUNDS[:2]))
  names = process.get_model_weights(states[-1]).trainable.keys()
  assert {name.split('/')[0] for name in names} == {'encoder', 'projector', 'predictor'}
  targets = [
    harness.flat([v for n, v in own.kept['networks'].items() if n.startswith('target')])
    for own in states[-1].clients.values()
  ]
  assert len(targets) == 4
  assert harness.relative(targets[0], targets[1]) > 1e-3


def test_the_second_exchange_is_counted_where_clients_are_new(tff_context):
  """Encoder and projector once more, of 2 x 2 float32; up a weight and a count."""
  cohorts = [_cohort([0, 1]), _cohort([0, 1, 2])]
  plain, more = (
    harness.rounds_of(_build(config), cohorts)[1]
    for config in (personal.FedEMA(), personal.FedEMA(autoscaler='first_round'))
  )
  for number, (clients, new) in enumerate(((2, 2), (3, 1))):
    before, after = (m[number]['client_work'] for m in (plain, more))
    assert after['bytes_down'] == before['bytes_down'] + new * 2 * 2 * 4
    assert after['bytes_up'] == before['bytes_up'] + clients * (4 + 4)
    assert (after['clients'], after['new_clients']) == (clients, new)
    assert (before['outlying_clients'], after['outlying_clients']) == (0, 0)


def test_a_discarded_client_is_discarded_in_both_exchanges(tff_context):
  process = _build(personal.FedEMA(autoscaler='first_round'))
  cohort = [*_cohort([0]), harness.broken([5])]
  states, metrics = harness.rounds_of(process, [cohort])
  work = metrics[0]['client_work']
  assert (work['nonfinite_clients'], work['new_clients']) == (1, 1)
  assert states[-1].clients[105].last_round == -1
  assert states[-1].clients[_key(0)].last_round == 0


def test_a_client_without_examples_is_empty_and_nothing_else(tff_context):
  process = _build(personal.FedEMA(autoscaler='first_round'))
  _, metrics = harness.rounds_of(process, [[*_cohort([0]), *harness.cohort([[]])]])
  work = metrics[0]['client_work']
  counts = ('clients', 'empty_clients', 'nonfinite_clients', 'new_clients')
  assert [work[name] for name in counts] == [2, 1, 0, 1]


def test_the_quantile_costs_a_number_each_way(tff_context):
  cohorts = [_cohort([0, 1])]
  plain, more = (
    harness.rounds_of(_build(config), cohorts)[1][0]['client_work']
    for config in (diverging.CONFIGS['fedu'], diverging.CONFIGS['fedu by a quantile'])
  )
  assert more['bytes_down'] == plain['bytes_down'] + 2 * 4
  assert more['bytes_up'] == plain['bytes_up'] + 2 * 4


def test_unmeasured_numbers_are_not_shown():
  update = fedema.online_update_of(personal.FedEMA())
  kept = {'mu': 0.0, 'divergence': 0.0, 'lambda': 0.0, 'returning': 0.0}
  tell = framework.numbers_of_client(update)
  assert tell(kept) == {'mu': 0.0, 'divergence': None, 'lambda': None}
  returned = {**kept, 'mu': 0.7, 'divergence': 1.5, 'lambda': 2.0, 'returning': 1.0}
  assert tell(returned) == {'mu': 0.7, 'divergence': 1.5, 'lambda': 2.0}


@pytest.mark.parametrize(
  ('sharing', 'message'),
  [
    ({'averaged': 'target'}, 'has no target network'),
    ({'first_target': 'online'}, "which has no target that .*, it must be 'copy'"),
  ],
)
def test_networks_that_are_missing(sharing, message):
  objective = simsiam.SimSiamObjective(harness.model(), None)
  with pytest.raises(ValueError, match=message):
    online_networks.Networks(objective, personal.Sharing(**sharing))
