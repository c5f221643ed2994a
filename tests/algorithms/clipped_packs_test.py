"""Packed clients that are clipped: the numbers of clients apart, and how they come."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tests.objectives import networks
from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.federated import followed_norms
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.federated import vectorized_clients
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning

# One client has nothing, one nothing finite; sizes with several clients and with one.
_SIZES = [1, 0, 2, 1, 2, 1, 2, 3]
_BROKEN = 4
_CLIP = 0.5
# Of steps that float32 does not round off the weights.
_SGD = learning.SgdServer()
# Hardly any noise: what is left of a comparison are the clipped sums.
_PRIVATE = aggregations.private(1e-9, _CLIP, _CLIP, metrics_clip=_CLIP)


def _examples():
  examples = harness.arrays(sum(_SIZES))
  clients = harness.split(_SIZES)
  examples['image'][clients[_BROKEN][0]] = np.nan
  return examples, clients


def _distributed(noise_multiplier):
  return aggregations.distributed(
    noise_multiplier, _CLIP, _CLIP, _CLIP, len(_SIZES), max(_SIZES)
  )


def _following(make, *others):
  """Returns an aggregation with norms that follow; on counts noise is what it is."""
  little = collections.OrderedDict(update=1e-9, statistics=1e-9, within=1e-9)
  clips = (
    adaptive_clipping.AdaptiveClip(0.5, len(_SIZES), initial=initial)
    for initial in (_CLIP, 0.01)
  )
  return make(little, *clips, None, *others)


def _norms(state):
  return harness.flat([*state.extra.get(followed_norms.NORMS, {}).values()])


def _build(name, packed=False, aggregation=_PRIVATE):
  optimizer = optimizers.build_optimizer(_SGD)
  element = harness.PACKS if packed else harness.ELEMENT
  if name == 'fedavg':
    objective = simclr.SimclrObjective(harness.model())
    config = fedavg.Training(seed=harness.SEED)
    return processes.build(
      fedavg.fedavg(objective, optimizer, config), element, aggregation
    )
  return processes.build(
    dcco.dcco(harness.cco(name), optimizer, seed=harness.SEED), element, aggregation
  )


# Noise that clients add comes with whole quanta, of 2^-16 of the clip norm.
@pytest.mark.long
@pytest.mark.parametrize(
  ('name', 'aggregation', 'tolerance'),
  [
    ('cco', _PRIVATE, 1e-5),
    ('fedavg', _PRIVATE, 1e-4),
    ('lejepa', _PRIVATE, 1e-5),
    ('cco', _distributed(1e-9), 1e-3),
    ('cco', _following(aggregations.private), 1e-4),
    (
      'cco',
      _following(aggregations.distributed, len(_SIZES), max(_SIZES)),
      1e-3,
    ),
  ],
  ids=['cco', 'fedavg', 'lejepa', 'distributed', 'following', 'following shares'],
)
def test_clipped_sums_are_those_of_clients_apart(
  tff_context, name, aggregation, tolerance
):
  examples, clients = _examples()
  apart = _build(name, aggregation=aggregation)
  packed = _build(name, packed=True, aggregation=aggregation)
  expected, metrics = harness.rounds_of(apart, [harness.cohort(clients, examples)])
  states, packed_metrics = harness.rounds_of(
    packed, [harness.cohort(clients, examples, packed=True, num_packs=1)]
  )
  before, after = (harness.weights(apart, state) for state in expected)
  _, packed_after = (harness.weights(packed, state) for state in states)
  assert harness.relative(packed_after - before, after - before) < tolerance
  norms, packed_norms = (_norms(end) for _, end in (expected, states))
  np.testing.assert_allclose(packed_norms, norms, rtol=tolerance)
  # Nearly all statistics are longer than 0.01: their norm has grown.
  assert norms.size == 0 or norms.min() > 0.04
  for metric, value in metrics[0]['client_work'].items():
    found = packed_metrics[0]['client_work'][metric]
    assert found == pytest.approx(value, rel=10 * tolerance, abs=tolerance), metric
  # It is clipping that was compared: what six clients send, over all of the examples.
  step = np.linalg.norm(after - before)
  assert 0 < step <= 6 * _CLIP / metrics[0]['client_work']['examples'] * 1.001


# `apart` stays; packs in the clear are compared above.
@pytest.mark.long_for('packed')
@pytest.mark.parametrize('packed', [False, True], ids=['apart', 'packed'])
def test_noise_does_not_tell_who_was_discarded(tff_context, packed):
  """Noise is divided by the sum of weights, which would tell without any noise."""
  del tff_context
  sizes = [2, 2, 2]
  told, process = [], _build('fedavg', packed)
  for value in (0.5, np.nan):
    examples, members = harness.arrays(sum(sizes)), harness.split(sizes)
    examples['image'][members[1][0]] = value
    cohort = harness.cohort(members, examples, packed, num_packs=1)
    states, (metrics,) = harness.rounds_of(process, [cohort])
    work = metrics['client_work']
    told.append([int(work[k]) for k in ('clients', 'examples', 'nonfinite_clients')])
  assert told == [[3, 6, 0], [3, 6, 0]]
  # Each of the two others is clipped to the same norm, and divided by all six examples.
  before, after = (harness.weights(process, state) for state in states)
  assert 0 < np.linalg.norm(after - before) <= 2 * _CLIP / 6 * 1.001


def _linear():
  """Returns an objective of encoding statistics, of the means of views' pixels."""
  encoder = network.Network(
    'encoder', tiny.IMAGE_SHAPE, lambda ops, x: ops.global_average_pool(x)
  )
  head = projector.build_linear(1, 2, 'projector')
  return statistics.StatisticsObjective(
    dual_encoder.Siamese(encoder, head, harness.SWAPPED)
  )


