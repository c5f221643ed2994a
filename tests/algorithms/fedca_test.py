"""FedCA's rounds: whose rows land where, and what a round makes of what is sent."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import dictionaries
from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedca
from tff_ssl.federated import optimizers
from tff_ssl.federated import processes
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import simclr
from tff_ssl.settings import learning
from tff_ssl.settings import objectives

_SGD = learning.SgdServer(0.25)


@pytest.fixture(scope='module', name='process')
def _process(tff_context):
  return processes.build(
    fedca.fedca(
      dictionaries.objective(),
      optimizers.build_optimizer(_SGD),
      *dictionaries.config(),
      dictionaries.base(),
    ),
    labels.spec(contextual.CLIENT),
  )


def _cohort(*numbers, broken=()):
  examples = dictionaries.examples()
  for number in broken:
    examples['image'][labels.CLIENTS[dictionaries.NUMBERS.index(number)]] = np.nan
  return harness.cohort(
    [
      labels.CLIENTS[dictionaries.NUMBERS.index(k)] if k is not None else []
      for k in numbers
    ],
    examples,
  )


def _dictionary(state):
  context = state.extra[fedca.CONTEXT]
  return np.asarray(context[dictionary_contrast.ROWS]), np.asarray(
    context[dictionary_contrast.FILLED]
  )


@pytest.fixture(scope='module', name='rounds')
def _rounds(process):
  """Returns states and metrics of two rounds.

  In the first client 2 is absent and one is empty; in the second client 0 is absent and
  client 3 not finite.
  """
  return harness.rounds_of(
    process, [_cohort(0, 3, None, 1, 4), _cohort(4, 2, 3, 1, broken=(3,))]
  )


def test_a_round_is_the_mean_of_what_clients_send(process, rounds):
  """Written out: of each client what `client_function` says, weighted by examples."""
  states, metrics = rounds
  function = fedca.client_function(dictionaries.objective(), *dictionaries.config())
  function = dataclasses.replace(
    function, client_fn=harness.for_any_size(function.client_fn)
  )
  for r, cohort in enumerate(((0, 3, 1, 4), (4, 2, 1))):
    state = states[r]
    shared = dictionaries.shared(
      state.extra[fedca.CONTEXT],
      labels.as_params(process.get_model_weights(state).trainable),
      harness.round_seed(r),
    )
    results = [
      dictionaries.sends(function, shared, dictionaries.batch(k)) for k in cohort
    ]
    sizes = [dictionaries.SIZE_OF[k] for k in cohort]
    update = np.average(
      [harness.flat(result.means['update']) for result in results], 0, sizes
    )
    moved = harness.weights(process, state) - harness.weights(process, states[r + 1])
    assert harness.relative(moved, _SGD.learning_rate * update) < 1e-3
    loss = np.average(
      [float(result.means['metrics']['loss']) for result in results], 0, sizes
    )
    assert metrics[r]['client_work']['loss'] == pytest.approx(loss, rel=1e-4)
    rows, filled = _dictionary(states[r + 1])
    for number, result in zip(cohort, results, strict=True):
      own_rows, own_filled = dictionaries.sum_of(result)
      np.testing.assert_allclose(rows[number], own_rows[number], atol=1e-5)
      np.testing.assert_array_equal(filled[number], own_filled[number] > 0.5)


def test_absent_clients_keep_their_rows(rounds):
  (_, first, second), _ = rounds
  assert not np.any(_dictionary(first)[1][[2, 5]])
  for before, after in zip(_dictionary(first), _dictionary(second), strict=True):
    np.testing.assert_array_equal(after[[0, 3, 5]], before[[0, 3, 5]])
  assert _dictionary(second)[1].sum(axis=1).tolist() == [1, 3, 2, 2, 3, 0]


def test_rows_land_in_their_places_in_any_order_of_the_cohort(process, rounds):
  output = process.next(rounds[0][0], _cohort(4, 1, 0, None, 3))
  for got, expected in zip(
    _dictionary(output.state), _dictionary(rounds[0][1]), strict=True
  ):
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_the_base_model_stays_and_bytes_are_those_of_rows(process, rounds):
  states, metrics = rounds
  base = states[-1].extra[fedca.CONTEXT][dictionary_contrast.BASE]
  for name, value in dictionaries.base().items():
    np.testing.assert_array_equal(base[name], value)
  model, encoder = (
    harness.weights(process, states[0]).size,
    harness.flat(dictionaries.base()).size,
  )
  # A row is four numbers; of 1, 2, 3 and 4 examples at most three are shared.
  given, sent, senders = (0, 9), (9, 8), (4, 3)
  clients, seed_and_rate = (5, 4), 3
  # Weight, counts, loss and its parts, moments.
  told = 1 + harness.COUNTS + 3 + 2 * harness.DIMENSION + harness.DIMENSION**2
  for r in range(2):
    work = metrics[r]['client_work']
    down = 4 * (model + encoder + seed_and_rate + harness.DIMENSION * given[r])
    assert work['bytes_down'] == clients[r] * down
    up = clients[r] * (model + told) + harness.DIMENSION * sent[r] + senders[r]
    assert work['bytes_up'] == 4 * up
    assert work['dictionary_rows'] == given[r]


@pytest.mark.long
def test_rounds_without_dictionary_and_alignment_are_those_of_fedavg(tff_context):
  """Of networks with batch norm, whose statistics are averaged."""
  model = harness.model('mild', batch_norm=True)
  optimizer = optimizers.build_optimizer(_SGD)
  element = labels.spec(contextual.CLIENT)
  process = processes.build(
    fedca.fedca(
      dictionary_contrast.FedCAObjective(model, objectives.FedCA(temperature=0.1)),
      optimizer,
      *dictionaries.config(slots=0),
    ),
    element,
  )
  plain = processes.build(
    fedavg.fedavg(
      simclr.SimclrObjective(model, objectives.Simclr(temperature=0.1)),
      optimizer,
      labels.CLIENT_CONFIG,
    ),
    element,
  )
  cohorts = [_cohort(0, 3, None, 1, 4), _cohort(4, 2, 3, 1, broken=(3,))]
  (got, metrics), (expected, wanted) = (
    harness.rounds_of(each, cohorts) for each in (process, plain)
  )
  start, *others = (harness.weights(plain, state) for state in expected)
  assert harness.relative(others[1], start) > 1e-3
  for state, weights in zip(got[1:], others, strict=True):
    np.testing.assert_allclose(
      harness.weights(process, state), weights, rtol=1e-5, atol=1e-6
    )
  for one, other in zip(got[1:], expected[1:], strict=True):
    statistics, wanted_statistics = (
      each.get_model_weights(state).non_trainable
      for each, state in ((process, one), (plain, other))
    )
    assert any(np.any(value) for value in wanted_statistics.values())
    for name, value in wanted_statistics.items():
      np.testing.assert_allclose(statistics[name], value, rtol=2e-4, atol=1e-5)
  for r in range(2):
    assert metrics[r]['client_work']['dictionary_rows'] == 0
    for name, value in wanted[r]['client_work'].items():
      if name != 'bytes_down':
        assert metrics[r]['client_work'][name] == pytest.approx(value, rel=1e-4), name


def test_a_number_that_no_client_has_is_an_error(process, rounds):
  cohort = [data.map(_renumbered) for data in _cohort(0, 3)]
  with pytest.raises(Exception, match=r'is 6; it must be in \[0, 6\), because the pop'):
    process.next(rounds[0][0], cohort)


def _renumbered(element):
  number = tf.constant(dictionaries.POPULATION, tf.int32)
  return collections.OrderedDict(element, **{contextual.CLIENT: number})


def test_noise_in_the_dictionary_is_refused():
  private = aggregations.private(1.0, 1.0, 1.0)
  with pytest.raises(ValueError, match='The aggregation adds noise, as a private one'):
    processes.build(
      fedca.fedca(dictionaries.objective(0.0), None, *dictionaries.config()),
      labels.spec(contextual.CLIENT),
      private,
    )


@pytest.mark.parametrize(
  ('spec', 'base', 'message'),
  [
    (harness.ELEMENT, dictionaries.base(), 'must have an int32 scalar `client`'),
    (labels.spec('client'), None, 'alignment_weight is 0.5 without base_params'),
    (
      labels.spec('client'),
      {},
      'params of the base model has no .*; it must hold all 1 parameters',
    ),
    (
      labels.spec('client'),
      {**dictionaries.base(), 'conv/kernel': np.zeros([3, 3, 1, 5])},
      r'conv/kernel of the base model is .*; it must be \(3, 3, 1, 6\)',
    ),
  ],
)
def test_mismatched_arguments_are_refused(spec, base, message):
  with pytest.raises(ValueError, match=message):
    processes.build(
      fedca.fedca(dictionaries.objective(), None, *dictionaries.config(), base), spec
    )
