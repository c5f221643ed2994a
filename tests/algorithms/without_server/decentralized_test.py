"""Tests of learning without a server: rounds in NumPy, the limit FedAvg."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import linear_model
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.without_server import decentralized
from tff_ssl.algorithms.without_server import topology
from tff_ssl.encoders import predictor
from tff_ssl.federated import packs
from tff_ssl.federated import processes
from tff_ssl.objectives import simsiam
from tff_ssl.settings import learning

_NUMBER = tf.TensorSpec([], tf.int32)
_ELEMENT = collections.OrderedDict(linear_model.ELEMENT, client=_NUMBER)
# The second node has no example: it averages, but does not train.
_SIZES = (3, 0, 5, 1, 2)
_RATE, _EPOCHS = 0.25, 2
_TREE = topology.tree(len(_SIZES))


def _nodes():
  """Returns the examples of each node, all ids different."""
  nodes = linear_model.clients(_SIZES)
  for number, own in enumerate(nodes):
    own['client'] = np.full(_SIZES[number], number, np.int32)
  return nodes


def _cohort(packed=False, order=None):
  nodes = _nodes()
  return harness.datasets([nodes[k] for k in order or range(len(nodes))], packed)


def _config(graph=_TREE):
  return graph, fedavg.Training(learning.SgdClients(_RATE, epochs=_EPOCHS))


def _build(config, packed=False, aggregation=None):
  return processes.build(
    decentralized.decentralized(linear_model.LinearObjective(), *config),
    packs.PackSpec(_ELEMENT) if packed else _ELEMENT,
    aggregation,
  )


def _models(state):
  """Returns the model of each node, float64 [K, 2]."""
  mean = np.asarray(state.global_model_weights.trainable['w'], np.float64)
  return mean + np.asarray(state.extra[decentralized.OFFSETS]['w'], np.float64)


def _metropolis(graph):
  """Returns W, written from its definition with loops over the nodes."""
  neighbours = collections.defaultdict(set)
  for i, j in graph.edges:
    neighbours[i].add(j)
    neighbours[j].add(i)
  mixing = np.zeros((graph.nodes, graph.nodes))
  for i in range(graph.nodes):
    for j in neighbours[i]:
      mixing[i, j] = 1 / (1 + max(len(neighbours[i]), len(neighbours[j])))
    mixing[i, i] = 1 - sum(mixing[i, j] for j in neighbours[i])
  return mixing


def _oracle(graph, rates):
  """Returns the models of all nodes after each round, in float64, and the trained."""
  models, mixing = np.tile([0.5, -1.0], (graph.nodes, 1)), _metropolis(graph)
  after, before = [], []
  for rate in rates:
    trained = models.copy()
    for k, node in enumerate(_nodes()):
      x, y = node['x'].astype(np.float64), node['y'].astype(np.float64)
      for _ in range(_EPOCHS if len(y) else 0):
        trained[k] -= rate * x.T @ (x @ trained[k] - y) / len(y)
    models = mixing @ trained
    before.append(trained)
    after.append(models)
  return after, before


def _distance(models):
  apart = models - models.mean(axis=0)
  return np.sqrt(np.mean(np.sum(apart**2, axis=1)))


@pytest.mark.parametrize('packed', [False, True])
def test_three_rounds_are_those_of_each_node_by_itself(tff_context, packed):
  process = _build(_config(), packed)
  states, metrics = harness.rounds_of(process, [_cohort(packed)] * 3)
  after, before = _oracle(_TREE, [_RATE] * 3)
  for t in range(3):
    np.testing.assert_allclose(_models(states[t + 1]), after[t], atol=1e-6)
    mean = after[t].mean(axis=0)
    np.testing.assert_allclose(harness.weights(process, states[t + 1]), mean, atol=1e-6)
    told = metrics[t]['finalizer']
    assert told['consensus_distance'] == pytest.approx(_distance(after[t]), rel=1e-4)
    assert told['distance_before_averaging'] == pytest.approx(
      _distance(before[t]), rel=1e-4
    )
    assert told['edges'] == 4
    assert told['spectral_gap'] == pytest.approx(_TREE.spectral_gap)
    work = metrics[t]['client_work']
    # Two float32 numbers, both ways over each edge.
    assert work['bytes_up'] == work['bytes_down'] == 2 * 4 * 2 * 4
    assert work['empty_clients'] == 1
  # Nodes differ: it is not FedAvg.
  assert _distance(after[2]) > 0.05


def test_a_node_with_a_far_longer_step_is_counted(tff_context):
  cohort = _cohort()
  cohort[0] = cohort[0].map(lambda x: collections.OrderedDict(x, y=1e5 * x['y']))
  _, (metrics,) = harness.rounds_of(_build(_config()), [cohort])
  assert metrics['client_work']['outlying_clients'] == 1


def test_the_order_of_the_nodes_does_not_matter(tff_context):
  process = _build(_config())
  orders = (range(5), [4, 2, 0, 3, 1])
  first, second = (
    _models(harness.rounds_of(process, [_cohort(order=order)] * 2)[0][-1])
    for order in orders
  )
  np.testing.assert_allclose(second, first, atol=1e-6)


@pytest.mark.long
def test_the_complete_graph_is_fedavg(tff_context):
  """With nodes that count equally, batch norm, and several steps a round."""
  objective = simsiam.SimSiamObjective(
    harness.model(batch_norm=True), predictor.build_predictor(harness.DIMENSION, 16)
  )
  training = fedavg.Training(
    learning.SgdClients(learning_rate=0.1, weighting='uniform', epochs=2, batch_size=2),
    seed=harness.SEED,
  )
  members = harness.split([4, 4, 4])
  examples = harness.arrays()
  plain = harness.build_fedavg(objective, learning.SgdServer(), training)
  expected, plain_metrics = harness.rounds_of(plain, [harness.cohort(members)] * 3)
  examples['client'] = np.repeat(np.arange(3), 4).astype(np.int32)
  process = processes.build(
    decentralized.decentralized(objective, topology.complete(3), training),
    collections.OrderedDict(harness.ELEMENT, client=_NUMBER),
  )
  cohort = harness.cohort(members, examples)
  states, metrics = harness.rounds_of(process, [cohort] * 3)
  for got, want in zip(states[1:], expected[1:], strict=True):
    for part in ('trainable', 'non_trainable'):
      a, b = (
        harness.flat(getattr(state.global_model_weights, part)) for state in (got, want)
      )
      assert a.size
      assert harness.relative(a, b) < 1e-6
  for got, want in zip(metrics, plain_metrics, strict=True):
    assert got['client_work']['loss'] == pytest.approx(
      want['client_work']['loss'], rel=1e-5
    )
    assert got['finalizer']['consensus_distance'] < 1e-6
    assert got['finalizer']['distance_before_averaging'] > 1e-3


def test_one_node_trains_alone(tff_context):
  process = _build(_config(topology.ring(1)))
  states, metrics = harness.rounds_of(process, [_cohort()[:1]])
  # The first node of any graph trains so before it averages.
  _, before = _oracle(_TREE, [_RATE])
  np.testing.assert_allclose(_models(states[1])[0], before[0][0], rtol=1e-5)
  assert metrics[0]['client_work']['bytes_up'] == 0
  assert metrics[0]['finalizer']['spectral_gap'] == 1


def test_a_model_that_is_set_moves_all_nodes(tff_context):
  process = _build(_config())
  states, _ = harness.rounds_of(process, [_cohort()])
  weights = process.get_model_weights(states[1])
  moved = {'w': np.asarray(weights.trainable['w']) + np.float32(2)}
  new = type(weights)(collections.OrderedDict(moved), weights.non_trainable)
  state = process.set_model_weights(states[1], new)
  np.testing.assert_allclose(_models(state), _models(states[1]) + 2, rtol=1e-6)


def test_mismatched_arguments_are_refused():
  with pytest.raises(ValueError, match='ring has 101 nodes; there may be at most 100'):
    _build(_config(topology.ring(101)))


def test_a_number_without_a_node_is_refused(tff_context):
  process = _build(_config(topology.ring(4)))
  with pytest.raises(Exception, match=r'must be in \[0, 4\)'):
    harness.rounds_of(process, [_cohort()])
