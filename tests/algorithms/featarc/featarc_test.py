"""Tests of FeatARC: which cluster a client takes, and what becomes of each cluster.

Expected numbers are of NumPy in float64: the networks are linear, the loss and the
choice of Algorithms 1 and 2 are written out below, and gradients are central
differences.
"""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import differences
from tests.algorithms import harness
from tests.losses import references
from tests.objectives import networks
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.featarc import cluster_models
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.augment import multiview
from tff_ssl.augment import vectors
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.federated import client_states
from tff_ssl.federated import optimizers
from tff_ssl.federated import phases
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.settings import learning
from tff_ssl.settings import objectives
from tff_ssl.settings import personal

_TEMPERATURE, _WEIGHT, _RATE, _EPOCHS = 0.5, 0.7, 0.4, 2
_NOISE = vectors.VectorConfig(noise=0.2, mask_probability=0.0)
_ELEMENT = collections.OrderedDict(
  features=tf.TensorSpec([3], tf.float32), example_id=tf.TensorSpec([], tf.int64)
)
_SIZES = [3, 2, 4, 3]
_MEMBERS = harness.split(_SIZES)
# A client's index is the id of its first example: 100, 103, 105 and 109. By it they
# begin in the clusters 0, 1, 1 and 1.
_FIRST = [100, 103, 105, 109]
# In the second round no client is of cluster 0.
_ROUNDS = [[0, 1], [2], [3, 0, 2, 1]]
_SERVER = learning.SgdServer()
_MOMENTS = ('normalised_mean', 'normalised_square', 'normalised_second')


@functools.cache
def _objective():
  encoder = projector.build_linear(3, 3, 'encoder').reading('features')
  head = projector.build_linear(3, 2, 'projector')
  model = dual_encoder.Siamese(encoder, head, _NOISE)
  return simclr.SimclrObjective(model, objectives.Simclr(temperature=_TEMPERATURE))


def _examples(positions):
  generator = np.random.default_rng(3)
  features = generator.normal(size=(sum(_SIZES), 3)).astype(np.float32)
  ids = np.arange(100, 100 + sum(_SIZES), dtype=np.int64)
  return collections.OrderedDict(
    features=features[positions], example_id=ids[positions]
  )


def _simsiam():
  head = predictor.build_predictor(harness.DIMENSION, 8)
  return simsiam.SimSiamObjective(harness.model(batch_norm=True), head)


def _config(clusters=2, weight=_WEIGHT):
  training = fedavg.Training(learning.SgdClients(_RATE, epochs=_EPOCHS), harness.SEED)
  return personal.Featarc(clusters, weight), training


@functools.cache
def _process(packed):
  optimizer = optimizers.build_optimizer(_SERVER)
  algorithm = featarc.featarc(_objective(), optimizer, *_config())
  return harness.process(algorithm, packed, fields=_ELEMENT)


def _cohort(round, packed=False):
  return harness.datasets([_examples(_MEMBERS[k]) for k in round], packed)


@functools.cache
def _ran(packed):
  return harness.rounds_of(_process(packed), [_cohort(r, packed) for r in _ROUNDS])


def _features(params, x):
  return x @ params['encoder/dense0/kernel'] + params['encoder/dense0/bias']


def _projections(params, x):
  x = _features(params, x)
  return x @ params['projector/dense0/kernel'] + params['projector/dense0/bias']


def _parts(params, fixed, x, views):
  """Returns L_ssl and (D(p+, z_g) + D(p, z_g)) / 2, both views being x+."""
  f, g = (_projections(params, view) for view in views)
  z = _projections(fixed, x)
  of_views = -(networks.cosine(f, z) + networks.cosine(g, z)) / 2
  return references.nt_xent(f, g, _TEMPERATURE), (
    of_views - networks.cosine(_projections(params, x), z)
  ) / 2


def _train(params, k, round):
  """Returns the local model after Algorithm 2, and the means of both losses."""
  batch = _examples(_MEMBERS[k])
  x, fixed, seen = batch['features'].astype(np.float64), params, []
  for epoch in range(_EPOCHS):
    seed = tf.random.experimental.stateless_fold_in(harness.round_seed(round), epoch)
    drawn = multiview.views(
      tf.constant(batch['features']),
      tf.constant(batch['example_id']),
      seed,
      (_NOISE,) * 2,
    )
    views = [view.numpy().astype(np.float64) for view in drawn]

    def loss(moved, views=views):
      ssl, alignment = _parts(moved, fixed, x, views)
      return ssl + _WEIGHT * alignment

    seen.append(_parts(params, fixed, x, views))
    gradient = differences.gradient(loss, params, step=1e-5)
    params = {name: value - _RATE * gradient[name] for name, value in params.items()}
  return params, np.mean(seen, axis=0)


