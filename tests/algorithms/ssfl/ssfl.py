"""Processes of SSFL's family, that its tests share."""

import functools

from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.encoders import predictor
from tff_ssl.objectives import simsiam
from tff_ssl.settings import learning
from tff_ssl.settings import personal

SERVER = learning.SgdServer()
CONFIG = fedavg.Training(
  learning.SgdClients(learning_rate=0.1, epochs=2, batch_size=2, momentum=0.9),
  seed=harness.SEED,
)
MEMBERS = harness.split([3, 2, 4, 3])
# Clients come back after rounds without them, in other places.
ROUNDS = [[0, 1], [2, 0], [1, 3, 2]]


@functools.cache
def objective() -> simsiam.SimSiamObjective:
  return simsiam.SimSiamObjective(
    harness.model(), predictor.build_predictor(harness.DIMENSION, 8)
  )


def cohorts():
  return [harness.cohort([MEMBERS[k] for k in round]) for round in ROUNDS]


def examples(client):
  return harness.tensors(harness.take(harness.arrays(), MEMBERS[client]))


def kept(state, client):
  """Returns what a client keeps."""
  return state.clients[100 + MEMBERS[client][0]].kept


def build_fedavg():
  return harness.build_fedavg(objective(), SERVER, CONFIG)


def build_per(weight=0.5):
  config = personal.Per(weight), CONFIG
  return harness.build(per_ssfl.per_ssfl, objective(), SERVER, config)


def build_bilevel(weight=0.5):
  config = personal.Bilevel(weight), CONFIG
  return harness.build(bilevel_ssfl.bilevel_ssfl, objective(), SERVER, config)
