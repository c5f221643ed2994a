"""The noise of everything that a round releases, and clip norms that follow."""

import collections
import functools
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.aggregators import expected_counts
from tff_ssl.aggregators import groupwise
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.encoders import predictor
from tff_ssl.federated import client_functions
from tff_ssl.federated import followed_norms
from tff_ssl.federated import noise
from tff_ssl.federated import optimizers
from tff_ssl.federated import packs
from tff_ssl.federated import phase_graph
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.federated import releases
from tff_ssl.federated import server
from tff_ssl.objectives import simsiam
from tff_ssl.settings import learning

_Z, _CLIPS = 0.7, {'update': 2.0, 'statistics': 3.0, 'metrics': 5.0}
_CLIENTS, _DRAWS = 3, 20


def _private(metrics_clip=_CLIPS['metrics']):
  clips = _CLIPS['update'], _CLIPS['statistics'], metrics_clip
  return aggregations.of_rounds(lambda z: aggregations.private(z, *clips), _Z)


@functools.cache
def _graph():
  """Returns FedAvg with batch norm: it releases one of each."""
  objective = simsiam.SimSiamObjective(
    harness.model(batch_norm=True), predictor.build_predictor(harness.DIMENSION, 8)
  )
  algorithm = fedavg.fedavg(
    objective, optimizers.build_optimizer(harness.SGD), fedavg.Training()
  )
  return phase_graph.Graph(algorithm, harness.ELEMENT, _private())


def _tensor_types(value_type):
  tensors = tff.types.structure_from_tensor_type_tree(lambda t: [t], value_type)
  return tf.nest.flatten(tensors)


def test_the_noise_of_every_release_is_its_share_of_the_rounds(tff_context):
  graph = _graph()
  names = releases.names(graph.algorithm, graph.aggregation)
  assert sorted(names) == ['train/metrics', 'train/statistics', 'train/update']
  # Metrics have a twentieth of 1 / z^2, the others parts like the roots of their sizes.
  step = graph.steps['train']
  sizes = {
    name: sum(math.prod(t.shape) for t in _tensor_types(step.sent_type[name]))
    for name in _CLIPS
  }
  roots = math.sqrt(sizes['update']) + math.sqrt(sizes['statistics'])
  shares = {name: 0.95 * math.sqrt(size) / roots for name, size in sizes.items()}
  shares['metrics'] = 0.05
  found = releases.multipliers(graph.algorithm, graph.aggregation)
  assert found == pytest.approx(
    {f'train/{name}': _Z / math.sqrt(share) for name, share in shares.items()}
  )
  for name, clip in _CLIPS.items():
    process = step.aggregators[name]
    zeros = tff.types.structure_from_tensor_type_tree(
      lambda t: np.zeros(t.shape, t.dtype.type), step.sent_type[name]
    )
    state, noise = process.initialize(), []
    for _ in range(_DRAWS):
      output = process.next(state, [zeros] * _CLIENTS, [np.float32(2)] * _CLIENTS)
      state, result = output.state, output.result
      if name == 'statistics':
        result = result['statistics']
      # The mean over the clients' examples, as a sum again.
      noise.append(2 * _CLIENTS * harness.flat(result))
    z = np.concatenate(noise) / (found[f'train/{name}'] * clip)
    # Of n standard normals; within five standard deviations.
    assert abs(z.mean()) * np.sqrt(z.size) < 5, name
    assert abs(np.sum(z**2) - z.size) < 5 * np.sqrt(2 * z.size), name


def test_metrics_that_are_withheld_are_no_release_and_arrive_as_zeros(tff_context):
  graph = _graph()
  withheld = _private(None)
  names = releases.names(graph.algorithm, withheld)
  assert sorted(names) == ['train/statistics', 'train/update']
  metrics = tff.to_type(collections.OrderedDict(loss=np.float32))
  process = withheld.metrics.create(metrics, tff.TensorType(np.float32))
  tff.test.assert_not_contains_unsecure_aggregation(process.next)
  output = process.next(process.initialize(), [{'loss': 3.0}], [1.0])
  assert output.result['loss'] == 0
  assert withheld.packs is not None


def test_an_algorithm_that_sends_integers_is_refused():
  def exchange(kinds):
    return phases.Algorithm(
      lambda: None, [phases.Exchange('choose', None, None, kinds, None)]
    )

  with pytest.raises(ValueError, match="clients send 'choice', integers"):
    releases.names(exchange({'choice': combine.TOTAL}), _private())
  with pytest.raises(ValueError, match='adds no noise'):
    releases.names(exchange({}), aggregations.plain())
  kinds = {'update': combine.UPDATE, 'group': combine.LOCAL}
  assert releases.names(exchange(kinds), _private()) == ('choose/update',)


