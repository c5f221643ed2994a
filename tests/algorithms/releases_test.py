"""The noise of everything that a round releases, and what cannot be released."""

import collections
import functools
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.aggregators import expected_counts
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.encoders import predictor
from tff_ssl.federated import noise
from tff_ssl.federated import optimizers
from tff_ssl.federated import packs
from tff_ssl.federated import phase_graph
from tff_ssl.federated import phases
from tff_ssl.federated import releases
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
