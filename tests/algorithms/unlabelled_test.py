"""Means count what entered the loss: examples without a label weigh nothing.

Expected numbers are of NumPy in float64, or those of the same round on data from which
the examples without a label were removed by hand.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import unlabelled
from tests.algorithms.labels_at_server import labels
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import centralized_training
from tff_ssl.federated import optimizers
from tff_ssl.objectives import linear_classifier
from tff_ssl.objectives import maml
from tff_ssl.objectives import selection


def _step(weights, client):
  """Returns a client's weights after a step of cross-entropy, its loss, accuracy, n."""
  own = unlabelled.labelled(client)
  x = np.c_[own['features'].astype(np.float64), np.ones(len(own['label']))]
  logits = x @ weights
  exponents = np.exp(logits)
  p = exponents / exponents.sum(1, keepdims=True)
  truth = np.eye(unlabelled.CLASSES)[own['label']]
  n = len(x)
  loss = -np.sum(np.log(p) * truth) / n
  accuracy = np.mean(logits.argmax(1) == own['label'])
  return weights - unlabelled.RATE * x.T @ (p - truth) / n, loss, accuracy, n


_FORMS = ('apart', 'packed', 'private packed', 'stateful', 'stateful packed')


@pytest.mark.long_for('apart', 'stateful')
@pytest.mark.parametrize('form', _FORMS)
def test_clients_weigh_with_their_labelled_examples(tff_context, form):
  process, packed = unlabelled.build(form)
  clients = unlabelled.clients()
  states, metrics = harness.rounds_of(process, [unlabelled.cohort(clients, packed)] * 2)

  weights = np.zeros([unlabelled.FEATURES + 1, unlabelled.CLASSES])
  for state, reported in zip(states[1:], metrics, strict=True):
    ends, losses, accuracies, sizes = zip(
      *(_step(weights, c) for c in clients if np.any(c['label'] >= 0)), strict=True
    )
    assert sizes == (2, 2, 1, 4)
    weights = np.average(ends, axis=0, weights=sizes)
    found = process.get_model_weights(state).trainable
    np.testing.assert_allclose(found['kernel'], weights[:-1], rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(found['bias'], weights[-1], rtol=2e-6, atol=1e-7)
    work = reported['client_work']
    expected = np.average([losses, accuracies], axis=1, weights=sizes)
    assert [work['loss'], work['accuracy']] == pytest.approx(expected, rel=2e-6)
    assert (work['clients'], work['examples'], work['empty_clients']) == (6, 9, 2)


@pytest.mark.long_for('scaffold')
@pytest.mark.parametrize('form', ['packed', 'stateful packed', 'scaffold'])
def test_batches_are_of_labelled_examples(tff_context, form):
  process, packed = unlabelled.build(form, unlabelled.EPOCHS)
  clients = unlabelled.clients()
  expected, _ = harness.rounds_of(
    process, [unlabelled.cohort([*map(unlabelled.labelled, clients)], packed)] * 2
  )
  found, _ = harness.rounds_of(process, [unlabelled.cohort(clients, packed)] * 2)
  for a, b in zip(found, expected, strict=True):
    np.testing.assert_allclose(
      harness.weights(process, a), harness.weights(process, b), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize('form', ['packed', 'stateful packed'])
def test_a_cohort_without_labels_measures_and_changes_nothing(tff_context, form):
  process, packed = unlabelled.build(form, unlabelled.EPOCHS)
  clients = unlabelled.clients([[0, 1, -1], [-1, -1], [-1]])
  states, metrics = harness.rounds_of(
    process,
    [unlabelled.cohort(clients[:1], packed), unlabelled.cohort(clients[1:], packed)],
  )
  work = metrics[1]['client_work']
  assert np.isnan(work['loss']) and np.isnan(work['accuracy'])
  assert (work['clients'], work['examples'], work['empty_clients']) == (2, 0, 2)
  before, after = (harness.weights(process, state) for state in states[1:])
  np.testing.assert_array_equal(after, before)
  assert np.linalg.norm(after) > 0


class _OfAll(linear_classifier.LinearObjective):
  """The same loss of the same examples, without a word of which enter it."""

  example_mask = None


@pytest.mark.long_for('stateful packed')
@pytest.mark.parametrize('form', ['packed', 'stateful packed'])
def test_nothing_differs_where_all_are_labelled(tff_context, form):
  clients = unlabelled.clients([[0, 1], [1, 1, 0], [0], [], [1, 0]])
  got = []
  for objective in (
    unlabelled.OBJECTIVE,
    _OfAll(unlabelled.FEATURES, unlabelled.CLASSES),
  ):
    process, packed = unlabelled.build(form, unlabelled.EPOCHS, objective)
    states, metrics = harness.rounds_of(
      process, [unlabelled.cohort(clients, packed)] * 2
    )
    got.append([harness.weights(process, states[-1]), harness.flat(metrics)])
  for a, b in zip(*got, strict=True):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('kind', ['one step', 'epochs'])
def test_centralized_training_takes_labelled_examples(kind):
  clients = unlabelled.clients()
  if kind == 'epochs':
    process = centralized_training.CentralizedTraining(
      unlabelled.OBJECTIVE, unlabelled.EPOCHS
    )
  else:
    process = centralized.Centralized(
      unlabelled.OBJECTIVE, optimizers.build_optimizer(harness.ADAM)
    )
  (_, expected), metrics = harness.rounds_of(
    process, [unlabelled.cohort([*map(unlabelled.labelled, clients)], False)]
  )
  (start, found), metrics_of_all = harness.rounds_of(
    process, [unlabelled.cohort(clients, False)]
  )
  np.testing.assert_allclose(
    harness.weights(process, found), harness.weights(process, expected), rtol=1e-6
  )
  assert metrics_of_all == metrics
  # Without a label nothing is measured.
  state, (metrics,) = harness.rounds_of(
    process, [unlabelled.cohort(clients[2:4], False)]
  )
  assert np.isnan(metrics['client_work']['loss'])
  assert metrics['client_work']['examples'] == 0
  np.testing.assert_array_equal(
    harness.weights(process, state[-1]), harness.weights(process, start)
  )


@pytest.mark.parametrize(
  'objective',
  [
    labels.labelled(),
    labels.teacher(),
    maml.MamlObjective(labels.labelled(), 0.1),
  ],
  ids=lambda objective: type(objective).__name__,
)
def test_objectives_of_labels_leave_out_the_others(objective):
  examples = harness.tensors(harness.arrays(4))
  examples['label'] = tf.constant([1, -1, 0, -1])
  found = selection.select_examples(objective, examples)
  np.testing.assert_array_equal(found['example_id'], [100, 102])


@pytest.mark.parametrize(
  'objective',
  [labels.pseudo_labels(), labels.student(), maml.MamlObjective(harness.cco(), 0.1)],
  ids=lambda objective: type(objective).__name__,
)
def test_consistency_losses_are_means_over_all(objective):
  examples = harness.tensors(harness.arrays(4))
  assert selection.select_examples(objective, examples) is examples
