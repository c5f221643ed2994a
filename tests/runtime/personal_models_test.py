"""Tests of clients' own models: kept in the store, or adapted from the global one."""

import collections
import types

import numpy as np
import tensorflow as tf

from tests import tiny
from tests.algorithms import harness
from tests.algorithms import ssfl
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import client_states
from tff_ssl.algorithms import la_ssfl
from tff_ssl.encoders import network
from tff_ssl.runtime import personal_models


def test_kept_models_are_each_client_s_own():
  """After a round of one of two clients; the other has the global model."""
  weights, own = (ssfl.objective().init(tf.constant([1, n])) for n in range(2))
  states = {
    'alice': client_functions.ClientState(0, client_states.NEVER, None),
    'bob': client_functions.ClientState(1, 0, own),
  }
  rounds = types.SimpleNamespace(states_of=lambda ids: {k: states[k] for k in ids})
  personal = personal_models.kept(rounds)
  assert personal(weights, 'alice') is weights
  assert personal(weights, 'bob') is own
  encoders = personal_models.PersonalEncoders(harness.encoder(), personal)
  images = tiny.arrays()['image']
  found = {k: encoders.encode(weights, k)(images) for k in ('alice', 'bob')}
  for client_id, params in (('alice', weights), ('bob', own)):
    selected = network.select(params, 'encoder')
    expected = harness.encoder().infer(selected, tf.constant(images / 255, tf.float32))
    np.testing.assert_allclose(found[client_id], expected, rtol=1e-4, atol=1e-6)
  assert np.abs(found['alice'] - found['bob']).max() > 1e-4


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