@functools.cache
def _by_hand():
  """Returns Algorithm 1: of each round the clusters, choices, losses and switches."""
  initial = _objective().init(tf.constant([harness.SEED, 0]))
  start = {name: value.numpy().astype(np.float64) for name, value in initial.items()}
  clusters, own, last, history = [start, start], {}, {}, []
  for round, cohort in enumerate(_ROUNDS):
    choices, losses, found = {}, {}, {}
    for k in cohort:
      x = _examples(_MEMBERS[k])['features'].astype(np.float64)
      choices[k] = _FIRST[k] % 2
      if k in own:
        local_features = _features(own[k], x)
        found[k] = [
          -networks.cosine(_features(model, x), local_features) for model in clusters
        ]
        choices[k] = int(np.argmin(found[k]))
    for k in cohort:
      own[k], losses[k] = _train(clusters[choices[k]], k, round)
    switches = sum(choices[k] != last[k] for k in cohort if k in last)
    last.update(choices)
    after = []
    for j, model in enumerate(clusters):
      members = [k for k in cohort if choices[k] == j]
      total = sum(_SIZES[k] for k in members)
      after.append(
        {
          name: sum(_SIZES[k] / total * own[k][name] for k in members)
          if members
          else value
          for name, value in model.items()
        }
      )
    clusters = after
    history.append((clusters, choices, losses, switches, found))
  return history, own


def _models(process, state):
  weights = process.get_model_weights(state)
  return cluster_models.models({**weights.trainable, **weights.non_trainable})


@pytest.mark.long_for('False')
@pytest.mark.parametrize('packed', [False, True])
def test_three_rounds_are_those_of_numpy(tff_context, packed):
  process = _process(packed)
  states, metrics = _ran(packed)
  history, own = _by_hand()
  # The last round's choices are not left to rounding.
  assert all(abs(a - b) > 1e-3 for a, b in history[-1][4].values())
  for state, round, (clusters, choices, losses, switches, _) in zip(
    states[1:], metrics, history, strict=True
  ):
    for got, wanted in zip(_models(process, state).values(), clusters, strict=True):
      for name, value in wanted.items():
        np.testing.assert_allclose(got[name], value, rtol=2e-4, atol=2e-6, err_msg=name)
    work = round['client_work']
    counts = [list(choices.values()).count(j) for j in range(2)]
    assert [work['cluster_0_clients'], work['cluster_1_clients']] == counts
    assert work['empty_clusters'] == counts.count(0)
    assert work['switches'] == switches
    sizes = np.array([_SIZES[k] for k in choices])
    ssl, alignment = sizes / sizes.sum() @ np.array([losses[k] for k in choices])
    np.testing.assert_allclose(work['ssl_loss'], ssl, rtol=1e-5)
    np.testing.assert_allclose(work['alignment'], alignment, rtol=1e-5)
    np.testing.assert_allclose(work['loss'], ssl + _WEIGHT * alignment, rtol=1e-5)
    # What is reported is the cluster with the most examples.
    of_cluster = [sum(_SIZES[k] for k in choices if choices[k] == j) for j in range(2)]
    assert work['largest_cluster'] == np.argmax(of_cluster)
    reported = process.get_model_weights(state).trainable
    for name, value in clusters[np.argmax(of_cluster)].items():
      np.testing.assert_allclose(reported[name], value, rtol=2e-4, atol=2e-6)
  # Cluster 0 has no client in the second round: its weights stay, to the bit.
  assert metrics[1]['client_work']['cluster_0_clients'] == 0
  before, after = (_models(process, states[k])['cluster_0'] for k in (1, 2))
  for name, value in before.items():
    np.testing.assert_array_equal(after[name], value)
  for k, local_model in own.items():
    kept = states[-1].clients[_FIRST[k]].kept
    assert kept['cluster'] == history[-1][1][k]
    for name, value in local_model.items():
      np.testing.assert_allclose(kept['model'][name], value, rtol=2e-4, atol=2e-6)
    if k in history[-1][4]:
      np.testing.assert_allclose(kept['distances'], history[-1][4][k], rtol=1e-5)


def test_all_that_a_client_sends_can_go_through_secure_sums():
  """Its own kinds; that the builder takes kinds is tested of other algorithms."""
  secure = aggregations.secure(value_bound=4096.0, max_examples_per_client=64)
  algorithm = featarc.featarc(
    _simsiam(), optimizers.build_optimizer(_SERVER), *_config()
  )
  (train,) = algorithm.exchanges
  assert list(train.sent) == ['update', 'metrics', 'statistics', 'choice']
  for name, dtype in (('update', np.float32), ('choice', np.int32)):
    process = train.sent[name].create(secure, tff.to_type((dtype, [2, 3])))
    tff.test.assert_not_contains_unsecure_aggregation(process.next)
    tff.test.assert_contains_secure_aggregation(process.next)


