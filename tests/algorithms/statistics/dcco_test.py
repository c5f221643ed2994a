"""DCCO through TFF: a round is a centralized step.

What is compared is the step, the change of all weights as one vector, in Euclidean
norm: |step - centralized step| / |centralized step|. That is at most 1e-4, and so much
less of the weights; over several rounds the weights are compared.
"""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.statistics import dcco_reference
from tests.losses import references
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.encoders import projector
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.objectives import statistics
from tff_ssl.objectives import two_towers
from tff_ssl.settings import learning
from tff_ssl.settings import methods

_ORDER = [int(i) for i in np.random.default_rng(7).permutation(12)]
_SPLITS = {
  'clients of 1': harness.split([1] * 12),
  'mixed sizes': harness.split([1, 2, 5, 4]),
  'mixed sizes, other examples': harness.split([1, 2, 5, 4], _ORDER),
  'quarters': harness.split([3, 3, 3, 3], _ORDER),
  'one client': harness.split([12]),
}
_ADAM = learning.Server(0.05, kind='adam')
_OPTIMIZERS = {'sgd': harness.SGD, 'adam': _ADAM}


@functools.cache
def _centralized(optimizer, loss_name, rounds):
  """Returns the weights after each centralized step, and the last metrics."""
  process = centralized.Centralized(
    harness.cco(loss_name), optimizers.build_optimizer(optimizer), harness.SEED
  )
  cohorts = [harness.cohort(harness.split([12]))] * rounds
  states, metrics = harness.rounds_of(process, cohorts)
  return [harness.weights(process, s) for s in states], metrics[-1]['client_work']


def _run(process, cohorts):
  states, metrics = harness.rounds_of(process, cohorts)
  return [harness.weights(process, s) for s in states], metrics[-1]['client_work']


def _step_error(got, expected):
  """Returns the relative error of the first step of two runs."""
  return harness.relative(got[1] - got[0], expected[1] - expected[0])


@pytest.mark.long_for('adam')
@pytest.mark.parametrize('split', _SPLITS)
@pytest.mark.parametrize('optimizer', _OPTIMIZERS)
def test_a_round_is_a_centralized_step(tff_context, optimizer, split):
  config = _OPTIMIZERS[optimizer]
  expected, expected_metrics = _centralized(config, 'cco', 1)
  process = harness.build_dcco(optimizer=config)
  got, metrics = _run(process, [harness.cohort(_SPLITS[split])])
  np.testing.assert_array_equal(got[0], expected[0])
  assert _step_error(got, expected) < 1e-4
  assert metrics['loss'] == pytest.approx(float(expected_metrics['loss']), rel=1e-4)
  assert metrics['examples'] == 12
  assert metrics['clients'] == len(_SPLITS[split])


@pytest.mark.long
@pytest.mark.parametrize('packed', [False, True], ids=['apart', 'packed'])
def test_rounds_of_lejepa_are_centralized_steps_along_new_directions(
  tff_context, packed
):
  expected, expected_metrics = _centralized(harness.SGD, 'lejepa', 3)
  process = harness.build_dcco('lejepa', packed=packed)
  splits = [_SPLITS[k] for k in ('mixed sizes', 'quarters', 'clients of 1')]
  got, metrics = _run(process, [harness.cohort(s, packed=packed) for s in splits])
  np.testing.assert_array_equal(got[0], expected[0])
  for round in range(3):
    steps = (weights[round + 1] - weights[round] for weights in (got, expected))
    # Weights are rounded to float32, and 8,000 times as long as a step: both steps are
    # 1.9e-4 from the one in float64. One weight from 1 to 2, to its other neighbour,
    # is 1.6e-4 of a step.
    assert harness.relative(*steps) < 2e-4
  assert metrics['loss'] == pytest.approx(float(expected_metrics['loss']), rel=1e-5)
  # In another order, where one weight from 1/4 to 1/2 was 1.3e-5 of three steps.
  other = [harness.cohort(split[::-1], packed=packed) for split in splits]
  again, _ = _run(process, other)
  assert harness.relative(again[3] - got[0], got[3] - got[0]) < 1e-4


def test_fedavg_with_one_client_is(tff_context):
  expected, _ = _centralized(harness.SGD, 'cco', 1)
  process = harness.build_fedavg(harness.cco())
  got, _ = _run(process, [harness.cohort(_SPLITS['one client'])])
  assert _step_error(got, expected) < 1e-4


