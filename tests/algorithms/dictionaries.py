"""What the tests of FedCA share: clients, and what one of them sends."""

import collections

import numpy as np
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms.labels_at_server import labels
from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedca
from tff_ssl.federated import server
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

# Of the clients of `labels.CLIENTS`, which hold 1, 2, 3, 4 and 2 examples; client 5 is
# never there.
NUMBERS = (0, 3, 1, 4, 2)
SIZE_OF = dict(zip(NUMBERS, labels.SIZES, strict=True))
POPULATION, SLOTS = 6, 3
SEED = (5, 6)


def objective(beta: float = 0.5) -> dictionary_contrast.FedCAObjective:
  return dictionary_contrast.FedCAObjective(
    harness.model('mild'), objectives.FedCA(alignment_weight=beta)
  )


def base():
  return harness.encoder().init((7, 8))


def config(slots: int = SLOTS, training=labels.CLIENT_CONFIG):
  """Returns the arguments of `fedca` after the optimizer."""
  return methods.FedCA(slots), training, POPULATION


def examples():
  return labels.examples(contextual.CLIENT, NUMBERS)


def batch(number: int, size: int | None = None):
  """Returns the examples of a client, or the first of them."""
  positions = labels.CLIENTS[NUMBERS.index(number)][:size]
  return harness.tensors(harness.take(examples(), positions))


def context(minimised, plan, full: bool = False):
  """Returns what clients are given: of the dictionary nothing, or all."""
  given = fedca.initial_context(minimised, plan[0], plan[-1], base())
  if full:
    shape = given[dictionary_contrast.ROWS].shape
    rows = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    given[dictionary_contrast.ROWS] = tf.math.l2_normalize(tf.constant(rows), axis=2)
    given[dictionary_contrast.FILLED] = tf.ones(shape[:2], tf.bool)
  return given


def shared(given, params=None, seed=SEED):
  seed = tf.constant(seed)
  params = objective().init(SEED) if params is None else params
  return collections.OrderedDict(
    params=params, seed=seed, rate=tf.constant(0.05), context=given
  )


def visit(number, plan=None, minimised=None, full=True, size=None, **options):
  """Returns what a client sends."""
  minimised, plan = minimised or objective(), plan or config()
  given = shared(context(minimised, plan, full), **options)
  function = fedca.client_function(minimised, *plan)
  return sends(function, given, batch(number, size))


def sends(function, given, examples):
  """Returns what leaves a client, weighed and counted."""
  kinds = {**server.sent_kinds(), fedca.ENTRIES: combine.Sum()}
  return harness.visit(function, kinds, given, examples)[0]


def sum_of(result):
  """Returns rows and filled as they arrive: weight times the means."""
  statistics = result.means[fedca.ENTRIES]
  return (
    float(result.weight) * statistics[name].numpy()
    for name in (dictionary_contrast.ROWS, dictionary_contrast.FILLED)
  )


def algorithm(optimizer, training: fedavg.Training):
  """Returns an algorithm with a dictionary and a base model."""
  return fedca.fedca(
    dictionary_contrast.FedCAObjective(
      harness.model(), objectives.FedCA(alignment_weight=0.5)
    ),
    optimizer,
    methods.FedCA(2),
    training,
    numbered.POPULATION,
    base(),
  )
