"""FedAvg of a linear model: rounds against local updates written out in NumPy."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import linear_model
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import optimizers
from tff_ssl.federated import packs
from tff_ssl.federated import processes
from tff_ssl.settings import learning

_ELEMENT = collections.OrderedDict(
  x=tf.TensorSpec([2], tf.float32),
  y=tf.TensorSpec([], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
)
_SIZES = (3, 0, 5, 1)
_FEDAVG = learning.SgdServer()


def _clients():
  """Returns the examples of each client, all ids different."""
  result, first_id = [], 0
  for size in _SIZES:
    examples = linear_model.examples(size, first_id)
    result.append(
      collections.OrderedDict(
        x=examples['x'].astype(np.float32),
        y=examples['y'].astype(np.float32),
        example_id=examples['example_id'],
      )
    )
    first_id += size
  return result


def _cohort(packed):
  clients = _clients()
  if not packed:
    return [tf.data.Dataset.from_tensor_slices(client) for client in clients]
  return harness.packed(clients)


def _build(config, packed, aggregation=None):
  return processes.build(
    fedavg.fedavg(
      linear_model.LinearObjective(), optimizers.build_optimizer(_FEDAVG), config
    ),
    packs.PackSpec(_ELEMENT) if packed else _ELEMENT,
    aggregation,
  )


def _local(w, client, plan, rate):
  """Returns the weights after full-batch epochs of a client, in float64."""
  x, y = client['x'].astype(np.float64), client['y'].astype(np.float64)
  start, velocity = w, 0.0
  for _ in range(plan.epochs if len(y) else 0):
    gradient = x.T @ (x @ w - y) / len(y) + plan.proximal_weight * (w - start)
    gradient = gradient + plan.weight_decay * w
    momentum = plan.momentum
    velocity = momentum * velocity + gradient
    step = gradient + momentum * velocity if plan.nesterov else velocity
    w = w - rate * step
  return w


def _rounds(w, config, rounds):
  """Returns the weights after each round, by the weighted mean of local updates."""
  result = []
  shares = np.array(_SIZES, np.float64)
  if config.clients.weighting == 'uniform':
    shares = (shares > 0).astype(np.float64)
  shares = shares / shares.sum()
  for round in range(rounds):
    own = config.clients
    rate = own.learning_rate * own.factor ** np.sum(np.array(own.steps) <= round)
    ends = [_local(w, client, own, rate) for client in _clients()]
    w = shares @ np.array(ends)
    result.append(w)
  return result


_CONFIGS = {
  'one step': fedavg.Training(learning.SgdClients(learning_rate=0.25)),
  'uniform': fedavg.Training(
    learning.SgdClients(learning_rate=0.25, weighting='uniform')
  ),
  'epochs': fedavg.Training(learning.SgdClients(learning_rate=0.25, epochs=3)),
  'scheduled': fedavg.Training(
    learning.SgdClients(0.25, 'steps', steps=(1, 2), factor=0.5)
  ),
  'proximal': fedavg.Training(
    learning.SgdClients(learning_rate=0.25, epochs=3, proximal_weight=0.5)
  ),
  'nesterov': fedavg.Training(
    learning.SgdClients(
      learning_rate=0.125, epochs=2, momentum=0.5, nesterov=True, weight_decay=0.1
    )
  ),
}


@pytest.mark.long_for('False')
@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize('name', _CONFIGS)
def test_a_round_is_the_weighted_mean_of_local_updates(tff_context, name, packed):
  config = _CONFIGS[name]
  process = _build(config, packed)
  states, metrics = harness.rounds_of(process, [_cohort(packed)] * 3)
  start = np.array([0.5, -1.0])
  np.testing.assert_allclose(harness.weights(process, states[0]), start)
  for state, expected in zip(states[1:], _rounds(start, config, 3), strict=True):
    np.testing.assert_allclose(harness.weights(process, state), expected, rtol=1e-5)
  assert metrics[0]['client_work']['empty_clients'] == 1
  # The metrics are means over clients, weighted as the updates are.
  targets = [client['y'].mean() if len(client['y']) else 0 for client in _clients()]
  weights = (
    np.sign(_SIZES) if config.clients.weighting == 'uniform' else np.array(_SIZES)
  )
  assert metrics[0]['client_work']['target'] == pytest.approx(
    weights @ targets / weights.sum(), rel=1e-5
  )


# One step is computed for many clients at once, and so measured as their mean.
@pytest.mark.parametrize(
  ('name', 'packed', 'aggregation'),
  [
    ('one step', False, None),
    ('epochs', True, None),
    ('one step', True, None),
    ('one step', False, aggregations.secure(1e5, 10)),
    ('one step', False, aggregations.private(1e-9, 1e9, 1e9)),
  ],
)
def test_far_longer_updates_are_counted(tff_context, name, packed, aggregation):
  del tff_context
  process = _build(_CONFIGS[name], packed, aggregation)
  counted = []
  # Of updates 100 times as long nobody knows whether they are only of a long training.
  for scale in (1.0, 10.0, 1e5):
    clients = _clients()
    clients[2]['y'] = clients[2]['y'] * np.float32(scale)
    datasets = [tf.data.Dataset.from_tensor_slices(client) for client in clients]
    cohort = harness.packed(clients) if packed else datasets
    (_, (metrics,)) = harness.rounds_of(process, [cohort])
    counted.append(metrics['client_work'].get('outlying_clients'))
  assert counted == [None] * 3 if aggregation and aggregation.noised else [0, 0, 1]
