"""Tests of FedAvg over objectives with targets, queues, masks, rules after a step."""

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tff_ssl.algorithms import fedavg
from tff_ssl.encoders import vit
from tff_ssl.federated import server
from tff_ssl.objectives import byol
from tff_ssl.objectives import mae
from tff_ssl.objectives import moco
from tff_ssl.objectives import swav
from tff_ssl.settings import learning
from tff_ssl.settings import objectives

_EPOCHS = 3
_RATE = 0.05
_SERVER = learning.SgdServer()


_OBJECTIVES = {
  'byol': lambda: byol.ByolObjective(
    harness.model(), harness.predictor(), objectives.Byol(target_momentum=0.5)
  ),
  'byol, target trained': lambda: byol.ByolObjective(
    harness.model(),
    harness.predictor(),
    objectives.Byol(target_momentum=0.5, stop_gradient=False),
  ),
  'moco': lambda: moco.MocoObjective(
    harness.model(),
    objectives.MocoV2(temperature=0.5, target_momentum=0.5, queue_size=6),
  ),
  'swav': lambda: swav.SwavObjective(harness.model(), num_prototypes=3),
  'mae': lambda: mae.build_mae(
    vit.from_config(vit.ViTConfig(8, 1, 2, patch_size=2), tiny.IMAGE_SHAPE)
  ),
}


def _train(objective, batch, seed):
  """One client, by hand: steps of SGD, and the objective's rule after each."""
  params = server.initial_weights(objective, harness.SEED).trainable
  state = objective.init_state(params)
  losses = []
  for epoch in range(_EPOCHS):
    epoch_seed = tf.random.experimental.stateless_fold_in(seed, epoch)
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss, _, carry = objective.loss_with_state(params, state, batch, epoch_seed)
    gradient = tape.gradient(loss, params)
    params = type(params)((k, v - _RATE * gradient[k]) for k, v in params.items())
    params, state = objective.after_step(params, state, carry)
    losses.append(float(loss))
  return params, np.mean(losses)


@pytest.mark.long_for('byol, target trained', 'swav', 'mae')
@pytest.mark.parametrize('name', _OBJECTIVES)
def test_a_round_of_one_client_is_its_own_training(tff_context, name):
  objective = _OBJECTIVES[name]()
  config = fedavg.Training(
    learning.SgdClients(learning_rate=_RATE, epochs=_EPOCHS), seed=harness.SEED
  )
  process = harness.build_fedavg(objective, _SERVER, config)
  # The second client holds nothing and counts nothing.
  cohort = harness.cohort([range(5), []])
  (before, after), (metrics,) = harness.rounds_of(process, [cohort])
  params, loss = _train(
    objective,
    harness.tensors(harness.take(harness.arrays(), range(5))),
    harness.round_seed(0),
  )
  start = harness.weights(process, before)
  assert harness.relative(harness.weights(process, after), harness.flat(params)) < 1e-5
  assert harness.relative(start, harness.flat(params)) > 1e-3
  work = metrics['client_work']
  assert work['loss'] == pytest.approx(loss, rel=1e-4)
  assert work['encoding_std'] > 0
  dimension = 8 if name == 'mae' else harness.DIMENSION
  assert 1 < work['effective_rank'] <= dimension