@pytest.mark.long
def test_local_steps_move_the_statistics_of_the_round(tff_context):
  config = (methods.Dcco(), learning.StepClients(0.002, 2), harness.SEED)
  plain = learning.SgdServer()
  process = harness.build_dcco(optimizer=plain, config=config)
  split = _SPLITS['mixed sizes']
  got, _ = _run(process, [harness.cohort(split)])
  seed = harness.round_seed(0)
  expected = got[0] - dcco_reference.mean_update(config[1], got[0], split, seed, seed)
  assert _step_error(got, [got[0], expected]) < 1e-4
  # Two equal steps would be something else.
  one_step, _ = _centralized(harness.SGD, 'cco', 1)
  twice = got[0] + 2 * (0.002 / 0.01) * (one_step[1] - one_step[0])
  assert _step_error(got, [got[0], twice]) > 1e-2


def _lejepa_of(f, g):
  """Of weight 1 with 4 knots up to 3, along the directions of the first round."""
  loss = harness.STATISTICS_LOSSES['lejepa']
  seed = server.initial_round_seed(0)
  along = np.concatenate([f, g]) @ loss.with_seed(seed).directions_in(2).numpy()
  t = np.linspace(0.0, 3.0, 5)
  phi = np.exp(1j * t * along[..., np.newaxis]).mean(axis=0)
  squared = np.abs(phi - np.exp(-(t**2) / 2)) ** 2 * np.exp(-(t**2) / 2)
  return np.mean((f - g) ** 2) / 4 + 2 * np.trapz(squared, t).mean()


@pytest.mark.long_for('lejepa')
@pytest.mark.parametrize(
  ('loss_name', 'loss_of'),
  [('cco', references.cco), ('lejepa', _lejepa_of)],
  ids=['cco', 'lejepa'],
)
def test_two_towers_follow_numpy(tff_context, loss_name, loss_of):
  """Two linear encoders: the loss in NumPy float64, its gradient by differences."""
  generator = np.random.default_rng(0)
  # So short that no invariance of LeJEPA has a limit.
  shared = 0.3 * generator.normal(size=(8, 3))
  left = (shared @ generator.normal(size=(3, 4))).astype(np.float32)
  right = (shared @ generator.normal(size=(3, 5))).astype(np.float32)
  examples = collections.OrderedDict(
    left=left, right=right, example_id=np.arange(8, dtype=np.int64)
  )
  element = collections.OrderedDict(
    (name, tf.TensorSpec(x.shape[1:], x.dtype)) for name, x in examples.items()
  )
  towers = two_towers.TwoTower(
    projector.build_linear(4, 2, 'left'), projector.build_linear(5, 2, 'right')
  )
  process = processes.build(
    dcco.dcco(
      statistics.StatisticsObjective(towers, harness.STATISTICS_LOSSES[loss_name]),
      optimizers.build_optimizer(learning.SgdServer(0.01)),
    ),
    element,
  )
  states, metrics = harness.rounds_of(
    process, [harness.cohort(harness.split([1, 2, 5]), examples)]
  )
  before, after = (harness.weights(process, s) for s in states)
  names = list(process.get_model_weights(states[0]).trainable)
  assert names == [
    'left/dense0/kernel',
    'left/dense0/bias',
    'right/dense0/kernel',
    'right/dense0/bias',
  ]

  def loss(w):
    f = left @ w[:8].reshape(4, 2) + w[8:10]
    return loss_of(f, right @ w[10:20].reshape(5, 2) + w[20:])

  steps = 1e-5 * np.eye(len(before))
  gradient = np.array([(loss(before + h) - loss(before - h)) / 2e-5 for h in steps])
  assert metrics[0]['client_work']['loss'] == pytest.approx(loss(before), rel=1e-4)
  assert harness.relative(before - after, 0.01 * gradient) < 1e-3
  assert harness.relative(after, before - 0.01 * gradient) < 1e-4


def test_the_spread_is_that_of_the_same_encodings_in_fedavg(tff_context):
  """Whose clients take one step on the same views, by the same model."""
  cohort = harness.cohort(_SPLITS['quarters'])
  _, metrics = harness.rounds_of(harness.build_dcco(), [cohort])
  _, other = harness.rounds_of(harness.build_fedavg(harness.cco()), [cohort])
  found, expected = (m[0]['client_work']['encoding_std'] for m in (metrics, other))
  assert found == pytest.approx(expected, rel=1e-5)
