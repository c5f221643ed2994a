"""The algorithms that `conformance_test` checks, one row each."""

import collections
from collections.abc import Callable
import dataclasses
import functools
from typing import Any

from tests.algorithms import dictionaries
from tests.algorithms import harness
from tests.algorithms import labels
from tests.algorithms import numbered
from tests.algorithms import ssfl
from tff_ssl.algorithms import bilevel_ssfl
from tff_ssl.algorithms import centralized
from tff_ssl.algorithms import centralized_training
from tff_ssl.algorithms import dcco
from tff_ssl.algorithms import decentralized
from tff_ssl.algorithms import featarc
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.algorithms import fedca
from tff_ssl.algorithms import fedema
from tff_ssl.algorithms import fedmatch
from tff_ssl.algorithms import fedrgd
from tff_ssl.algorithms import fedsc
from tff_ssl.algorithms import fedsup
from tff_ssl.algorithms import fedu
from tff_ssl.algorithms import l_dawa
from tff_ssl.algorithms import maml_ssfl
from tff_ssl.algorithms import per_ssfl
from tff_ssl.algorithms import scaffold
from tff_ssl.algorithms import server_finetuned
from tff_ssl.encoders import predictor
from tff_ssl.federated import local_training
from tff_ssl.federated import optimizers
from tff_ssl.federated import phases
from tff_ssl.federated import topology
from tff_ssl.objectives import byol as byol_lib
from tff_ssl.objectives import context
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import spectral
from tff_ssl.optimization import local


def _nt_xent():
  return contrastive.ContrastiveObjective(harness.model('byol_no_blur'))


def _simsiam(batch_norm=False):
  return simsiam.SimSiamObjective(
    harness.model(batch_norm=batch_norm),
    predictor.build_predictor(harness.DIMENSION, 8),
  )


def _byol():
  return byol_lib.ByolObjective(
    harness.model(), predictor.build_predictor(harness.DIMENSION, 8)
  )


def _centralized(objective):
  return centralized.Centralized(
    objective, optimizers.build_optimizer(harness.ADAM), harness.SEED
  )


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """A row of the table.

  Attributes:
    builder: The function or class of `tff_ssl.algorithms` under test.
    build: Makes the process in a form, of elements as `harness.ELEMENT`.
    collects: Rounds before the first that changes the weights.
    sparse: Whether weights that are 0 are not sent, and the others with their place.
    scratch: What the server keeps by these names each round writes anew before it is
      read, as the statistics between the two exchanges of DCCO.
    messages: Models that are sent in a round of two clients.
    describe: () -> its phases, of rows whose other forms are checked: at least one of
      each algorithm with stateless clients and no data at the server.
  """

  builder: Callable[..., Any]
  build: Callable[[harness.Form], Any]
  collects: int = 0
  sparse: bool = False
  scratch: tuple[str, ...] = ()
  messages: int = 2
  describe: Callable[[], phases.Algorithm] | None = None

  @property
  def federated(self) -> bool:
    builder = self.builder
    return not (
      isinstance(builder, type) and issubclass(builder, centralized.UnionProcess)
    )


_EPOCHS = fedavg.FedAvgConfig(
  local_training.LocalPlan(
    epochs=2, batch_size=2, optimizer=local.LocalOptimizer(momentum=0.9)
  ),
  client_learning_rate=0.1,
  seed=harness.SEED,
)


_PLAIN_SGD = dataclasses.replace(
  _EPOCHS, local=local_training.LocalPlan(epochs=2, batch_size=2)
)


def _centralized_training(objective):
  return centralized_training.CentralizedTraining(
    objective, _EPOCHS.local, _EPOCHS.rate, harness.SEED
  )


_RING = decentralized.DecentralizedConfig(topology.ring(numbered.POPULATION), _EPOCHS)
_STEPS = dcco.DCCOConfig(client_learning_rate=0.001, local_steps=3, seed=harness.SEED)
_STALE = dcco.DCCOConfig(seed=harness.SEED, stale_statistics=True)


