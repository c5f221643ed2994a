"""A linear classifier of features, of clients with and without labels."""

import collections
import dataclasses
import functools

import numpy as np
import tensorflow as tf

from tests.algorithms import harness
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import scaffold
from tff_ssl.federated import optimizers
from tff_ssl.objectives import linear_classifier
from tff_ssl.settings import learning

FEATURES, CLASSES, RATE = 3, 2, 0.5
_ELEMENT = collections.OrderedDict(
  features=tf.TensorSpec([FEATURES], tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
  label=tf.TensorSpec([], tf.int32),
)
OBJECTIVE = linear_classifier.LinearObjective(FEATURES, CLASSES)
_SGD = learning.SgdServer()
# All labelled; some; none; none at all; one of many, so that sizes change their order.
LABELS = [
  [0, 1],
  [-1, 1, 0],
  [-1, -1, -1, -1],
  [],
  [-1, -1, -1, 0, -1],
  [1, 1, -1, 0, 0],
]
ONE_STEP = fedavg.Training(learning.SgdClients(learning_rate=RATE))
# Momentum and the decay of weights would move a model without a gradient.
EPOCHS = fedavg.Training(
  learning.SgdClients(
    learning_rate=RATE, epochs=2, batch_size=2, momentum=0.5, weight_decay=0.1
  )
)

_AGGREGATIONS = {
  'secure': aggregations.secure(8.0, 4),
  # Hardly any noise, and norms that clip nothing: each client's own values are taken.
  'private': aggregations.private(1e-12, 1e3, 1e3, 1e3),
}


def clients(of_clients=LABELS):
  """Returns the examples of each client as arrays."""
  generator, result, first = np.random.default_rng(7), [], 0
  for own in of_clients:
    result.append(
      collections.OrderedDict(
        features=generator.normal(size=(len(own), FEATURES)).astype(np.float32),
        example_id=np.arange(first, first + len(own)),
        label=np.array(own, np.int32),
      )
    )
    first += len(own)
  return result


def labelled(client):
  return collections.OrderedDict(
    (name, value[client['label'] >= 0]) for name, value in client.items()
  )


def cohort(clients, packed):
  if not packed:
    return [tf.data.Dataset.from_tensor_slices(client) for client in clients]
  return harness.packed(clients)


def build(form, config=ONE_STEP, objective=OBJECTIVE):
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
  of_all = functools.partial(scaffold.scaffold, population=len(LABELS))
  methods = {'stateful': fed_ssl.fed_ssl, 'scaffold': of_all}
  algorithm = methods.get(kind, fedavg.fedavg)(objective, optimizer, config)
  return harness.process(algorithm, packed, _AGGREGATIONS.get(kind), _ELEMENT)
