"""FedAvg: a linear model in NumPy, metrics, bytes, objectives with a state."""

import numpy as np
import pytest
import tensorflow_federated as tff

from tests import tiny
from tests.algorithms import harness
from tests.algorithms import linear_model
from tests.algorithms.statistics import dcco_reference
from tests.losses import references
from tests.objectives import warming
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.encoders import vit
from tff_ssl.federated import optimizers
from tff_ssl.federated import packs
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.objectives import byol
from tff_ssl.objectives import mae
from tff_ssl.objectives import moco
from tff_ssl.objectives import swav
from tff_ssl.settings import learning
from tff_ssl.settings import objectives

_SIZES = (3, 0, 5, 1)
_FEDAVG = learning.SgdServer()


def _clients():
  return linear_model.clients(_SIZES)


def _build(config, packed, aggregation=None):
  return processes.build(
    fedavg.fedavg(
      linear_model.LinearObjective(), optimizers.build_optimizer(_FEDAVG), config
    ),
    packs.PackSpec(linear_model.ELEMENT) if packed else linear_model.ELEMENT,
    aggregation,
  )


def _local(w, client, plan, rate):
  """Returns the weights after full-batch epochs of a client, in float64."""
  x, y = client['x'].astype(np.float64), client['y'].astype(np.float64)
  start, velocity = w, 0.0
  for _ in range(plan.epochs if len(y) else 0):
    gradient = x.T @ (x @ w - y) / len(y) + plan.proximal_weight * (w - start)
    gradient = gradient + plan.weight_decay * w
    velocity = plan.momentum * velocity + gradient
    w = w - rate * velocity
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
  'momentum': fedavg.Training(
    learning.SgdClients(learning_rate=0.125, epochs=2, momentum=0.5, weight_decay=0.1)
  ),
}


@pytest.mark.long_for('False')
@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize('name', _CONFIGS)
def test_a_round_is_the_weighted_mean_of_local_updates(tff_context, name, packed):
  config = _CONFIGS[name]
  process = _build(config, packed)
  cohort = harness.datasets(_clients(), packed)
  states, metrics = harness.rounds_of(process, [cohort] * 3)
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
@pytest.mark.long_for('one step-False-aggregation3')
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
    (_, (metrics,)) = harness.rounds_of(process, [harness.datasets(clients, packed)])
    counted.append(metrics['client_work'].get('outlying_clients'))
  assert counted == [None] * 3 if aggregation and aggregation.noised else [0, 0, 1]


_SPLIT = harness.split([1, 2, 5, 4])


def test_the_cohort_s_spread_is_that_of_all_examples(tff_context):
  """Clients of one example have no spread, their cohort has."""
  process = harness.build_fedavg(harness.cco())
  states, metrics = harness.rounds_of(
    process, [harness.cohort([[i] for i in range(9)])]
  )
  batch = harness.tensors(harness.take(harness.arrays(), range(9)))
  params = dcco_reference.unflatten(harness.weights(process, states[0]))
  f, _ = harness.model(harness.SWAPPED).encode(params, batch, harness.round_seed(0))
  expected = references.encoding_std(f.numpy())
  assert metrics[0]['client_work']['encoding_std'] == pytest.approx(expected, rel=1e-4)


def test_objectives_receive_the_round_and_the_number_of_rounds(tff_context):
  """Steps of 1/4, 2/4, 3/4: a gradient of (round + 1) / rounds at rate 1."""
  optimizer = tff.learning.optimizers.build_sgdm(1.0)
  config = fedavg.Training(rounds=4)
  process = processes.build(
    fedavg.fedavg(warming.Warming(), optimizer, config), harness.ELEMENT
  )
  states, metrics = harness.rounds_of(process, [harness.cohort(_SPLIT)] * 3)
  got = [float(process.get_model_weights(s).trainable['w']) for s in states]
  assert got == pytest.approx([2.0, 1.75, 1.25, 0.5])
  # The weight, the seed, the rate, the round.
  assert metrics[0]['client_work']['bytes_down'] == len(_SPLIT) * 4 * (1 + 2 + 1 + 1)
  stateful = harness.process(fed_ssl.fed_ssl(warming.Warming(), optimizer, config))
  states, _ = harness.rounds_of(stateful, [harness.cohort(_SPLIT)] * 3)
  after = stateful.get_model_weights(states[-1]).trainable['w']
  assert float(after) == pytest.approx(0.5)


_EPOCHS = 3
_RATE = 0.05
_SERVER = learning.SgdServer()


_OBJECTIVES = {
  'byol': lambda: byol.ByolObjective(
    harness.model(), harness.predictor(), objectives.Byol(target_momentum=0.5)
  ),
  'byol, target trained': lambda: byol.ByolObjective(
    harness.model(),
    harness.predictor(),
    objectives.Byol(target_momentum=0.5, stop_gradient=False),
  ),
  'moco': lambda: moco.MocoObjective(
    harness.model(),
    objectives.MocoV2(temperature=0.5, target_momentum=0.5, queue_size=6),
  ),
  'swav': lambda: swav.SwavObjective(harness.model(), num_prototypes=3),
  'mae': lambda: mae.build_mae(
    vit.from_config(vit.ViTConfig(8, 1, 2, patch_size=2), tiny.IMAGE_SHAPE)
  ),
}


@pytest.mark.long_for('byol', 'byol, target trained', 'swav', 'mae')
@pytest.mark.parametrize('name', _OBJECTIVES)
def test_a_round_of_one_client_is_its_own_training(tff_context, name):
  objective = _OBJECTIVES[name]()
  config = fedavg.Training(
    learning.SgdClients(learning_rate=_RATE, epochs=_EPOCHS), seed=harness.SEED
  )
  process = harness.build_fedavg(objective, _SERVER, config)
  # The second client holds nothing and counts nothing.
  cohort = harness.cohort([range(5), []])
  (before, after), (metrics,) = harness.rounds_of(process, [cohort])
  # By hand: steps of SGD, and the objective's rule after each.
  params = server.initial_weights(objective, harness.SEED).trainable
  batch = harness.tensors(harness.take(harness.arrays(), range(5)))
  state, seed = objective.init_state(params), harness.round_seed(0)
  params, _, losses = harness.epochs_of_sgd(
    objective, params, state, batch, seed, _EPOCHS, _RATE
  )
  start = harness.weights(process, before)
  assert harness.relative(harness.weights(process, after), harness.flat(params)) < 1e-5
  assert harness.relative(start, harness.flat(params)) > 2e-4
  work = metrics['client_work']
  assert work['loss'] == pytest.approx(np.mean(losses), rel=1e-4)
  assert work['encoding_std'] > 0
  dimension = 8 if name == 'mae' else harness.DIMENSION
  assert 1 < work['effective_rank'] <= dimension