def _dcco(
  loss: str = 'cco', config=None, collects: int = 0, described: bool = False
) -> Algorithm:
  return Algorithm(
    dcco.build_dcco,
    lambda form: harness.build_dcco(
      loss, form.optimizer, config, form.packed, form.aggregation
    ),
    collects,
    scratch=() if config is _STALE else ('statistics', 'num_examples', 'encoding_std'),
    describe=functools.partial(
      dcco.describe,
      harness.cco(loss),
      optimizers.build_optimizer(harness.ADAM),
      config or dcco.DCCOConfig(seed=harness.SEED),
    )
    if described
    else None,
  )


def _fedavg(objective, config=None, described=False) -> Algorithm:
  return Algorithm(
    fedavg.build_fedavg,
    lambda form: harness.build_fedavg(
      objective, form.optimizer, config, form.packed, form.aggregation
    ),
    describe=functools.partial(
      fedavg.describe,
      objective,
      optimizers.build_optimizer(harness.ADAM),
      config or fedavg.FedAvgConfig(seed=harness.SEED),
    )
    if described
    else None,
  )


def _with_states(build, objective, config, form: harness.Form):
  """Returns a process whose clients keep a state."""
  return harness.build_with_states(
    build, objective, form.optimizer, config, form.packed, form.aggregation
  )


def _labelled(build: Callable[..., Any]) -> Callable[[harness.Form], Any]:
  """Returns `Algorithm.build` where the server has labels."""
  return lambda form: build(form.packed, form.aggregation)


