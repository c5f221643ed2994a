"""Methods without what is their own: rounds of FedAvg, or of FedSSL."""

from collections.abc import Callable
import functools
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import numbered
from tests.algorithms.divergence_aware import follower
from tests.algorithms.ssfl import ssfl
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedca
from tff_ssl.algorithms import fedu2
from tff_ssl.algorithms import l_dawa
from tff_ssl.algorithms import scaffold
from tff_ssl.algorithms import ssd
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.divergence_aware import fedu
from tff_ssl.algorithms.featarc import featarc
from tff_ssl.federated import optimizers
from tff_ssl.objectives import byol
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import moco
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import uniformity
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import personal

_MEMBERS = harness.split([2, 1, 3, 1])
# Clients come back after rounds without them, in other places.
_ROUNDS = [[0, 1, 2], [2, 3, 0], [1, 3, 0]]
_SGD = learning.SgdServer()
_ONE_STEP = fedavg.Training(seed=harness.SEED)
_EPOCHS = fedavg.Training(
  learning.SgdClients(learning_rate=0.1, epochs=2, batch_size=2), seed=harness.SEED
)
_FOLLOWER = follower.Follower()
_SIMCLR = simclr.SimclrObjective(harness.model())
_SIMSIAM = simsiam.SimSiamObjective(harness.model(batch_norm=True), harness.predictor())
_BYOL = byol.ByolObjective(
  harness.model(), harness.predictor(), objectives.Byol(target_momentum=0.5)
)
_MOCO = moco.MocoObjective(harness.model(), objectives.MocoV2(queue_size=6))
_UNIFORMITY = uniformity.UniformityObjective(harness.model())
# No divergence reaches it.
_FAR = 1e30


class _Limit(NamedTuple):
  """A method, and another whose rounds it should have.

  Attributes:
    own: Builds its process.
    other: Builds that of the other.
    within: How far its weights may be off: 0 is to the bit.
    forgets: Whether states of clients, and what the server keeps for them, are as they
      were at first before each round.
  """

  own: Callable[[], Any]
  other: Callable[[], Any]
  within: float = 0.0
  forgets: bool = False


def _of(method, objective, optimizer=_SGD, *config):
  return functools.partial(harness.build, method, objective, optimizer, config or None)


def _fedavg(objective, optimizer=_SGD, config=_ONE_STEP):
  return _of(fedavg.fedavg, objective, optimizer, config)


def _without_mu(config, objective=_FOLLOWER):
  method = fedema.fedema if isinstance(config, personal.FedEMA) else fedu.fedu
  plain = functools.partial(fed_ssl.fed_ssl, first_target=config.first_target)
  return _Limit(
    _of(method, objective, _SGD, config, _EPOCHS), _of(plain, objective, _SGD, _EPOCHS)
  )


def _l_dawa_by_1():
  """Cosines are 1, whatever they are of."""
  cosines = l_dawa.cosines

  def ones(*weights):
    return tf.nest.map_structure(tf.ones_like, cosines(*weights))

  with mock.patch.object(l_dawa, 'cosines', ones):
    optimizer = optimizers.build_optimizer(harness.ADAM)
    return harness.process(l_dawa.l_dawa(_SIMSIAM, optimizer, _EPOCHS))


