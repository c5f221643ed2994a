"""Means count what entered the loss: examples without a label weigh nothing.

Neither does a client with huge values. Expected numbers are of NumPy in float64, or
those of the same round on data from which what does not count was removed by hand.
"""

import collections
import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import scaffold
from tff_ssl.federated import optimizers
from tff_ssl.objectives import linear_classifier
from tff_ssl.objectives import maml
from tff_ssl.objectives import selection
from tff_ssl.settings import learning

_FEATURES, _CLASSES, _RATE = 3, 2, 0.5
_ELEMENT = collections.OrderedDict(
  features=tf.TensorSpec([_FEATURES], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
  label=tf.TensorSpec([], tf.int32),
)
_OBJECTIVE = linear_classifier.LinearObjective(_FEATURES, _CLASSES)
_SGD = learning.SgdServer()
# All labelled; some; none; none at all; one of many, so that sizes change their order.
_LABELS = [
  [0, 1],
  [-1, 1, 0],
  [-1, -1, -1, -1],
  [],
  [-1, -1, -1, 0, -1],
  [1, 1, -1, 0, 0],
]
_ONE_STEP = fedavg.Training(learning.SgdClients(learning_rate=_RATE))
# Momentum and the decay of weights would move a model without a gradient.
_EPOCHS = fedavg.Training(
  learning.SgdClients(
    learning_rate=_RATE, epochs=2, batch_size=2, momentum=0.5, weight_decay=0.1
  )
)

_AGGREGATIONS = {
  'secure': aggregations.secure(8.0, 4),
  # Hardly any noise, and norms that clip nothing: each client's own values are taken.
  'private': aggregations.private(1e-12, 1e3, 1e3, 1e3),
}


def _clients(of_clients=_LABELS):
  """Returns the examples of each client as arrays."""
  generator, result, first = np.random.default_rng(7), [], 0
  for own in of_clients:
    result.append(
      collections.OrderedDict(
        features=generator.normal(size=(len(own), _FEATURES)).astype(np.float32),
        example_id=np.arange(first, first + len(own)),
        label=np.array(own, np.int32),
      )
    )
    first += len(own)
  return result


def _labelled(client):
  return collections.OrderedDict(
    (name, value[client['label'] >= 0]) for name, value in client.items()
  )


def _process(form, config=_ONE_STEP, objective=_OBJECTIVE):
  """Returns a process, and whether its clients are packed."""
  packed = 'packed' in form
  return _build(form.split()[0], config, objective, packed), packed


@functools.cache
def _build(kind, config, objective, packed):
  optimizer = optimizers.build_optimizer(_SGD)
  if kind == 'scaffold':
    # Its clients take plain steps.
    plain = dataclasses.replace(config.clients, momentum=0.0, weight_decay=0.0)
    config = dataclasses.replace(config, clients=plain)
  of_all = functools.partial(scaffold.scaffold, population=len(_LABELS))
  methods = {'stateful': fed_ssl.fed_ssl, 'scaffold': of_all}
  algorithm = methods.get(kind, fedavg.fedavg)(objective, optimizer, config)
  return harness.process(algorithm, packed, _AGGREGATIONS.get(kind), _ELEMENT)


def _step(weights, client):
  """Returns a client's weights after a step of cross-entropy, its loss, accuracy, n."""
  own = _labelled(client)
  x = np.c_[own['features'].astype(np.float64), np.ones(len(own['label']))]
  logits = x @ weights
  exponents = np.exp(logits)
  p = exponents / exponents.sum(1, keepdims=True)
  truth = np.eye(_CLASSES)[own['label']]
  n = len(x)
  loss = -np.sum(np.log(p) * truth) / n
  accuracy = np.mean(logits.argmax(1) == own['label'])
  return weights - _RATE * x.T @ (p - truth) / n, loss, accuracy, n


_FORMS = ('apart', 'packed', 'private packed', 'stateful', 'stateful packed')


@pytest.mark.long_for('apart', 'stateful')
@pytest.mark.parametrize('form', _FORMS)
def test_clients_weigh_with_their_labelled_examples(tff_context, form):
  process, packed = _process(form)
  clients = _clients()
  states, metrics = harness.rounds_of(process, [harness.datasets(clients, packed)] * 2)

  weights = np.zeros([_FEATURES + 1, _CLASSES])
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
  process, packed = _process(form, _EPOCHS)
  clients = _clients()
  expected, _ = harness.rounds_of(
    process, [harness.datasets([*map(_labelled, clients)], packed)] * 2
  )
  found, _ = harness.rounds_of(process, [harness.datasets(clients, packed)] * 2)
  for a, b in zip(found, expected, strict=True):
    np.testing.assert_allclose(
      harness.weights(process, a), harness.weights(process, b), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize('form', ['packed', 'stateful packed'])
def test_a_cohort_without_labels_measures_and_changes_nothing(tff_context, form):
  process, packed = _process(form, _EPOCHS)
  clients = _clients([[0, 1, -1], [-1, -1], [-1]])
  states, metrics = harness.rounds_of(
    process,
    [harness.datasets(clients[:1], packed), harness.datasets(clients[1:], packed)],
  )
  work = metrics[1]['client_work']
  assert np.isnan(work['loss']) and np.isnan(work['accuracy'])
  assert (work['clients'], work['examples'], work['empty_clients']) == (2, 0, 2)
  before, after = (harness.weights(process, state) for state in states[1:])
  np.testing.assert_array_equal(after, before)
  assert np.linalg.norm(after) > 0


@pytest.mark.parametrize('kind', ['one step', 'epochs'])
def test_centralized_training_takes_labelled_examples(kind):
  clients = _clients()
  if kind == 'epochs':
    process = centralized_training.CentralizedTraining(_OBJECTIVE, _EPOCHS)
  else:
    process = centralized.Centralized(
      _OBJECTIVE, optimizers.build_optimizer(harness.ADAM)
    )
  (_, expected), metrics = harness.rounds_of(
    process, [harness.datasets([*map(_labelled, clients)])]
  )
  (start, found), metrics_of_all = harness.rounds_of(
    process, [harness.datasets(clients)]
  )
  np.testing.assert_allclose(
    harness.weights(process, found), harness.weights(process, expected), rtol=1e-6
  )
  assert metrics_of_all == metrics
  # Without a label nothing is measured.
  state, (metrics,) = harness.rounds_of(process, [harness.datasets(clients[2:4])])
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


_HUGE_LABELS = [[0, 1], [1, 1], [0, 0], [1]]
_HUGE = 1
_HUGE_FORMS = (
  'apart',
  'packed',
  'secure',
  'private',
  'private packed',
  'stateful',
  'stateful packed',
)


@pytest.mark.long_for('apart', 'private', 'stateful', 'stateful packed', 'secure')
@pytest.mark.parametrize('form', _HUGE_FORMS)
def test_a_huge_client_is_discarded_and_counted(tff_context, form):
  process, packed = _process(form)
  clients = _clients(_HUGE_LABELS)
  others = [own for k, own in enumerate(clients) if k != _HUGE]
  (start, expected), _ = harness.rounds_of(process, [harness.datasets(others, packed)])
  before = harness.weights(process, start)
  for size in (1e30, -3e38):
    clients[_HUGE]['features'][0, 1] = size
    (_, found), (metrics,) = harness.rounds_of(
      process, [harness.datasets(clients, packed)]
    )
    work = metrics['client_work']
    counts = work['clients'], work['nonfinite_clients'], work['examples']
    # Noised sums do not tell who was discarded: the mean is that of all, with zeros.
    hidden = form.startswith('private')
    assert counts == ((4, 0, 7) if hidden else (4, 1, 5))
    assert np.isfinite(work['loss'])
    after = harness.weights(process, found)
    assert np.linalg.norm(after - before) > 0.01
    # Secure sums round to a 2^32th of their bound, and noise is of 1e-9.
    mean = (harness.weights(process, expected) - before) * (5 / 7 if hidden else 1)
    np.testing.assert_allclose(after - before, mean, atol=1e-6)