_FUNCTIONS = {
  'fedavg': lambda objective: fedavg.client_function(
    simclr.SimclrObjective(objective.model), fedavg.Training()
  ),
  'dcco statistics': dcco.encode,
  'dcco update': lambda objective: dcco.train(objective, learning.StepClients()),
}


@pytest.mark.parametrize('name', _FUNCTIONS)
def test_each_client_sends_what_it_sends_alone(name):
  """Three clients of two examples, whose values are kept apart for the clipping."""
  objective, seed = _linear(), harness.round_seed(0)
  function, examples = _FUNCTIONS[name](objective), harness.arrays(6)
  # A bias of 0 would leave all projections on a line.
  params = networks.stepped(objective.init(seed), 0.1)
  reference = objective.reference(params, seed)
  shared = {
    'params': params,
    'seed': seed,
    'rate': tf.constant(0.5),
    'round': tf.constant(0),
    'reference': reference,
    'statistics': objective.statistics(
      params, harness.tensors(examples), seed, reference
    ),
    'num_examples': tf.constant(6.0),
  }
  each = harness.for_any_size(lambda examples: function.client_fn(shared, examples))
  together = tf.function(
    lambda examples, clients: function.per_client_fn(shared, examples, clients),
    autograph=False,
  )
  found = together(harness.tensors(examples), tf.constant(3))
  assert all(np.abs(harness.flat(value)).max() > 1e-3 for value in found.values())
  for k, positions in enumerate(harness.split([2, 2, 2])):
    expected = each(harness.tensors(harness.take(examples, positions)))
    assert list(found) == list(expected)
    for sent, value in expected.items():
      own = tf.nest.map_structure(lambda x, k=k: x[k], found[sent])
      tf.nest.map_structure(
        lambda got, wanted: np.testing.assert_allclose(
          got, wanted, rtol=1e-4, atol=1e-5
        ),
        own,
        value,
      )


def test_which_functions_compute_all_clients_in_one_pass():
  cco = harness.cco()
  assert dcco.encode(cco).per_client_fn is not None
  assert dcco.train(cco, learning.StepClients()).per_client_fn is not None
  two = learning.StepClients(local_steps=2)
  assert dcco.train(cco, two).per_client_fn is None
  contrast = simclr.SimclrObjective(harness.model())
  plan = fedavg.Training().clients
  assert vectorized_clients.each_only_step(contrast, plan) is not None
  batch_norm = simclr.SimclrObjective(harness.model(batch_norm=True))
  assert vectorized_clients.each_only_step(batch_norm, plan) is None
