"""Tests of algorithms over networks with batch norm: what becomes of its statistics."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.federated import local_training
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.federated import vectorized_clients
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import supervised
from tff_ssl.settings import learning

_SPLIT = harness.split([3, 0, 5, 4])
_RATE = 0.1
_PLAN = learning.SgdClients(learning_rate=_RATE, epochs=2, batch_size=3)


def _encode(ops, x):
  x = ops.batch_norm(x, 'pixels')
  x = ops.conv2d(x, 'conv', filters=3, kernel_size=1)
  return ops.global_average_pool(ops.relu(ops.batch_norm(x, 'norm')))


_OBJECTIVE = supervised.SupervisedObjective(
  network.Network('encoder', tiny.IMAGE_SHAPE, _encode),
  projector.build_linear(3, tiny.NUM_CLASSES),
  byol.by_name('none'),
)
_PIXELS = 'encoder/pixels/population'


def _statistics(process, state):
  weights = process.get_model_weights(state)
  return {name: np.asarray(x) for name, x in weights.non_trainable.items()}


def _numpy_pixels(positions):
  """The mean and the mean square of pixels, which need no network."""
  image = harness.take(harness.arrays(), positions)['image'].astype(np.float64)
  return {f'{_PIXELS}_mean': image.mean(), f'{_PIXELS}_square': (image**2).mean()}


def _assert_close(got, expected):
  for name, value in expected.items():
    np.testing.assert_allclose(got[name], value, rtol=2e-4, atol=1e-5, err_msg=name)


def test_statistics_are_averaged_past_the_server_s_optimizer(tff_context):
  """With Adam on the server: weights move by its rule, statistics are replaced."""
  config = fedavg.Training(_PLAN, harness.SEED)
  process = harness.build_fedavg(_OBJECTIVE, harness.ADAM, config)
  states, _ = harness.rounds_of(process, [harness.cohort(_SPLIT)])
  initial = _statistics(process, states[0])
  assert all(not np.any(initial[name]) for name in initial if name.endswith('mean'))
  params = states[0].global_model_weights.trainable
  params = collections.OrderedDict((k, tf.constant(v)) for k, v in params.items())
  expected, update = dict.fromkeys(initial, 0.0), 0.0
  train = harness.for_any_size(
    functools.partial(local_training.train, _OBJECTIVE, _PLAN)
  )
  for positions in filter(None, _SPLIT):
    batch = harness.tensors(harness.take(harness.arrays(), positions))
    trained = train(params, batch, harness.round_seed(0), _RATE)
    share = len(positions) / 12
    found = batch_norm_statistics.compute(_OBJECTIVE, trained.params, batch)
    expected = {name: expected[name] + share * found[name].numpy() for name in found}
    update += share * (harness.flat(params) - harness.flat(trained.params))
  got = _statistics(process, states[1])
  assert set(got) == set(expected)
  _assert_close(got, expected)
  _assert_close(got, _numpy_pixels(range(12)))
  # The first step of Adam is its rate, in the direction of the update's signs.
  step = harness.weights(process, states[0]) - harness.weights(process, states[1])
  moved = np.abs(update) > 1e-3
  assert moved.sum() > 5
  np.testing.assert_allclose(
    step[moved], harness.ADAM.learning_rate * np.sign(update[moved]), rtol=1e-2
  )


def test_centralized_steps_take_the_statistics_of_their_batch():
  process = centralized.Centralized(
    _OBJECTIVE, optimizers.build_optimizer(harness.ADAM), harness.SEED
  )
  states, _ = harness.rounds_of(
    process, [harness.cohort([[0, 1], [2]]), harness.cohort([[]])]
  )
  for state in states[1:]:
    _assert_close(_statistics(process, state), _numpy_pixels([0, 1, 2]))


def test_clients_are_not_computed_side_by_side():
  plan = learning.SgdClients()
  head = projector.build_linear(harness.encoder().output_dim, tiny.NUM_CLASSES)
  group = supervised.SupervisedObjective(harness.encoder(), head, byol.by_name('none'))
  assert vectorized_clients.only_step(group, plan) is not None
  assert vectorized_clients.only_step(_OBJECTIVE, plan) is None


def test_dcco_refuses_batch_norm():
  with pytest.raises(ValueError, match='DCCO is given networks with batch norm'):
    processes.build(
      dcco.dcco(
        harness.cco(batch_norm=True),
        optimizers.build_optimizer(harness.SGD),
      ),
      harness.ELEMENT,
    )
