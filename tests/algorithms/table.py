"""The algorithms that `conformance_test` checks, one row each."""

import collections
from collections.abc import Callable
import dataclasses
import functools
from typing import Any

from tests.algorithms import dictionaries
from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms.labels_at_server import labels
from tests.algorithms.ssfl import ssfl
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.algorithms import fedca
from tff_ssl.algorithms import fedu2
from tff_ssl.algorithms import l_dawa
from tff_ssl.algorithms import orchestra
from tff_ssl.algorithms import scaffold
from tff_ssl.algorithms import ssd
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import fedu
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.algorithms.labels_at_server import fedmatch
from tff_ssl.algorithms.labels_at_server import fedrgd
from tff_ssl.algorithms.labels_at_server import fedsup
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import server_finetuned
from tff_ssl.algorithms.ssfl import bilevel_ssfl
from tff_ssl.algorithms.ssfl import maml_ssfl
from tff_ssl.algorithms.ssfl import per_ssfl
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.algorithms.statistics import fedsc
from tff_ssl.algorithms.without_server import decentralized
from tff_ssl.algorithms.without_server import topology
from tff_ssl.encoders import predictor
from tff_ssl.federated import optimizers
from tff_ssl.losses import spectral
from tff_ssl.objectives import byol as byol_lib
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import orchestra as orchestra_objective
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import uniformity
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import personal


def _nt_xent():
  return simclr.SimclrObjective(harness.model(harness.SWAPPED))


def _simsiam(batch_norm=False):
  return simsiam.SimSiamObjective(
    harness.model(batch_norm=batch_norm),
    predictor.build_predictor(harness.DIMENSION, 8),
  )


def _byol():
  return byol_lib.ByolObjective(
    harness.model(), predictor.build_predictor(harness.DIMENSION, 8)
  )


@dataclasses.dataclass(frozen=True)
class Row:
  """A row of the table.

  Attributes:
    method: The function or class of `tff_ssl.algorithms` under test.
    build: The server's optimizer -> the algorithm; or, in a centralized row, () -> the
      process.
    collects: Rounds before the first that changes the weights.
    sparse: Whether weights that are 0 are not sent, and the others with their place.
    scratch: What the server keeps by these names each round writes anew before it is
      read, as the statistics between the two exchanges of DCCO.
    messages: Models that are sent in a round of two clients.
  """

  method: Callable[..., Any]
  build: Callable[..., Any]
  collects: int = 0
  sparse: bool = False
  scratch: tuple[str, ...] = ()
  messages: int = 2

  @property
  def federated(self) -> bool:
    return not isinstance(self.method, type)

  def algorithm(self, optimizer: learning.Server = harness.ADAM) -> Any:
    """Returns the algorithm of a federated row."""
    return self.build(optimizers.build_optimizer(optimizer))


_EPOCHS = fedavg.Training(
  learning.SgdClients(learning_rate=0.1, epochs=2, batch_size=2, momentum=0.9),
  seed=harness.SEED,
)


_PLAIN_SGD = dataclasses.replace(
  _EPOCHS, clients=dataclasses.replace(_EPOCHS.clients, momentum=0.0)
)


def _centralized_training(objective):
  return centralized_training.CentralizedTraining(objective, _EPOCHS)


_DCCO = methods.Dcco(), learning.StepClients(), harness.SEED
_STEPS = (methods.Dcco(), learning.StepClients(0.001, 3), harness.SEED)
_STALE = (methods.Dcco(stale_statistics=True), learning.StepClients(), harness.SEED)


def _row(method, objective, *arguments, **others) -> Row:
  """Returns the row of a method whose server has an optimizer."""
  return Row(
    method, lambda optimizer: method(objective, optimizer, *arguments), **others
  )


def _labelled(method, *arguments, **others) -> Row:
  """Returns the row of a method whose server has labels."""
  return Row(method, lambda _: method(*arguments), **others)


_COLLECTED = ('statistics', 'num_examples', 'encoding_std')
_FEDAVG = fedavg.Training(seed=harness.SEED)