def test_batch_norm_warns_of_clients_with_one_example(caplog):
  for singles in (0, 2):
    spec = packs.PackSpec(harness.ELEMENT, singles)
    noise.divide(_graph().algorithm, spec, None)
    assert caplog.text.count('2 clients have 1 example') == singles // 2


def test_the_expected_sum_of_weights_is_needed_unless_they_are_examples():
  def settle(weighting, **numbers):
    config = fedavg.Training(
      learning.SgdClients(learning_rate=1.0, weighting=weighting)
    )
    algorithm = fedavg.fedavg(harness.cco(), harness.SGD, config)
    expected = expected_counts.Expected(clients=4, examples=8.0, **numbers)
    private = aggregations.private(1.0, 1.0, 1.0, expected=expected)
    return noise.divide(algorithm, harness.ELEMENT, private)[1].expected

  assert settle('examples').divisor == 8
  assert settle('uniform', weights=4.0).divisor == 4
  with pytest.raises(ValueError, match=r"weights of Expected is None; .* 'train'"):
    settle('uniform')


def test_dcco_releases_its_statistics_its_spread_and_its_update():
  algorithm = dcco.dcco(
    harness.cco(),
    optimizers.build_optimizer(harness.SGD),
  )
  names = releases.names(algorithm, _private())
  assert names == ('statistics/statistics', 'statistics/metrics', 'train/update')


# Hardly any noise on values; on counts it is what it is, so these are sums without.
_LITTLE = collections.OrderedDict(update=1e-9, statistics=1e-9, within=1e-9)


def _of_numbers(values, clip):
  """One round after the other of clients that send a number, in NumPy and in TFF."""
  kinds = {server.UPDATE: combine.UPDATE}

  def initial():
    weights = server.as_weights(collections.OrderedDict(x=tf.zeros([1])))
    return server.initial_state(weights, 0)

  def send(shared, examples):
    del shared
    sent = collections.OrderedDict(x=tf.reduce_sum(examples['x'], axis=0))
    return collections.OrderedDict([(server.UPDATE, sent)])

  exchange = phases.Exchange(
    'train',
    lambda state: collections.OrderedDict(round=state.round),
    client_functions.ClientFunction(send),
    kinds,
    lambda state, got: (server.with_params(state, got[server.UPDATE]), {}),
  )
  algorithm = phases.Algorithm(initial, [exchange])
  made = aggregations.private({**_LITTLE}, clip, 1.0, None)
  spec = collections.OrderedDict(
    example_id=tf.TensorSpec([], tf.int64), x=tf.TensorSpec([1], tf.float32)
  )
  process = processes.build(algorithm, spec, made)
  data = [
    tf.data.Dataset.from_tensors(
      collections.OrderedDict(example_id=np.int64(0), x=np.float32([value]))
    )
    for value in values
  ]
  return process, data


def test_a_norm_comes_to_the_quantile_as_in_float64(tff_context):
  values = np.arange(1.0, 9.0)
  clip = adaptive_clipping.AdaptiveClip(0.5, len(values), initial=0.01)
  process, data = _of_numbers(values, clip)
  state, norm = process.initialize(), 0.01
  for round in range(25):
    output = process.next(state, data)
    clipped = np.minimum(values, norm).mean()
    state = output.state
    mean = process.get_model_weights(state).trainable['x'][0]
    assert mean == pytest.approx(clipped, rel=1e-4)
    rate = max(0.2, 4 / (round + 1))
    norm *= np.exp(-rate * (np.mean(values <= norm) - 0.5))
    got = float(state.extra[followed_norms.NORMS]['train'][server.UPDATE])
    assert got == pytest.approx(norm, rel=1e-4)
  # Of norms 1 to 8 half are within any from 4 to 5, from a first one of 0.01.
  assert 3.5 < norm < 5.5


def test_values_that_are_combined_in_groups_are_refused():
  kinds = {'group': combine.LOCAL, 'update': groupwise.GroupMean(2)}
  exchange = phases.Exchange('train', None, None, kinds, None)
  made = aggregations.private(1.0, adaptive_clipping.AdaptiveClip(0.5, 4), 1.0)
  with pytest.raises(ValueError, match="'update' is combined in groups"):
    followed_norms.follow(phases.Algorithm(lambda: None, [exchange]), made)


@pytest.mark.parametrize('initial', [0.0, -1.0, float('nan')])
def test_a_first_norm_out_of_range_is_named(initial):
  with pytest.raises(ValueError, match='initial is'):
    adaptive_clipping.AdaptiveClip(0.5, 4, initial=initial)