@pytest.mark.parametrize(
  ('examples', 'moves', 'largest'),
  [([3, 2, 0], [5 / 3, 5 / 2, 0], 0), ([0, 1, 0], [0, 1, 0], 1)],
)
def test_noise_in_the_place_of_an_empty_cluster_is_no_update(examples, moves, largest):
  """As a private sum leaves it there; the choices are counted without noise."""
  algorithm = featarc.featarc(
    _objective(), optimizers.build_optimizer(_SERVER), *_config(clusters=3)
  )
  state, (train,) = algorithm.initial(), algorithm.exchanges
  params = state.global_model_weights.trainable
  metrics = dict.fromkeys(('loss', 'ssl_loss', 'alignment'), 0.0)
  spread = (tf.zeros(2), tf.ones(2), tf.eye(2))
  metrics.update(zip(_MOMENTS, spread, strict=True))
  # A mean over 5 examples of which 2 are of cluster 1: its own is 5 / 2 of that.
  aggregated = {
    'update': tf.nest.map_structure(lambda x: tf.ones([3, *x.shape]), params),
    'metrics': metrics,
    'choice': {'clients': np.sign(examples), 'weight': examples, 'switches': 0},
  }
  after, _ = train.receive(state, aggregated)
  weights = after.global_model_weights
  found = cluster_models.models({**weights.trainable, **weights.non_trainable})
  for name, value in params.items():
    got = [found[f'cluster_{j}'][name] for j in range(3)]
    for own, moved in zip(got, moves, strict=True):
      np.testing.assert_allclose(own, value - moved, rtol=1e-6)
    reported = cluster_models.reported_of(weights)[name]
    np.testing.assert_array_equal(reported, got[largest])


def test_a_client_goes_where_its_own_features_are():
  """Its local model is that of cluster 2 of three, and it was in cluster 0."""
  config = _config(clusters=3, weight=0.0)
  function = featarc.client_function(_objective(), *config)
  seeds = [tf.constant([seed, 0]) for seed in range(3)]
  models = [_objective().init(seed) for seed in seeds]
  stacked = tf.nest.map_structure(lambda *values: tf.stack(values), *models)
  shared = collections.OrderedDict(
    clusters=stacked, seed=tf.constant([1, 2]), rate=0.1, round=tf.constant(4)
  )
  examples = harness.tensors(_examples(_MEMBERS[0]))
  kept = function.first(shared)
  kept['model'] = models[2]
  state = client_states.ClientState(tf.constant(7), tf.constant(3), kept)
  sent, after = function.client_fn(shared, state, examples)
  assert after['cluster'] == 2
  assert (float(after['switched']), int(sent['choice']['switches'])) == (1, 1)
  np.testing.assert_array_equal(sent['choice']['weight'], [0, 0, 3])
  x = examples['features'].numpy().astype(np.float64)
  values = [{n: v.numpy().astype(np.float64) for n, v in m.items()} for m in models]
  expected = [
    -networks.cosine(_features(m, x), _features(values[2], x)) for m in values
  ]
  np.testing.assert_allclose(after['distances'], expected, rtol=1e-5)
  numbers = featarc.numbers_of_client(after)
  assert (numbers['cluster'], numbers['switched']) == (2, 1)
  assert numbers['distance_2'] == pytest.approx(-1, abs=1e-6)
  # A client that is new has measured nothing: its index decides, 7 modulo 3.
  new = state._replace(last_round=tf.constant(client_states.NEVER))
  _, after = function.client_fn(shared, new, examples)
  assert after['cluster'] == 1
  assert featarc.numbers_of_client(after)['distance_1'] is None
  weights = {f'clusters/{name}': value for name, value in stacked.items()}
  for one in (new, state._replace(kept=after)):
    own = featarc.personal_model(weights, one)
    np.testing.assert_array_equal(harness.flat(own), harness.flat(models[1]))


def test_objectives_that_do_not_fit_are_refused():
  optimizer = optimizers.build_optimizer(_SERVER)
  of_towers = simclr.SimclrObjective(networks.towers())
  with pytest.raises(ValueError, match='a SimclrObjective; to be aligned it'):
    featarc.featarc(of_towers, optimizer, *_config())
  with pytest.raises(ValueError, match='networks left, right; clusters need one named'):
    featarc.featarc(of_towers, optimizer, *_config(weight=0.0))
  # One cluster is FedAvg, which needs no encoder of that name.
  one = featarc.featarc(of_towers, optimizer, *_config(clusters=1, weight=0.0))
  assert isinstance(one, phases.Algorithm)
