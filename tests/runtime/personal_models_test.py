"""Tests of clients' own models: kept in the store, or adapted from the global one."""

import collections

import numpy as np
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tests.algorithms import ssfl
from tff_ssl.algorithms import la_ssfl
from tff_ssl.algorithms import optimizers
from tff_ssl.algorithms import per_ssfl
from tff_ssl.encoders import network
from tff_ssl.runtime import personal_models
from tff_ssl.runtime import simulation
from tff_ssl.runtime import stateful_rounds


def test_kept_models_are_each_client_s_own(tff_context, tmp_path):
  """After a round of one of two clients; the other has the global model."""
  clients = simulation.Clients(tiny.clients(), num_packs=1)
  process = per_ssfl.build_per_ssfl(
    ssfl.objective(),
    clients.element_spec,
    optimizers.build_optimizer(harness.SGD),
    per_ssfl.PerSSFLConfig(ssfl.CONFIG),
  )
  rounds = stateful_rounds.StatefulRounds(process, clients)
  rounds.resume(tmp_path, 0)
  output = rounds.next(rounds.initialize(), rounds.cohort(['bob']))
  weights = rounds.get_model_weights(output.state).trainable
  personal = personal_models.kept(rounds)
  state = rounds.states_of(['bob'])['bob']
  np.testing.assert_array_equal(
    harness.flat(personal(weights, 'bob')), harness.flat(state.kept)
  )
  assert personal(weights, 'alice') is weights
  encoders = personal_models.PersonalEncoders(harness.encoder(), personal)
  images = tiny.arrays()['image']
  found = {k: encoders.encode(weights, k)(images) for k in ('alice', 'bob')}
  for client_id, params in (('alice', weights), ('bob', state.kept)):
    own = network.select(params, 'encoder')
    expected = harness.encoder().infer(own, tf.constant(images / 255, tf.float32))
    np.testing.assert_allclose(found[client_id], expected, rtol=1e-4, atol=1e-6)
  assert np.abs(found['alice'] - found['bob']).max() > 1e-4
  rounds.close()


def test_adapted_models_have_seen_their_client_s_examples():
  objective, data = ssfl.objective(), tiny.clients()
  adapt = la_ssfl.build_adapt(objective, la_ssfl.AdaptationConfig(0.1))
  personal = personal_models.adapted(data, adapt)
  weights = objective.init(tf.constant([1, 2]))
  own = {k: harness.flat(personal(weights, k)) for k in ('alice', 'bob')}
  examples = data.examples(data.positions('alice'))
  tensors = collections.OrderedDict((k, tf.constant(v)) for k, v in examples.items())
  np.testing.assert_allclose(
    own['alice'], harness.flat(adapt(weights, tensors)), rtol=1e-6
  )
  assert np.abs(own['alice'] - own['bob']).max() > 1e-4
  assert personal_models.shared(weights, 'bob') is weights
