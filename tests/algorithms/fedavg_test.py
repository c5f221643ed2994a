"""Tests of FedAvg beyond the local loop: averaging, metrics, sizes."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.algorithms.statistics import dcco_reference
from tests.losses import references
from tests.objectives import warming
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import processes
from tff_ssl.objectives import simclr

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


def test_nt_xent_of_one_image_has_nothing_to_contrast():
  objective = simclr.SimclrObjective(harness.model())
  params = objective.init(tf.constant([0, 1]))
  batch = harness.tensors(harness.take(harness.arrays(), [0]))
  result, _ = harness.visit(
    fedavg.client_function(objective, fedavg.Training()),
    fedavg.sent_kinds(objective),
    {'params': params, 'seed': tf.constant([2, 3]), 'rate': 1.0},
    batch,
  )
  assert np.abs(harness.flat(result.means['update'])).max() < 1e-6
  assert float(result.weight) == 1
  assert float(result.means['metrics']['loss']) == pytest.approx(0.0, abs=1e-6)
  assert int(result.totals['counts']['examples']) == 1


def test_bytes_are_those_of_one_way_each(tff_context):
  process = harness.build_fedavg(harness.cco())
  states, metrics = harness.rounds_of(process, [harness.cohort(_SPLIT)])
  model = harness.weights(process, states[0]).size
  d, weight, counts, loss = harness.DIMENSION, 1, harness.COUNTS, 1
  work = metrics[0]['client_work']
  assert work['bytes_down'] == 4 * 4 * (model + 3)
  assert work['bytes_up'] == 4 * 4 * (model + weight + counts + loss + 2 * d + d**2)


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