TABLE = collections.OrderedDict(
  dcco=_dcco(described=True),
  dcco_stale=_dcco(config=_STALE, collects=1, described=True),
  dcco_local_steps=_dcco(config=_STEPS),
  fedsc=Algorithm(
    fedsc.build_fedsc,
    lambda form: _with_states(
      fedsc.build_fedsc,
      spectral.SpectralObjective(harness.model()),
      fedsc.FedSCConfig(0.1, 2, harness.SEED),
      form,
    ),
  ),
  fedavg_cco=_fedavg(harness.cco(), described=True),
  fedavg_nt_xent=_fedavg(_nt_xent()),
  fedavg_batch_norm=_fedavg(_simsiam(batch_norm=True), described=True),
  fedbn_simsiam=Algorithm(
    fedbn.build_fedbn,
    lambda form: _with_states(
      fedbn.build_fedbn, _simsiam(batch_norm=True), _EPOCHS, form
    ),
  ),
  fed_byol=Algorithm(
    fed_ssl.build_fed_ssl,
    lambda form: _with_states(fed_ssl.build_fed_ssl, _byol(), _EPOCHS, form),
  ),
  scaffold=Algorithm(
    scaffold.build_scaffold,
    lambda form: _with_states(
      scaffold.build_scaffold, _byol(), scaffold.ScaffoldConfig(8, _PLAIN_SGD), form
    ),
  ),
  l_dawa=Algorithm(
    l_dawa.build_l_dawa,
    lambda form: l_dawa.build_l_dawa(
      _simsiam(batch_norm=True),
      harness.PACKS if form.packed else harness.ELEMENT,
      optimizers.build_optimizer(form.optimizer),
      l_dawa.LDAWAConfig(_EPOCHS),
      form.aggregation,
    ),
    describe=lambda: l_dawa.describe(
      _simsiam(batch_norm=True),
      optimizers.build_optimizer(harness.ADAM),
      l_dawa.LDAWAConfig(_EPOCHS),
    ),
  ),
  decentralized=Algorithm(
    decentralized.build_decentralized,
    lambda form: numbered.Numbered(
      decentralized.build_decentralized(
        _simsiam(batch_norm=True),
        labels.spec(context.CLIENT, packed=form.packed),
        _RING,
        form.aggregation,
      )
    ),
    # Both ways over each edge.
    messages=2 * numbered.POPULATION,
    describe=lambda: decentralized.describe(_simsiam(batch_norm=True), _RING),
  ),
  fedema=Algorithm(
    fedema.build_fedema,
    lambda form: _with_states(
      fedema.build_fedema, _byol(), fedema.FedEMAConfig(_EPOCHS), form
    ),
  ),
  fedu=Algorithm(
    fedu.build_fedu,
    lambda form: _with_states(
      fedu.build_fedu, _byol(), fedu.FedUConfig(_EPOCHS, threshold=0.01), form
    ),
  ),
  featarc=Algorithm(
    featarc.build_featarc,
    lambda form: _with_states(
      featarc.build_featarc,
      _simsiam(batch_norm=True),
      featarc.FeatARCConfig(training=_EPOCHS),
      form,
    ),
  ),
  per_ssfl=Algorithm(
    per_ssfl.build_per_ssfl,
    lambda form: _with_states(
      per_ssfl.build_per_ssfl,
      ssfl.objective(),
      per_ssfl.PerSSFLConfig(_EPOCHS, 0.5),
      form,
    ),
  ),
  bilevel_ssfl=Algorithm(
    bilevel_ssfl.build_bilevel_ssfl,
    lambda form: _with_states(
      bilevel_ssfl.build_bilevel_ssfl,
      ssfl.objective(),
      bilevel_ssfl.BiLevelConfig(_EPOCHS, 0.5),
      form,
    ),
  ),
  maml_ssfl=Algorithm(
    maml_ssfl.build_maml_ssfl,
    # Its gradient of a gradient is the largest graph of all: without a loop.
    lambda form: ssfl.build_maml(
      0.1,
      True,
      form.optimizer,
      fedavg.FedAvgConfig(seed=harness.SEED),
      form.packed,
      form.aggregation,
    ),
    describe=lambda: maml_ssfl.describe(
      ssfl.objective(),
      optimizers.build_optimizer(harness.ADAM),
      maml_ssfl.MamlConfig(fedavg.FedAvgConfig(seed=harness.SEED), 0.1, True),
    ),
  ),
  fedca=Algorithm(
    fedca.build_fedca,
    lambda form: dictionaries.build(
      form.optimizer, _EPOCHS, form.packed, form.aggregation
    ),
    describe=lambda: dictionaries.describe(harness.ADAM, _EPOCHS),
  ),
  fedsup=Algorithm(fedsup.build_fedsup, _labelled(labels.build_fedsup)),
  fedmatch=Algorithm(
    fedmatch.build_fedmatch, _labelled(labels.build_fedmatch), sparse=True
  ),
  fedrgd=Algorithm(
    fedrgd.build_fedrgd, _labelled(labels.build_fedrgd), scratch=('replica',)
  ),
  server_finetuned_fixmatch=Algorithm(
    server_finetuned.build_server_finetuned,
    _labelled(labels.build_server_finetuned),
  ),
  centralized_cco=Algorithm(
    centralized.Centralized, lambda _: _centralized(harness.cco())
  ),
  centralized_training_byol=Algorithm(
    centralized_training.CentralizedTraining, lambda _: _centralized_training(_byol())
  ),
)


@functools.cache
def process(name: str, packed: bool) -> Any:
  """Returns the process of a row, made once: to trace it takes seconds."""
  return TABLE[name].build(harness.Form(packed))


# Rows whose tests take seconds each and say of one more method what those that stay say
# of their kind: `dcco`, `fedavg_nt_xent`, `l_dawa`, `scaffold`, `fedema`, `fedca` and
# `fedsup`. They are `long`.
LONG = (
  'dcco_stale',
  'dcco_local_steps',
  'fedsc',
  'fedavg_cco',
  'fedavg_batch_norm',
  'fedbn_simsiam',
  'fed_byol',
  'fedu',
  'per_ssfl',
  'bilevel_ssfl',
  'maml_ssfl',
  'fedmatch',
  'fedrgd',
  'server_finetuned_fixmatch',
)
