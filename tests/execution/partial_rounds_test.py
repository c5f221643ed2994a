"""Rounds in parts, against rounds of the process itself."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import with_states
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import one_round
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.execution import partial_rounds
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import byol
from tff_ssl.settings import learning

_CLIENTS = harness.split([1, 2, 5, 4])
_FEATURES = collections.OrderedDict(
  features=tf.TensorSpec([3], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
  label=tf.TensorSpec([], tf.int32),
)
_OPTIMIZER = optimizers.build_optimizer(harness.ADAM)


def _numbers(metrics):
  """Returns the names in their order, and the values."""
  paths = [(group, name) for group, own in metrics.items() for name in own]
  return paths, [float(np.mean(metrics[group][name])) for group, name in paths]


def _assert_same_round(got, expected):
  paths, values = _numbers(got)
  assert (paths, values) == (paths, pytest.approx(_numbers(expected)[1], rel=1e-4))
  assert paths == _numbers(expected)[0]


def test_states_stay_with_the_caller(tff_context):
  objective = byol.ByolObjective(harness.model(), None)
  config = fedavg.Training(learning.SgdClients(learning_rate=0.1), seed=harness.SEED)
  process = processes.build(
    fed_ssl.fed_ssl(objective, _OPTIMIZER, config), harness.ELEMENT
  )
  cohort = harness.cohort(_CLIENTS)
  whole, cut = (
    with_states.WithStates(one, packed=False)
    for one in (process, partial_rounds.in_parts(process, 3))
  )
  expected, got = (harness.rounds_of(one, [cohort]) for one in (whole, cut))
  for one, other in zip(got[1], expected[1], strict=True):
    _assert_same_round(one, other)
  weights = (harness.weights(whole, s[-1]) for s in (got[0], expected[0]))
  assert harness.relative(*weights) < 1e-5
  kept, known = got[0][-1].clients, expected[0][-1].clients
  assert kept.keys() == known.keys() and len(known) == len(_CLIENTS)
  for client, own in known.items():
    for a, b in zip(tf.nest.flatten(kept[client]), tf.nest.flatten(own), strict=True):
      np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_data_at_the_server_and_groups_of_clients(tff_context):
  process = processes.build(fedrgd.fedrgd(*labels.sides()), labels.spec(grouping.GROUP))
  cohort = harness.cohort(labels.CLIENTS, labels.examples(grouping.GROUP))
  state = process.initialize()
  expected = process.next(state, harness.server_data(), cohort)
  # Clients of two groups are in no part together, whatever their number is.
  cut = partial_rounds.in_parts(process, 2)
  got = cut.next(cut.initialize(), harness.server_data(), cohort)
  _assert_same_round(got.metrics, expected.metrics)
  weights = (
    harness.flat(process.get_model_weights(s).trainable)
    for s in (got.state, expected.state)
  )
  assert harness.relative(*weights) < 1e-5
  assert got.state.round == expected.state.round == 1
  np.testing.assert_array_equal(got.state.round_seed, expected.state.round_seed)


def test_a_round_without_clients_is_that_of_the_process(tff_context):
  process = processes.build(one_round.one_round(3, 2), _FEATURES)
  cut = partial_rounds.in_parts(process, 2)
  expected = process.next(process.initialize(), [])
  got = cut.next(cut.initialize(), [])
  assert got.metrics == expected.metrics
  assert got.metrics['client_work']['clients'] == 0


def test_process_without_parts_is_refused():
  with pytest.raises(ValueError, match='parts is 0; it must be at least 1'):
    partial_rounds.in_parts(object(), 0)
  with pytest.raises(ValueError, match='object; to run in parts it must come from'):
    partial_rounds.in_parts(object(), 2)