TABLE = collections.OrderedDict(
  dcco=_row(
    dcco.dcco,
    harness.cco(),
    *_DCCO,
    scratch=_COLLECTED,
  ),
  dcco_lejepa=_row(
    dcco.dcco,
    harness.cco('lejepa'),
    *_DCCO,
    scratch=_COLLECTED,
  ),
  dcco_stale=_row(dcco.dcco, harness.cco(), *_STALE, collects=1),
  dcco_local_steps=_row(dcco.dcco, harness.cco(), *_STEPS, scratch=_COLLECTED),
  fedsc=_row(
    fedsc.fedsc,
    statistics.StatisticsObjective(harness.model(), spectral.SpectralLoss()),
    learning.StepClients(0.1, 2),
    harness.SEED,
  ),
  fedavg_cco=_row(fedavg.fedavg, harness.cco(), _FEDAVG),
  fedavg_nt_xent=_row(fedavg.fedavg, _nt_xent(), _FEDAVG),
  fedavg_batch_norm=_row(fedavg.fedavg, _simsiam(batch_norm=True), _FEDAVG),
  fedbn_simsiam=_row(fedbn.fedbn, _simsiam(batch_norm=True), _EPOCHS),
  fed_byol=_row(fed_ssl.fed_ssl, _byol(), _EPOCHS),
  scaffold=_row(scaffold.scaffold, _byol(), _PLAIN_SGD, 8),
  l_dawa=_row(l_dawa.l_dawa, _simsiam(batch_norm=True), _EPOCHS),
  fedu2=_row(
    fedu2.fedu2,
    _nt_xent(),
    methods.FedU2(0.1, sketch_size=64),
    _EPOCHS,
    numbered.POPULATION,
    scratch=('weights',),
  ),
  orchestra=_row(
    orchestra.orchestra,
    orchestra_objective.OrchestraObjective(harness.model()),
    methods.Orchestra(5, 2),
    _EPOCHS,
    numbered.POPULATION,
    collects=1,
  ),
  ssd=Row(
    ssd.ssd,
    # The model's features and projections differ in size.
    lambda optimizer: ssd.ssd(
      uniformity.UniformityObjective(harness.model()),
      optimizer,
      _EPOCHS,
      numbered.POPULATION,
      distillation_weight=0.0,
    ),
  ),
  decentralized=Row(
    decentralized.decentralized,
    lambda _: decentralized.decentralized(
      _simsiam(batch_norm=True), topology.ring(numbered.POPULATION), _EPOCHS
    ),
    # Both ways over each edge.
    messages=2 * numbered.POPULATION,
  ),
  fedema=_row(fedema.fedema, _byol(), personal.FedEMA(), _EPOCHS),
  fedu=_row(fedu.fedu, _byol(), personal.FedU(threshold=0.01), _EPOCHS),
  featarc=_row(
    featarc.featarc,
    _simsiam(batch_norm=True),
    personal.Featarc(),
    _EPOCHS,
  ),
  per_ssfl=_row(per_ssfl.per_ssfl, ssfl.objective(), personal.Per(0.5), _EPOCHS),
  bilevel_ssfl=_row(
    bilevel_ssfl.bilevel_ssfl,
    ssfl.objective(),
    personal.Bilevel(0.5),
    _EPOCHS,
  ),
  # Its gradient of a gradient is the largest graph of all: without a loop.
  maml_ssfl=_row(maml_ssfl.maml_ssfl, ssfl.objective(), _FEDAVG, 0.1),
  fedca=Row(fedca.fedca, lambda optimizer: dictionaries.algorithm(optimizer, _EPOCHS)),
  fedsup=_labelled(
    fedsup.fedsup,
    labels.student(),
    labels.teacher(),
    harness.ELEMENT,
    *labels.PLANS,
    grouping.FEDAVG,
  ),
  fedmatch=_labelled(
    fedmatch.fedmatch,
    labels.unlabelled(),
    helper_consistency.LabelledObjective(labels.labelled()),
    harness.ELEMENT,
    methods.Fedmatch(helper_interval=2),
    labels.CLIENT_CONFIG,
    numbered.POPULATION,
    labels.SERVER_PLAN,
    sparse=True,
  ),
  fedrgd=_labelled(
    fedrgd.fedrgd,
    *labels.sides(),
    grouping.Grouping(1, 1.0),
    scratch=('replica',),
  ),
  server_finetuned_fixmatch=_labelled(
    server_finetuned.server_finetuned, *labels.sides()
  ),
  centralized_cco=Row(
    centralized.Centralized,
    lambda: centralized.Centralized(
      harness.cco(), optimizers.build_optimizer(harness.ADAM), harness.SEED
    ),
  ),
  centralized_training_byol=Row(
    centralized_training.CentralizedTraining, lambda: _centralized_training(_byol())
  ),
  centralized_training_batch_norm=Row(
    centralized_training.CentralizedTraining,
    lambda: _centralized_training(_simsiam(batch_norm=True)),
  ),
)


@functools.cache
def process(name, packed=False, aggregation=None, optimizer=harness.ADAM) -> Any:
  """Returns the process of a row, made once: to trace it takes seconds."""
  row = TABLE[name]
  if not row.federated:
    return row.build()
  return harness.process(row.algorithm(optimizer), packed, aggregation)


# Rows whose tests take seconds each and say of one more method what those that stay say
# of their kind: `dcco`, `fedavg_nt_xent`, `fedavg_batch_norm`, `fedema`, `fedca` and
# `fedsup`. They are `long`.
LONG = (
  'dcco_lejepa',
  'dcco_stale',
  'dcco_local_steps',
  'fedsc',
  'fedavg_cco',
  'fedbn_simsiam',
  'fed_byol',
  'scaffold',
  'l_dawa',
  'decentralized',
  'fedu2',
  'orchestra',
  'ssd',
  'fedu',
  'featarc',
  'per_ssfl',
  'bilevel_ssfl',
  'maml_ssfl',
  'fedmatch',
  'fedrgd',
  'server_finetuned_fixmatch',
)
