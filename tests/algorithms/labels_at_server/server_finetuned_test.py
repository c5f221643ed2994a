"""Algorithms that move one model at both sides, against local training written out."""

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import server_finetuned
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.federated import local_training
from tff_ssl.federated import processes
from tff_ssl.objectives import simclr


def _train_at_server(params, optimizer):
  begun = tf.nest.map_structure(tf.constant, optimizer)
  return labels.train_at_server(labels.labelled(), params, harness.round_seed(0), begun)


def _train_clients(objective, params):
  train = harness.for_any_size(
    lambda examples: (
      local_training.train(
        objective,
        labels.CLIENT_CONFIG.clients,
        params,
        examples,
        harness.round_seed(0),
        0.05,
      ).params
    )
  )
  return [
    train(harness.tensors(harness.take(harness.arrays(), positions)))
    for positions in labels.CLIENTS
  ]


def _mean(models, name, members=range(5)):
  return np.average(
    [models[k][name].numpy().astype(np.float64) for k in members],
    axis=0,
    weights=[labels.SIZES[k] for k in members],
  )


def test_the_average_is_fine_tuned(tff_context):
  """SimCLR on the clients; the projector is theirs alone, the head the server's."""
  objective = simclr.SimclrObjective(harness.model('mild'))
  process = processes.build(
    server_finetuned.server_finetuned(*labels.sides(objective)), labels.spec()
  )
  state = process.initialize()
  start = labels.as_params(state.global_model_weights.trainable)
  assert {n.split('/')[0] for n in start} == {'encoder', 'projector', 'head'}
  own = server_training.select(start, objective.init(tf.constant([0, 0])))
  models = _train_clients(objective, own)
  averaged = dict(start)
  averaged.update({name: tf.constant(_mean(models, name), tf.float32) for name in own})
  names = labels.labelled().init(tf.constant([0, 0]))
  averaged.update(
    _train_at_server(server_training.select(averaged, names), state.optimizer)
  )
  output = process.next(state, harness.server_data(), harness.cohort(labels.CLIENTS))
  got = output.state.global_model_weights.trainable
  step = labels.moved(start, averaged)
  assert harness.relative(labels.moved(start, got), step) < 1e-3
  sums = [
    labels.moved(own, model) * n for model, n in zip(models, labels.SIZES, strict=True)
  ]
  diversity = sum((u**2).sum() for u in sums) / (sum(sums) ** 2).sum()
  metrics = output.metrics['client_work']
  assert metrics['gradient_diversity'] == pytest.approx(diversity, rel=1e-3)


@pytest.mark.long
def test_a_replica_is_in_each_group(tff_context):
  """FedRGD: the server trains from the model that the clients start from."""
  algorithm = fedrgd.fedrgd(*labels.sides())
  process = processes.build(algorithm, labels.spec(grouping.GROUP))
  state = process.initialize()
  start = labels.as_params(state.global_model_weights.trainable)
  replica = _train_at_server(start, state.optimizer)
  models = _train_clients(labels.pseudo_labels(), start)
  expected = {}
  for name in start:
    groups = []
    for group in (0, 1):
      members = [k for k in range(5) if labels.GROUPS[k] == group]
      total = len(members) * _mean(models, name, members) + replica[name].numpy()
      groups.append(total / (len(members) + 1))
    expected[name] = np.mean(groups, axis=0)
  cohort = harness.cohort(labels.CLIENTS, labels.examples(grouping.GROUP))
  output = process.next(state, harness.server_data(), cohort)
  got = output.state.global_model_weights.trainable
  step = labels.moved(start, expected)
  assert harness.relative(labels.moved(start, got), step) < 1e-3


def test_a_server_model_where_it_can_not_be_is_refused():
  with pytest.raises(ValueError, match=r'server_weight is 1\.0; it must be 0'):
    server_finetuned.server_finetuned(
      *labels.sides(), grouping=grouping.Grouping(2, 1.0)
    )
  with pytest.raises(ValueError, match='server_weight is 0; it must be above 0'):
    fedrgd.fedrgd(*labels.sides(), grouping=grouping.FEDAVG)