_LIMITS = {
  'fed_ssl that resets all': _Limit(
    _of(
      functools.partial(fed_ssl.fed_ssl, reset=('target', 'queue', 'count')),
      _MOCO,
      _SGD,
      _EPOCHS,
    ),
    _fedavg(_MOCO, _SGD, _EPOCHS),
    within=1e-5,
  ),
  'fed_ssl that forgets byol': _Limit(
    _of(fed_ssl.fed_ssl, _BYOL, _SGD, _EPOCHS),
    _fedavg(_BYOL, _SGD, _EPOCHS),
    forgets=True,
  ),
  'fed_ssl that forgets moco': _Limit(
    _of(fed_ssl.fed_ssl, _MOCO, _SGD, _EPOCHS),
    _fedavg(_MOCO, _SGD, _EPOCHS),
    forgets=True,
  ),
  'fed_ssl without a state': _Limit(
    _of(fed_ssl.fed_ssl, _SIMSIAM, harness.ADAM, _EPOCHS),
    _fedavg(_SIMSIAM, harness.ADAM, _EPOCHS),
  ),
  # To the rounding of float32: TF fuses a step that adds 0 in another order.
  'scaffold without control variates': _Limit(
    _of(scaffold.scaffold, _FOLLOWER, _SGD, _EPOCHS, 9),
    _fedavg(_FOLLOWER, _SGD, _EPOCHS),
    within=2e-7,
    forgets=True,
  ),
  'l_dawa of cosines of 1': _Limit(
    _l_dawa_by_1, _fedavg(_SIMSIAM, harness.ADAM, _EPOCHS)
  ),
  'fedu2 by examples': _Limit(
    _of(
      fedu2.fedu2,
      _SIMCLR,
      harness.ADAM,
      methods.FedU2(0.0, unified=False),
      _ONE_STEP,
      numbered.POPULATION,
    ),
    _fedavg(_SIMCLR, harness.ADAM),
  ),
  'ssd without scales': _Limit(
    _of(
      functools.partial(ssd.ssd, distillation_weight=0.0, scale=1.0),
      _UNIFORMITY,
      harness.ADAM,
      _EPOCHS,
      numbered.POPULATION,
    ),
    # The objective of FedAvg's packs is separable: only whole training is the same.
    _fedavg(_UNIFORMITY, harness.ADAM, _EPOCHS),
    within=1e-6,
  ),
  'fedca without dictionary and alignment': _Limit(
    _of(
      fedca.fedca,
      dictionary_contrast.FedCAObjective(harness.model(batch_norm=True)),
      _SGD,
      methods.FedCA(0),
      _EPOCHS,
      numbered.POPULATION,
    ),
    _fedavg(
      simclr.SimclrObjective(
        harness.model(batch_norm=True),
        objectives.Simclr(temperature=objectives.FedCA().temperature),
      ),
      _SGD,
      _EPOCHS,
    ),
    within=1e-5,
  ),
  'featarc of one cluster': _Limit(
    _of(featarc.featarc, _SIMSIAM, harness.ADAM, personal.Featarc(1, 0.0), _ONE_STEP),
    _fedavg(_SIMSIAM, harness.ADAM),
  ),
  # Whatever the personal models do.
  'per_ssfl': _Limit(ssfl.build_per, ssfl.build_fedavg),
  'bilevel_ssfl': _Limit(ssfl.build_bilevel, ssfl.build_fedavg),
  'fedema of mu 0': _without_mu(personal.FedEMA(constant_mu=0.0)),
  'fedema of scaler 0': _without_mu(personal.FedEMA(scaler=0.0)),
  'fedema of tau 0': _without_mu(personal.FedEMA(tau=0.0)),
  'fedema of tau 0 and networks': _without_mu(personal.FedEMA(tau=0.0), _BYOL),
  'fedema of mu 0, online at first': _without_mu(
    personal.FedEMA(constant_mu=0.0, first_target='online')
  ),
  'fedu that is near': _without_mu(personal.FedU(threshold=_FAR)),
  'fedu that is near, online at first': _without_mu(
    personal.FedU(threshold=_FAR, first_target='online')
  ),
}
# One that forgets, one with two models, one of what the server keeps.
_STAY = ('fed_ssl that forgets byol', 'per_ssfl', 'fedema of mu 0')


@pytest.mark.long_for(*_LIMITS.keys() - {*_STAY})
@pytest.mark.parametrize('name', _LIMITS)
def test_rounds_are_those_of_the_other(tff_context, name):
  limit = _LIMITS[name]
  own, other = limit.own(), limit.other()
  start = state = own.initialize()
  expected = other.initialize()
  for round in _ROUNDS:
    cohort = harness.cohort([_MEMBERS[k] for k in round])
    if limit.forgets:
      kept = state.server._replace(extra=start.server.extra)
      state = state._replace(server=kept, clients={})
    state, metrics = own.next(state, cohort)
    before, (expected, wanted) = expected, other.next(expected, cohort)
    got, model = own.get_model_weights(state), other.get_model_weights(expected)
    every = {**got.trainable, **got.non_trainable}
    assert list(got.trainable) == list(model.trainable)
    for key, value in {**model.trainable, **model.non_trainable}.items():
      np.testing.assert_allclose(every[key], value, rtol=0, atol=limit.within)
    moved = harness.weights(other, expected) - harness.weights(other, before)
    assert np.abs(moved).max() > 1e-4
    for metric in ('loss', 'examples'):
      told = wanted['client_work'][metric]
      assert metrics['client_work'][metric] == pytest.approx(told, rel=1e-5)
